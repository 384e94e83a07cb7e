/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What -v tells of attaching: to what, by which means, with which probes, how long it
 * took.
 *
 * In:   a target, the kernel's features, what was asked for.
 * Out:  details on stderr (user/common/say.h); nothing without -v.
 */
#ifndef HEAPSONDE_ATTACH_NOTES_H
#define HEAPSONDE_ATTACH_NOTES_H

#include <stdint.h>

#include "user/attach/attach.h"

/* Before attaching: the process, and what of the kernel is used. */
void attach_notes__target(const struct target *t, const struct kernel_features *kernel);

/* After it; took_ns in nanoseconds. */
void attach_notes__attached(const struct attach_options *a, uint64_t took_ns);

#endif /* HEAPSONDE_ATTACH_NOTES_H */
