/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program that `heapsonde record -- CMD ARG…` starts.
 *
 * In:   a command line.
 * Out:  a process stopped before its first instruction, so that probes can be
 *       attached before anything is allocated; then its exit status.
 *
 * ptrace is used on this child of ours only, and only until child__resume: from
 * then on it runs as if heapsonde had not started it. Until then it dies with
 * heapsonde. All calls on a child must come from the thread that started it.
 */
#ifndef HEAPSONDE_CHILD_H
#define HEAPSONDE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "user/common/error.h"

struct child;

/*
 * Remember the signal mask and which signals are ignored, for the children to
 * start with. Call it before changing any of them; without it children start with
 * nothing blocked and nothing ignored.
 */
void child__remember_signals(void);

/*
 * Start argv[0] (looked up in PATH) with argv, NULL-terminated. On success *out
 * (owned by the caller) is stopped with the new program in place and none of its
 * instructions executed. Errors, with nothing left running: what exec said, such
 * as -ENOENT or -EACCES (the text starts "cannot run CMD"); -EPERM ptrace is
 * forbidden; -EINTR the child was killed while starting; -EAGAIN, -ENOMEM,
 * -EMFILE.
 */
int child__start(struct child **out, char *const argv[], struct hs_error *err);

pid_t child__pid(const struct child *c);

/*
 * Let it run. Signals that came while it was held reach it now. 0, or -ESRCH if
 * it has been killed meanwhile.
 */
int child__resume(struct child *c);

/*
 * Has it ended? 1 and *wait_status as from waitpid; 0 still running (only if
 * !block); negative errno, -EINTR included, so that the caller's signal handlers
 * get their turn. May be called again after the end.
 */
int child__wait(struct child *c, int *wait_status, bool block);

/* Kill it and reap it, whatever state it is in. For error paths. NULL is fine. */
void child__kill(struct child *c);

/* As child__kill unless child__resume let it go, then free. NULL is fine. */
void child__free(struct child *c);

/* What a shell would show as $?: the exit code, or 128 + the signal's number. */
int child__exit_code(int wait_status);

#endif /* HEAPSONDE_CHILD_H */
