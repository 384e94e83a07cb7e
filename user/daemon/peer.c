/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See peer.h. The checks are made one after the other while the process goes on, and
 * its owner may try to have the one answered by one program and the next by another:
 * "ps", then "su", then "ps" again. Why that is of no use:
 *
 * 1. All is read below t->proc_fd, which is one process for ever.
 * 2. Its address spaces follow each other by exec, and none comes back. t->mem_fd was
 *    opened before the first check and belongs to one of them, M. If M is the present
 *    one after the last check, it was during all of them. maps_fd, opened in between,
 *    is of M too.
 * 3. That is what target__same_memory finds out. It can be deceived only by a program
 *    that knows what stands somewhere in M, and changes its own auxiliary vector
 *    (PR_SET_MM_MAP) to point there; and only while M lives on without the process,
 *    shared with another one by clone(CLONE_VM). For M to be worth it, it must belong
 *    to a program with more rights, which would have to have shared its memory and
 *    gone on to execute the deceiver. vfork and posix_spawn do not: the parent stands
 *    still until they no longer share. And such a program must come between the
 *    opening of the executable, which has our probes and is not set-user-id, and that
 *    of the memory; the executable must be back in the end (target__same_exe).
 * 4. Within M's life the rights can change only by the program's own doing (setuid and
 *    the like). A program that gives rights up is made undumpable by the kernel at
 *    that, and AT_SECURE stays. One that has them given up completely, and says by
 *    prctl that it may be looked at, may be looked at. That holds for threads with
 *    rights of their own as well: the kernel asks for the first one's only, and so
 *    do we.
 */
#include "user/daemon/peer.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/attach/proc.h"

static bool all_are(const uint32_t ids[4], uint32_t id)
{
	return ids[0] == id && ids[1] == id && ids[2] == id && ids[3] == id;
}

static int unreadable(pid_t pid, const char *what, int code, struct hs_error *err)
{
	return hs_error__set(err, -EPERM, "process %d: cannot find out %s: %s", (int)pid, what,
			     strerror(-code));
}

/* Who it is. */
static int check_status(int proc_fd, pid_t pid, uid_t uid, gid_t gid, struct hs_error *err)
{
	struct proc_status s;
	int ret = proc__read_status(proc_fd, &s);

	if (ret == -ESRCH || ret == -ENOENT || (!ret && (s.state == 'Z' || s.state == 'X')))
		return proc__ended(pid, err);
	if (ret)
		return unreadable(pid, "whose it is", ret, err);
	if (s.tgid != pid)
		return hs_error__set(err, -EPERM, "%d is a thread of process %d", (int)pid,
				     (int)s.tgid);
	if (!all_are(s.uids, uid))
		return hs_error__set(err, -EPERM,
				     "process %d does not run entirely as user %u: its user ids "
				     "are %u, effective %u, saved %u, for files %u",
				     (int)pid, uid, s.uids[0], s.uids[1], s.uids[2], s.uids[3]);
	if (!all_are(s.gids, gid))
		return hs_error__set(err, -EPERM,
				     "process %d does not run entirely as group %u of user %u: "
				     "its group ids are %u, effective %u, saved %u, for files %u",
				     (int)pid, gid, uid, s.gids[0], s.gids[1], s.gids[2],
				     s.gids[3]);
	if (s.capabilities)
		return hs_error__set(err, -EPERM,
				     "process %d has capabilities (0x%" PRIx64
				     ") that user %u may not have",
				     (int)pid, s.capabilities, uid);
	return 0;
}

static int check_namespace(int proc_fd, pid_t pid, struct hs_error *err)
{
	struct stat ours, its;

	if (stat("/proc/self/ns/user", &ours) || fstatat(proc_fd, "ns/user", &its, 0))
		return unreadable(pid, "its user namespace", -errno, err);
	if (ours.st_dev != its.st_dev || ours.st_ino != its.st_ino)
		return hs_error__set(err, -EPERM, "process %d is in a user namespace of its own",
				     (int)pid);
	return 0;
}

/* What it was started from. */
static int check_program(const struct target *t, struct hs_error *err)
{
	uint64_t is_secure;
	struct stat st;
	int ret;

	if (fstat(t->exe_fd, &st))
		return unreadable(t->pid, "what it runs", -errno, err);
	if (st.st_mode & (S_ISUID | S_ISGID))
		return hs_error__set(err, -EPERM, "process %d runs a set-%s-id program",
				     (int)t->pid, st.st_mode & S_ISUID ? "user" : "group");
	ret = proc__read_auxv(t->proc_fd, AT_SECURE, &is_secure);
	if (ret)
		return unreadable(t->pid, "how it was started", ret, err);
	if (is_secure)
		return hs_error__set(err, -EPERM,
				     "process %d was started with the rights of another user, or "
				     "with capabilities (AT_SECURE)",
				     (int)t->pid);
	return 0;
}

/*
 * The kernel gives the files of an undumpable process to root, but not the directory
 * itself nor those below it that everybody can list (fs/proc/base.c: task_dump_owner).
 */
static int check_dumpable(int proc_fd, pid_t pid, uid_t uid, struct hs_error *err)
{
	struct stat st;

	if (fstatat(proc_fd, "maps", &st, 0))
		return unreadable(pid, "whether it is dumpable", -errno, err);
	if (st.st_uid != uid)
		return hs_error__set(err, -EPERM,
				     "process %d is not dumpable (by prctl, or because user %u "
				     "may not read its executable)",
				     (int)pid, uid);
	return 0;
}

static int check_process(int proc_fd, pid_t pid, uid_t uid, gid_t gid, struct hs_error *err)
{
	int ret = check_status(proc_fd, pid, uid, gid, err);

	if (!ret)
		ret = check_namespace(proc_fd, pid, err);
	if (!ret)
		ret = check_dumpable(proc_fd, pid, uid, err);
	return ret;
}

int peer__may_profile(const struct target *t, uid_t uid, gid_t gid, struct hs_error *err)
{
	int ret;

	if (uid == 0)
		return 0;
	if (t->kind != TARGET_PROBED || t->mem_fd < 0 || t->maps_fd < 0)
		return hs_error__set(err, -EPERM, "process %d: its memory may not be read",
				     (int)t->pid);
	ret = check_process(t->proc_fd, t->pid, uid, gid, err);
	if (!ret)
		ret = check_program(t, err);
	if (ret)
		return ret;
	/* Last: so all of it was about the program that t has open. */
	if (!target__same_exe(t) || !target__same_memory(t))
		return hs_error__set(err, -EPERM,
				     "process %d has ended or executed another program",
				     (int)t->pid);
	return 0;
}

int peer__may_ask(pid_t pid, uid_t uid, gid_t gid, struct hs_error *err)
{
	int fd, ret;

	if (uid == 0)
		return 0;
	fd = pid > 0 ? proc__open(pid) : -ENOENT;
	if (fd == -ENOENT)
		return hs_error__set(err, -ESRCH, "no process with PID %d", (int)pid);
	if (fd < 0)
		return unreadable(pid, "whose it is", fd, err);
	ret = check_process(fd, pid, uid, gid, err);
	close(fd);
	return ret;
}
