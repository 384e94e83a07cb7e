/* SPDX-License-Identifier: BSD-2-Clause */
/* See target.h. */
#include "user/attach/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/attach/exe.h"
#include "user/attach/proc.h"
#include "user/attach/registry.h"

#define PAGE_BYTES 4096u

/* What the kernel puts at AT_RANDOM. */
#define AT_RANDOM_BYTES 16

static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

static int no_process(pid_t pid, struct hs_error *err)
{
	return hs_error__set(err, -ESRCH, "no process with PID %d", (int)pid);
}

static int open_failed(const struct target *t, int code, struct hs_error *err)
{
	switch (code) {
	case -ENOENT:
	case -ESRCH:
		return proc__ended(t->pid, err);
	case -EACCES:
	case -EPERM:
		return hs_error__set(err, code,
				     "not permitted to look into process %d of user %u: that needs "
				     "the capability CAP_SYS_PTRACE (%s)",
				     (int)t->pid, (unsigned)t->uid,
				     geteuid()
					     ? "run as root"
					     : "taken from root here, or a security module denies");
	case -EMFILE:
	case -ENFILE:
		return hs_error__set(err, code, "too many open files");
	case -ENOMEM:
		return hs_error__set(err, code, "out of memory");
	default:
		return hs_error__set(err, -ENOEXEC, "cannot read the executable of process %d: %s",
				     (int)t->pid, strerror(-code));
	}
}

/*
 * The two descriptors must mean one process. proc_fd comes first: if its process is
 * still there when the pidfd has been opened, nobody else can have had that PID.
 */
static int open_process(struct target *t, struct proc_status *status, struct hs_error *err)
{
	int ret, code;

	t->proc_fd = proc__open(t->pid);
	ret = t->proc_fd < 0 ? t->proc_fd : proc__read_status(t->proc_fd, status);
	if (!ret && status->tgid != t->pid)
		return hs_error__set(err, -ESRCH, "%d is a thread of process %d: use that PID",
				     (int)t->pid, (int)status->tgid);
	if (hs_error__is_shortage(ret))
		return open_failed(t, ret, err);
	t->pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	code = -errno;
	if (t->pidfd < 0 && code == -ENOSYS)
		return hs_error__set(err, code, "this kernel lacks pidfd_open");
	if (t->pidfd < 0 && hs_error__is_shortage(code))
		return open_failed(t, code, err);
	if (t->pidfd < 0)
		return no_process(t->pid, err);
	if (!ret)
		ret = proc__read_status(t->proc_fd, status);
	if (hs_error__is_shortage(ret))
		return open_failed(t, ret, err);
	if (ret && !has_ended(t->pidfd))
		return hs_error__set(
			err, -EACCES,
			"process %d is hidden (/proc mounted with hidepid?): run as root",
			(int)t->pid);
	if (ret)
		return no_process(t->pid, err);
	t->uid = status->uid;
	t->inner_pid = status->inner_pid;
	if (status->state == 'Z' || status->state == 'X')
		return proc__ended(t->pid, err);
	return 0;
}

/*
 * The kernel notes where it put the entry point of the executable (not of the
 * dynamic linker): no guessing from the order of mappings.
 */
static int read_load_bias(struct target *t, uint64_t link_entry)
{
	int ret = proc__read_auxv(t->proc_fd, AT_ENTRY, &t->entry);

	if (ret)
		return ret;
	t->load_bias = t->entry - link_entry;
	return t->load_bias % PAGE_BYTES ? -ENOEXEC : 0;
}

/* Open a file of the process. -EACCES: the kernel says no, for whichever reason. */
static int open_file(const struct target *t, const char *name)
{
	int fd = openat(t->proc_fd, name, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	return errno == EPERM ? -EACCES : -errno;
}

/* Where memory is forbidden, which Yama does, that is no error: see registry__read. */
static int open_memory(struct target *t)
{
	int fd = open_file(t, "mem");

	if (fd == -EACCES)
		return 0;
	if (fd < 0)
		return fd;
	t->mem_fd = fd;
	fd = open_file(t, "maps");
	if (fd < 0)
		return fd;
	t->maps_fd = fd;
	return 0;
}

static int look_into_exe(struct target *t, struct exe_cache *cache, struct hs_error *err)
{
	struct hs_error why;
	struct exe_info info;
	struct stat st;
	int ret;

	t->exe_fd = open_file(t, "exe");
	if (t->exe_fd < 0)
		return open_failed(t, t->exe_fd, err);
	snprintf(t->exe_proc, sizeof(t->exe_proc), "/proc/self/fd/%d", t->exe_fd);
	if (fstat(t->exe_fd, &st))
		return open_failed(t, -errno, err);
	t->exe_dev = st.st_dev;
	t->exe_ino = st.st_ino;
	ret = exe_cache__inspect(cache, t->exe_fd, &st, &info, &why);
	if (ret == -EBADMSG)
		return hs_error__set(err, -EPROTO, "process %d: %s", (int)t->pid, why.text);
	if (ret)
		return open_failed(t, ret, err);
	t->kind = info.kind;
	if (t->kind == TARGET_NOT_OCAML)
		return 0;
	ret = read_load_bias(t, info.entry);
	if (ret)
		return open_failed(t, ret, err);
	if (t->kind != TARGET_PROBED)
		return 0;
	t->probes = info.probes;
	ret = open_memory(t);
	if (ret)
		return open_failed(t, ret, err);
	return registry__read(t, &info.registry, err);
}

static int fill_in(struct target *t, struct exe_cache *cache, struct hs_error *err)
{
	struct proc_status status;
	int ret = cache ? 0 : proc__check_mounted(err);

	if (!ret)
		ret = open_process(t, &status, err);
	if (ret)
		return ret;
	ret = proc__read_command(t->proc_fd, &t->command);
	if (ret)
		return open_failed(t, ret, err);
	/* It has let go of its memory, and is not yet a zombie. */
	if (!status.has_memory && !proc__is_kernel_thread(t->proc_fd))
		return open_failed(t, -ESRCH, err);
	if (!status.has_memory) {
		/* A kernel thread runs no file, and asking for it could be forbidden. */
		t->exe = strdup("");
		return t->exe ? 0 : open_failed(t, -ENOMEM, err);
	}
	ret = proc__read_exe(t->proc_fd, &t->exe);
	if (ret)
		return open_failed(t, ret, err);
	ret = look_into_exe(t, cache, err);
	if (ret)
		return ret;
	/* What was read belongs together only if nothing happened meanwhile. */
	if (!target__same_exe(t))
		return target__gone(t, err);
	return 0;
}

int target__open_cached(struct target **out, pid_t pid, struct exe_cache *cache,
			struct hs_error *err)
{
	struct target *t;
	int ret;

	*out = NULL;
	if (pid <= 0)
		return no_process(pid, err);
	t = calloc(1, sizeof(*t));
	if (!t)
		return hs_error__set(err, -ENOMEM, "out of memory");
	t->pid = pid;
	t->pidfd = t->proc_fd = t->exe_fd = t->mem_fd = t->maps_fd = -1;
	ret = fill_in(t, cache, err);
	if (ret) {
		target__free(t);
		return ret;
	}
	*out = t;
	return 0;
}

int target__open(struct target **out, pid_t pid, struct hs_error *err)
{
	return target__open_cached(out, pid, NULL, err);
}

int target__open_probed(struct target **out, pid_t pid, struct hs_error *err)
{
	int ret = target__open(out, pid, err);
	struct target *t = *out;

	if (ret || t->kind == TARGET_PROBED)
		return ret;
	if (t->kind == TARGET_NATIVE)
		ret = hs_error__set(
			err, -ENOENT,
			"process %d (%.80s) runs OCaml without heapsonde's probes: " HOW_TO_RELINK,
			(int)pid, t->exe);
	else if (t->kind == TARGET_BYTECODE)
		ret = hs_error__set(err, -ENOEXEC,
				    "process %d (%.80s) runs OCaml bytecode: only native programs "
				    "can be attached, so build it with ocamlopt",
				    (int)pid, t->exe);
	else
		ret = hs_error__set(err, -ENOEXEC, "process %d (%.80s) is not an OCaml program",
				    (int)pid, *t->exe ? t->exe : t->command);
	target__free(t);
	*out = NULL;
	return ret;
}

void target__free(struct target *t)
{
	if (!t)
		return;
	const int fds[] = { t->pidfd, t->proc_fd, t->exe_fd, t->mem_fd, t->maps_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(t->command);
	free(t->exe);
	free(t);
}

/* ---- is it still the same? ------------------------------------------------------ */

static int stat_exe(const struct target *t, struct stat *st)
{
	return fstatat(t->proc_fd, "exe", st, 0) ? -errno : 0;
}

static bool is_our_exe(const struct target *t, const struct stat *st)
{
	return st->st_dev == t->exe_dev && st->st_ino == t->exe_ino;
}

bool target__same_exe(const struct target *t)
{
	uint64_t entry_now;
	struct stat st;
	int ret;

	if (has_ended(t->pidfd))
		return false;
	ret = stat_exe(t, &st);
	if (ret)
		/* Forbidden, once privileges were dropped: then there is no telling. */
		return ret == -EACCES || ret == -EPERM;
	if (!is_our_exe(t, &st))
		return false;
	/* The same file executed anew is another program: its addresses moved. */
	return !t->entry || proc__read_auxv(t->proc_fd, AT_ENTRY, &entry_now) ||
	       entry_now == t->entry;
}

bool target__has_execed(const struct target *t)
{
	uint64_t entry_now;
	struct stat st;

	/* A process on its way out has no executable any more: its pidfd tells. */
	if (has_ended(t->pidfd) || stat_exe(t, &st))
		return false;
	if (!is_our_exe(t, &st))
		return true;
	return t->entry && !proc__read_auxv(t->proc_fd, AT_ENTRY, &entry_now) &&
	       entry_now != t->entry;
}

int target__gone(const struct target *t, struct hs_error *err)
{
	struct proc_status status;

	/* A process on its way out lets go of its memory first; its pidfd tells later. */
	if (has_ended(t->pidfd) || proc__read_status(t->proc_fd, &status) || !status.has_memory)
		return proc__ended(t->pid, err);
	return hs_error__set(err, -ESRCH, "process %d has executed another program", (int)t->pid);
}

/*
 * At every exec the kernel puts 16 random bytes into the new memory and notes in the
 * auxiliary vector where. Through mem_fd and in the memory of now they are the same if
 * both are one address space; else the old one is mostly gone already, or its bytes
 * differ, for no program knows those of another. (A program can change its own bytes
 * while we look, and is then held to have executed something. It can also change its
 * vector; what that is good for is said in user/daemon/peer.c.)
 */
bool target__same_memory(const struct target *t)
{
	uint8_t then[AT_RANDOM_BYTES], now[AT_RANDOM_BYTES];
	struct target at_present = { .mem_fd = open_file(t, "mem") };
	uint64_t addr;
	bool same;

	if (at_present.mem_fd < 0)
		return false;
	same = !proc__read_auxv(t->proc_fd, AT_RANDOM, &addr) &&
	       !target__read(t, addr, then, sizeof(then)) &&
	       !target__read(&at_present, addr, now, sizeof(now)) &&
	       !memcmp(then, now, sizeof(then));
	close(at_present.mem_fd);
	return same;
}
