/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What /proc says about a process.
 *
 * In:   a PID, and from there on its directory in /proc as a descriptor.
 * Out:  for user/attach, user/symbolize, user/profile and user/daemon/peer.c. Text is fit to be
 * printed: see proc__read_command.
 *
 * A descriptor of /proc/PID stands for that process and never for a later one with
 * the same PID: all that is below it fails with -ESRCH or -ENOENT once the process
 * has gone. But its files are those of the program that the process runs when they
 * are opened; an exec between two of these calls shows in neither.
 */
#ifndef HEAPSONDE_PROC_H
#define HEAPSONDE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/common/error.h"

struct proc_status {
	pid_t tgid;            /* the process that pid is a thread of; pid itself if a process */
	pid_t inner_pid;       /* its PID in its own PID namespace; 0: the kernel does not say */
	int pid_levels;        /* PID namespaces from that of /proc to its own; 0: as above */
	char state;            /* 'R', 'S', …; 'Z' and 'X' have ended */
	uid_t uid;             /* effective */
	uid_t uids[4];         /* real, effective, saved, of the file system */
	gid_t gids[4];         /* the same */
	uint64_t capabilities; /* permitted or effective, bit by number */
	bool has_memory;       /* kernel threads have none, nor has a process that is ending */
};

/*
 * Does /proc show the PID namespace that this process is in? If not, a PID means one
 * process there and another one to the kernel. 0, or -ENODEV, and a text that says what
 * to do; also if it is not mounted.
 */
int proc__check_mounted(struct hs_error *err);

/*
 * Open /proc/PID (O_PATH, close-on-exec). Returns a descriptor owned by the caller,
 * or a negative errno: -ENOENT no such process, or it is hidden.
 */
int proc__open(pid_t pid);

/* Read the status of the process whose directory proc_fd is. 0 or a negative errno. */
int proc__read_status(int proc_fd, struct proc_status *out);

/*
 * What is said of a process that has ended, wherever that is noticed: sets *err, and returns its
 * code, -ESRCH.
 */
int proc__ended(pid_t pid, struct hs_error *err);

/* Is it a thread of the kernel? False where that cannot be read: it has ended. */
bool proc__is_kernel_thread(int proc_fd);

/*
 * The command line, arguments separated by spaces (the first 16 KiB of it), or
 * the process's name in brackets when it has none. Control characters and bytes
 * that are not UTF-8 are replaced by '?', so that the text can go to a terminal
 * and into JSON. *out is owned by the caller. 0 or a negative errno.
 */
int proc__read_command(int proc_fd, char **out);

/* What /proc/PID/exe points to, cleaned in the same way; owned by the caller. */
int proc__read_exe(int proc_fd, char **out);

/* The value of entry type (AT_…) of the auxiliary vector; -ENOENT: not there. */
int proc__read_auxv(int proc_fd, uint64_t type, uint64_t *value);

/* The first three by PID, for showing a process that is not opened as a target. */
int proc__status(pid_t pid, struct proc_status *out);
int proc__command(pid_t pid, char **out);
int proc__exe(pid_t pid, char **out);

#endif /* HEAPSONDE_PROC_H */
