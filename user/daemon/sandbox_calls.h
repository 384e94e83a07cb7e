/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The half of the sandbox that is about system calls. For sandbox.c only.
 *
 * In:   a process that may load a filter (NO_NEW_PRIVS).
 * Out:  the filter in force, for this thread and what it starts.
 */
#ifndef HEAPSONDE_SANDBOX_CALLS_H
#define HEAPSONDE_SANDBOX_CALLS_H

#include <stdbool.h>

/* Leave what the daemon needs. with_perf: it attaches with perf_event_open. 0 or a
 * negative errno. */
int sandbox_calls__forbid(bool with_perf);

/* Take away what only the supervisor needs. 0 or a negative errno. */
int sandbox_calls__forbid_supervisors(void);

#endif /* HEAPSONDE_SANDBOX_CALLS_H */
