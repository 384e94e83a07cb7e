/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with probes that does what its arguments say, one after the other, says
 * ready and waits for its end. Compiled by test_peer.c, together with the notes.
 *
 *	uids=R E S, gids=R E S, fsuid=N, fsgid=N, dumpable=N, keepcaps, newuser
 *	dropcaps   have no capabilities
 *	raisecaps  make those that are permitted effective
 *	shared     before executing something, have another process share the memory
 *	exec=FILE  on SIGUSR1 execute FILE as "second", which says nothing
 *
 * At 0x10000000 and a page further on is a frame table with a name: Mod.secret if the
 * program runs as root, else Mod.mine.
 */
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/abi.h"

struct sonde_registry registry = {
	.abi_version = SONDE_ABI_VERSION,
	.size_bytes = sizeof(registry),
	.ocaml_version = "5.3.0",
	.fd_retaddr_bytes = 8,
	.fd_frame_data = 8,
	.fd_num_live = 10,
	.fd_live_ofs = 12,
};

static char stack[65536];
static int is_shared;
static const char *next;

static void check(long ret)
{
	if (ret)
		_exit(111);
}

/* The input ends with the test at the latest. */
static int wait_for_end(void *unused)
{
	char c;

	(void)unused;
	while (read(0, &c, 1) != 0)
		continue;
	_exit(0);
}

static void execute_next(int sig)
{
	sigset_t none;

	(void)sig;
	if (is_shared)
		clone(wait_for_end, stack + sizeof(stack), CLONE_VM, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execl(next, "second", NULL);
}

static void set_caps(int raise)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	check(syscall(SYS_capget, &header, data));
	for (int i = 0; i < 2; i++) {
		data[i].permitted = raise ? data[i].permitted : 0;
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	check(syscall(SYS_capset, &header, data));
}

/* The least that is a frame with a position; user/symbolize/frametable.c has the format. */
static void put_table(char *t, const char *name)
{
	const short flags = 17;
	const int to_entry = 500, to_file = 128;
	const unsigned long entry = 1ul << 51 | 64;

	memcpy(t + 8, &flags, sizeof(flags));
	memcpy(t + 12, &to_entry, sizeof(to_entry));
	memcpy(t + 512, &entry, sizeof(entry));
	memcpy(t + 576, &to_file, sizeof(to_file));
	strcpy(t + 580, name);
	strcpy(t + 704, "a.ml");
}

static void put_tables(void)
{
	const char *name = geteuid() ? "Mod.mine" : "Mod.secret";
	char *t = mmap((void *)0x10000000, 8192, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	check(t == MAP_FAILED);
	put_table(t, name);
	put_table(t + 4096, name);
}

static void act(char *arg)
{
	char *value = strchr(arg, '=');
	unsigned int n[3] = { 0 };

	if (value) {
		*value++ = '\0';
		sscanf(value, "%u %u %u", &n[0], &n[1], &n[2]);
	}
	/* The system calls themselves: glibc's want to do it for all threads. */
	if (!strcmp(arg, "uids"))
		check(syscall(SYS_setresuid, n[0], n[1], n[2]));
	else if (!strcmp(arg, "gids"))
		check(syscall(SYS_setresgid, n[0], n[1], n[2]));
	else if (!strcmp(arg, "fsuid"))
		setfsuid(n[0]);
	else if (!strcmp(arg, "fsgid"))
		setfsgid(n[0]);
	else if (!strcmp(arg, "dumpable"))
		check(prctl(PR_SET_DUMPABLE, n[0]));
	else if (!strcmp(arg, "keepcaps"))
		check(prctl(PR_SET_KEEPCAPS, 1));
	else if (!strcmp(arg, "newuser"))
		check(unshare(CLONE_NEWUSER));
	else if (!strcmp(arg, "dropcaps") || !strcmp(arg, "raisecaps"))
		set_caps(*arg == 'r');
	else if (!strcmp(arg, "shared"))
		is_shared = 1;
	else if (!strcmp(arg, "exec"))
		next = value;
	else
		_exit(112);
}

int main(int argc, char **argv)
{
	put_tables();
	signal(SIGUSR1, execute_next);
	for (int i = 1; i < argc; i++)
		act(argv[i]);
	if (strcmp(argv[0], "second"))
		check(write(1, "r", 1) != 1);
	return wait_for_end(NULL);
}
