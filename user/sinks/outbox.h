/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue of bytes and the thread that writes it to a descriptor, which may hang.
 *
 * In:   whole records, from one thread (the owner).
 * Out:  the descriptor. If it is a file of lines, an output that broke off is cut
 *       back to its last whole line.
 *
 * No function here waits for the descriptor: whatever touches it, its closing
 * included, is done by the thread. The thread waits for pipes and sockets without
 * blocking in them, so that it can be told to give up. In a write to anything else
 * that hangs (a stopped terminal, a file on a dead server) it cannot: then it is
 * left behind with its memory and its descriptor until the write returns.
 */
#ifndef HEAPSONDE_OUTBOX_H
#define HEAPSONDE_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct outbox;

/*
 * fd is the outbox's from now on, errors included. is_lines: what is written are
 * lines. Errors: -ENOMEM, -EAGAIN (no thread), -EMFILE and -ENFILE (no eventfd).
 */
int outbox__new(struct outbox **out, int fd, bool is_lines);

/*
 * Queue n bytes, all or none. It is the caller who bounds the queue, by
 * outbox__queued. When the output has failed or is finished they are thrown away.
 * 0 or -ENOMEM.
 */
int outbox__put(struct outbox *o, const void *bytes, size_t n);

/* Write what is queued, even if it is little. */
void outbox__push(struct outbox *o);

/*
 * Nothing more will be put: write what is queued, close. Returns an eventfd, the
 * outbox's, that is readable when the thread is done, also if it was before.
 */
int outbox__finish(struct outbox *o);

/* Is the thread done? */
bool outbox__is_done(struct outbox *o);

/* Give up what is queued and free o. NULL is fine. Never waits. */
void outbox__free(struct outbox *o);

/* 0, or the negative errno of the first thing that failed. */
int outbox__error(struct outbox *o);

/* Bytes put that are not written yet, and bytes written. */
uint64_t outbox__queued(struct outbox *o);
uint64_t outbox__written(struct outbox *o);

#endif /* HEAPSONDE_OUTBOX_H */
