/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What /proc says about a process.
 *
 * In:   a PID, /proc.
 * Out:  for user/attach/target.c. Text is fit to be printed: see proc__command.
 *
 * A process can end between any two of these calls; -ENOENT and -ESRCH both mean
 * that it has.
 */
#ifndef HEAPSONDE_PROC_H
#define HEAPSONDE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc_status {
	pid_t tgid;      /* the process that pid is a thread of; pid itself if a process */
	char state;      /* 'R', 'S', …; 'Z' and 'X' have ended */
	uid_t uid;       /* effective */
	bool has_memory; /* kernel threads have none */
};

/* Read /proc/PID/status. 0 or a negative errno. */
int proc__status(pid_t pid, struct proc_status *out);

/*
 * The command line, arguments separated by spaces (the first 16 KiB of it), or
 * the process's name in brackets when it has none. Control characters and bytes
 * that are not UTF-8 are replaced by '?', so that the text can go to a terminal
 * and into JSON. *out is owned by the caller. 0 or a negative errno.
 */
int proc__command(pid_t pid, char **out);

/* What /proc/PID/exe points to, cleaned in the same way; owned by the caller. */
int proc__exe(pid_t pid, char **out);

/* The value of entry type (AT_…) of the auxiliary vector; -ENOENT: not there. */
int proc__auxv(pid_t pid, uint64_t type, uint64_t *value);

#endif /* HEAPSONDE_PROC_H */
