/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An outbox as a stdio stream, for a writer who can wait.
 *
 * In:   bytes, from the one thread that owns the outbox.
 * Out:  the outbox. While its queue is full, and at the end, the writer waits; meanwhile it is
 *       asked whether it wants to, so that it can see to other things and give up.
 */
#ifndef HEAPSONDE_OUTBOX_STREAM_H
#define HEAPSONDE_OUTBOX_STREAM_H

#include <stdbool.h>
#include <stdio.h>

#include "user/sinks/outbox.h"

/* Bytes that may be queued before the writer waits. */
#define OUTBOX_STREAM_QUEUE_BYTES (4u << 20)

/*
 * Wait for a moment, or until fd can be read (-1: nothing to read). False: do not wait any more;
 * it may be asked again all the same.
 */
typedef bool outbox_wait_fn(void *ctx, int fd);

/*
 * A stream that writes to o, which is borrowed and must outlive it. Writing fails with the errno
 * of the output, with ENOMEM, or with ECANCELED once wait has given up. Errors: -ENOMEM.
 */
int outbox_stream__new(FILE **out, struct outbox *o, outbox_wait_fn *wait, void *ctx);

/*
 * Nothing more will be written: wait until all is, and the output closed. Errors: -ECANCELED (wait
 * has given up), those of the output, now or earlier.
 */
int outbox_stream__finish(struct outbox *o, outbox_wait_fn *wait, void *ctx);

#endif /* HEAPSONDE_OUTBOX_STREAM_H */
