/* SPDX-License-Identifier: BSD-2-Clause */
/* What cannot be done within the daemon's sandbox. */
#include "tests/unit/sandbox_child.h"

#include <linux/bpf.h>
#include <sched.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

/* ---- capabilities ---- */

/* The number behind a key of /proc/self/status, or -1. */
static unsigned long long status_number(const char *key, int base)
{
	unsigned long long value = ~0ull;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			value = strtoull(line + strlen(key) + 1, NULL, base);
	if (f)
		fclose(f);
	return value;
}

static void has_few_capabilities(const void *arg)
{
	uint64_t before = *(const uint64_t *)arg, kept = before & sandbox__caps(&kernel);

	CHECK(status_number("CapPrm", 16) == kept);
	CHECK(status_number("CapEff", 16) == kept);
	CHECK(status_number("CapInh", 16) == 0);
	CHECK(status_number("CapAmb", 16) == 0);
	CHECK(status_number("NoNewPrivs", 10) == 1);
	CHECK(status_number("Seccomp", 10) == 2);
	CHECK(prctl(PR_GET_DUMPABLE) == 0);
	if (!(before >> CAP_SETPCAP & 1))
		return;
	CHECK(status_number("CapBnd", 16) == kept);
	CHECK(prctl(PR_GET_SECUREBITS) & 1);
}

static void capabilities(void **state)
{
	uint64_t before = status_number("CapPrm", 16);

	(void)state;
	passes(SUPERVISOR, has_few_capabilities, &before);
	passes(WORKER, has_few_capabilities, &before);
}

/* As under a unit that grants no more than what is kept. */
static void without_setpcap(void **state)
{
	int status = 0;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		cap_t caps = cap_get_proc();
		cap_value_t setpcap = CAP_SETPCAP;
		uint64_t before;

		cap_set_flag(caps, CAP_EFFECTIVE, 1, &setpcap, CAP_CLEAR);
		cap_set_flag(caps, CAP_PERMITTED, 1, &setpcap, CAP_CLEAR);
		if (cap_set_proc(caps))
			_exit(1);
		before = status_number("CapPrm", 16);
		status = run(SUPERVISOR, has_few_capabilities, &before);
		_exit(!WIFEXITED(status) || WEXITSTATUS(status) || *failed_line);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void sys_admin_only_for_perf(void **state)
{
	struct kernel_features k = { .uprobe_multi = true, .uprobe_multi_by_pid = true };

	(void)state;
	assert_int_equal(sandbox__caps(&k),
			 1ull << CAP_BPF | 1ull << CAP_PERFMON | 1ull << CAP_SYS_PTRACE |
				 1ull << CAP_CHECKPOINT_RESTORE | 1ull << CAP_DAC_READ_SEARCH);
	k.uprobe_multi_by_pid = false;
	assert_true(sandbox__caps(&k) >> CAP_SYS_ADMIN & 1);
	k.uprobe_multi = false;
	assert_true(sandbox__caps(&k) >> CAP_SYS_ADMIN & 1);
}

/* ---- what kills ---- */

static const struct {
	const char *name;
	long call;
} fatal[] = {
#define CALL(name) { #name, SYS_##name }
	CALL(execve),         CALL(execveat),
	CALL(ptrace),         CALL(process_vm_writev),
	CALL(pidfd_getfd),    CALL(open_by_handle_at),
	CALL(mknod),          CALL(setuid),
	CALL(setgid),         CALL(setresuid),
	CALL(setresgid),      CALL(setfsuid),
	CALL(setgroups),      CALL(keyctl),
	CALL(add_key),        CALL(setns),
	CALL(unshare),        CALL(chroot),
	CALL(pivot_root),     CALL(mount),
	CALL(umount2),        CALL(open_tree),
	CALL(move_mount),     CALL(fsopen),
	CALL(init_module),    CALL(finit_module),
	CALL(delete_module),  CALL(kexec_load),
	CALL(reboot),         CALL(swapon),
	CALL(settimeofday),   CALL(clock_settime),
	CALL(sethostname),    CALL(iopl),
	CALL(personality),    CALL(userfaultfd),
	CALL(io_uring_setup),
};

/* All arguments are such that nothing would happen without the filter either. */
static void make_call(const void *arg)
{
	syscall(*(const long *)arg, -1L, -1L, -1L, -1L, -1L, -1L);
}

static void hostile_calls_kill(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_OF(fatal); i++) {
		int status = run(SUPERVISOR, make_call, &fatal[i].call);

		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			fail_msg("%s: wait status %#x", fatal[i].name, status);
	}
}

/* The numbers of x32 would slip through a filter that looks at the number only. */
static void other_architectures_kill(void **state)
{
	static const long x32_getpid = 0x40000000L | SYS_getpid;
	int status = run(SUPERVISOR, make_call, &x32_getpid);

	(void)state;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

/* ---- what is refused ---- */

static void opens_for_reading_only(const void *arg)
{
	char path[128], other[64];
	int fd;

	(void)arg;
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	CHECK(fd >= 0);
	CHECK(open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC) >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK(open(path, O_RDONLY) >= 0);
	CHECK_FAILS(open(path, O_WRONLY), EACCES);
	snprintf(path, sizeof(path), "%s/new", folder);
	CHECK_FAILS(open(path, O_RDONLY | O_CREAT, 0600), EACCES);
	CHECK_FAILS(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), EACCES);
	CHECK_FAILS(open(folder, O_RDWR | O_TMPFILE, 0600), EACCES);
	CHECK_FAILS(syscall(SYS_open, path, O_RDWR), EACCES);
	CHECK_FAILS(syscall(SYS_creat, path, 0600), EACCES);
	CHECK_FAILS(syscall(SYS_openat2, AT_FDCWD, path, NULL, 0), ENOSYS);
	snprintf(path, sizeof(path), "%s/old", folder);
	CHECK(open(path, O_RDONLY) >= 0);
	CHECK_FAILS(open(path, O_WRONLY), EACCES);
	CHECK_FAILS(open(path, O_RDWR), EACCES);
	CHECK_FAILS(open(path, O_RDWR | O_WRONLY), EACCES);
	CHECK_FAILS(open(path, O_RDONLY | O_TRUNC), EACCES);
	CHECK_FAILS(open("/proc/self/mem", O_RDWR), EACCES);
	snprintf(other, sizeof(other), "/proc/%d/mem", getppid());
	CHECK_FAILS(open(other, O_RDWR), EACCES);
	CHECK_FAILS(truncate(path, 0), EPERM);
	CHECK_FAILS(unlink(path), EPERM);
	CHECK_FAILS(chmod(path, 0777), EPERM);
	CHECK_FAILS(chown(path, 1, 1), EPERM);
	CHECK_FAILS(mkdir(path, 0700), EPERM);
	CHECK_FAILS(link(path, path), EPERM);
	CHECK_FAILS(rename(path, path), EPERM);
	CHECK_FAILS(symlink(path, path), EPERM);
}

static void opening(void **state)
{
	(void)state;
	passes(SUPERVISOR, opens_for_reading_only, NULL);
	passes(WORKER, opens_for_reading_only, NULL);
}

static void refuses(const void *arg)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct rlimit limit = { 0, 0 };
	char c = '\n';

	(void)arg;
	CHECK_FAILS(socket(AF_UNIX, SOCK_STREAM, 0), EPERM);
	CHECK_FAILS(socket(AF_INET, SOCK_STREAM, 0), EPERM);
	CHECK_FAILS(socket(AF_INET, SOCK_DGRAM, 0), EPERM);
	CHECK_FAILS(socket(AF_NETLINK, SOCK_RAW, 0), EPERM);
	CHECK_FAILS(socketpair(AF_INET, SOCK_STREAM, 0, (int[2]){ 0 }), EPERM);
	CHECK_FAILS(connect(0, (struct sockaddr *)&address, sizeof(address)), EPERM);
	CHECK_FAILS(bind(0, (struct sockaddr *)&address, sizeof(address)), EPERM);
	CHECK_FAILS(listen(0, 1), EPERM);
	CHECK_FAILS(kill(getppid(), 0), EPERM);
	CHECK_FAILS(kill(-1, SIGKILL), EPERM);
	CHECK_FAILS(syscall(SYS_tgkill, getppid(), getppid(), SIGTERM), EPERM);
	CHECK_FAILS(syscall(SYS_clone3, NULL, 0), ENOSYS);
	CHECK_FAILS(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM);
	CHECK_FAILS(setrlimit(RLIMIT_NOFILE, &limit), EPERM);
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK_FAILS(ioctl(0, TIOCSTI, &c), EPERM);
	CHECK_FAILS(fcntl(0, F_SETOWN, getppid()), EPERM);
	CHECK_FAILS(prctl(PR_SET_DUMPABLE, 1), EPERM);
	CHECK_FAILS(prctl(PR_SET_PTRACER, 1), EPERM);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	      MAP_FAILED);
	CHECK_FAILS(mprotect(folder, 1, PROT_READ | PROT_EXEC), EPERM);
	CHECK_FAILS(syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, NULL, 0), EPERM);
	CHECK_FAILS(syscall(SYS_bpf, BPF_MAP_GET_FD_BY_ID, NULL, 0), EPERM);
	CHECK_FAILS(syscall(SYS_bpf, BPF_OBJ_PIN, NULL, 0), EPERM);
	CHECK_FAILS(syscall(SYS_bpf, BPF_PROG_ATTACH, NULL, 0), EPERM);
	if (kernel.uprobe_multi && kernel.uprobe_multi_by_pid)
		CHECK_FAILS(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0), EPERM);
}

static void refused_calls(void **state)
{
	(void)state;
	passes(SUPERVISOR, refuses, NULL);
	passes(WORKER, refuses, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capabilities),
		cmocka_unit_test(without_setpcap),
		cmocka_unit_test(sys_admin_only_for_perf),
		cmocka_unit_test(hostile_calls_kill),
		cmocka_unit_test(other_architectures_kill),
		cmocka_unit_test(opening),
		cmocka_unit_test(refused_calls),
	};

	return cmocka_run_group_tests(tests, set_up, clean_up);
}
