/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sink that never blocks: for outputs whose other end is not ours.
 *
 * In:   what every sink gets (sink.h).
 * Out:  a file, pipe or socket in one of the formats, written by a thread of its
 *       own through a queue of bounded size (outbox.h).
 *
 * When the queue is full records are left out, whole ones, and counted: allocations
 * first, from three quarters on until it is half empty again; at seven eighths the
 * other events and the counters; at its end the records that have no fixed form, but
 * for the summary, which always gets in. When it is half empty again a loss record with the
 * cause `output_full` says how many, how many samples were in them, and how many of
 * them told what became of a block; a summary counts them in its `lost`. (The
 * queue may be longer than its size by the record that was let in last.)
 *
 * A consumer may join at any time: a stack or a thread is told to it before its
 * first use, however late. (Of the rates in force it is told by who lets it join.) A
 * rate event that finds no room is told later, but before any allocation at that
 * rate.
 *
 * Functions of a consumer return 0 even when its output has failed, so that a
 * profile outlives its readers; consumer__error tells. After that records are
 * thrown away uncounted. All functions are for one thread.
 */
#ifndef HEAPSONDE_CONSUMER_H
#define HEAPSONDE_CONSUMER_H

#include <stdbool.h>

#include "user/sinks/consumer_losses.h"
#include "user/sinks/sink.h"

/*
 * Bytes of the queue: for a reader who may stop reading; for a file, which is written soon but may
 * have to wait for a busy processor or disk for longer than a burst of allocations takes; and at
 * least.
 */
#define CONSUMER_QUEUE_BYTES (4u << 20)
#define CONSUMER_FILE_QUEUE_BYTES (16u << 20)
#define CONSUMER_QUEUE_MIN_BYTES (1u << 20)

/*
 * Write to fd, which is the consumer's from now on, errors included. fd may block:
 * only the consumer's thread waits for it, and touches it at all. It may close it at
 * any time (when the output fails), so whoever wants to watch it needs a duplicate. queue_bytes:
 * less than the minimum is taken for it. Errors: -ENOMEM, -EAGAIN (no thread), -EMFILE and -ENFILE
 * (two eventfds are needed).
 */
int consumer__new(struct sink **out, int fd, enum sink_format format, size_t queue_bytes);

/* What became of the output: 0, or the negative errno of the first thing that failed. */
int consumer__error(const struct sink *consumer);

/* What it lacks because it was full, so far. */
struct consumer_losses consumer__losses(const struct sink *consumer);

/* Its records. */
uint64_t consumer__dropped(const struct sink *consumer);

/* Bytes written so far, and bytes that wait. */
uint64_t consumer__written(const struct sink *consumer);
uint64_t consumer__queued(const struct sink *consumer);

/*
 * No more records will come: let the thread write what waits and close. Readable on
 * the returned eventfd (the consumer's; sink__free closes it) when the thread is
 * done, in one way or the other; it may take for ever. sink__free never waits: what
 * is not written by then is given up, and the thread closes and ends on its own, at
 * once unless it hangs in something that is neither a pipe nor a socket.
 */
int consumer__finish(struct sink *consumer);

/*
 * Several sinks as one. Its sinks are borrowed; those added must be removed before
 * they are freed, and sink__free frees the fanout only. Of errors its functions
 * return the first one, after all sinks have been told. Errors: -ENOMEM.
 */
int fanout__new(struct sink **out);
int fanout__add(struct sink *fanout, struct sink *s);
void fanout__remove(struct sink *fanout, struct sink *s);

#endif /* HEAPSONDE_CONSUMER_H */
