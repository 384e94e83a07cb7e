/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the daemon gives up before it listens to anybody: capabilities, the way to
 * new ones, and the system calls that it has no use for.
 *
 * In:   a process with one thread, usually root's, that has opened what it listens
 *       on; what the kernel offers.
 * Out:  the same process, and whatever it forks, for good: with the few capabilities
 *       of sandbox__caps, unable to execute anything, to change its user, to trace,
 *       to write to another process, to open a file for writing, to listen or to
 *       connect. Descriptors that were opened before or were passed by clients are
 *       written to as ever: with the rights of whoever opened them.
 *
 * Every capability and every system call with its reason: docs/daemon.md.
 */
#ifndef HEAPSONDE_SANDBOX_H
#define HEAPSONDE_SANDBOX_H

#include <stdint.h>

#include "user/attach/kernel.h"
#include "user/common/error.h"

/* The capabilities that are kept on this kernel, if they are there: bit = CAP_…. */
uint64_t sandbox__caps(const struct kernel_features *kernel);

/*
 * Enter, with one thread, after opening everything that is listened on. What is
 * needed of the kernel is as kernel_features__probe found it before: it cannot be
 * found out from within.
 *
 * A capability that is to be kept and is not there is no error (attaching says what
 * it lacks); one that cannot be given up is. Without CAP_SETPCAP (as under
 * scripts/heapsonde.service) the bounding set and the securebits stay as they are;
 * as nothing can be executed they do not matter then.
 *
 * 0, or a negative errno with a text; the process is in an undefined state then, less
 * privileged or not, and is to exit.
 */
int sandbox__enter(const struct kernel_features *kernel, struct hs_error *err);

/*
 * For a forked worker, within the above: gives up what only the supervisor does.
 * From here on it cannot fork (threads are fine), accept, make a socket or a pair of
 * them, or signal anybody. 0, or a negative errno with a text.
 */
int sandbox__enter_worker(struct hs_error *err);

#endif /* HEAPSONDE_SANDBOX_H */
