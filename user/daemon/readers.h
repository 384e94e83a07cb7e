/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Those who get the records of a profile: its output, and any number of followers.
 *
 * In:   descriptors; the records, through a fanout (user/sinks/consumer.h).
 * Out:  the records, each reader at its own pace.
 *
 * A follower that hangs up is gone at once; an output that fails stays, so that its
 * error can be told.
 */
#ifndef HEAPSONDE_READERS_H
#define HEAPSONDE_READERS_H

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "user/sinks/consumer.h"

struct readers;

/* fanout and loop are borrowed and must outlive *out. Errors: -ENOMEM. */
int readers__new(struct readers **out, struct sink *fanout, sd_event *loop);

/* NULL is fine. What waits is given up. */
void readers__free(struct readers *r);

/* The output. fd is taken over in any case. Once at most. Errors: consumer__new. */
int readers__add_output(struct readers *r, int fd, enum sink_format format);

/*
 * A follower. fd: a socket, taken over in any case. *consumer: to be introduced by
 * the caller, after which readers__join lets the records in. Errors: consumer__new.
 */
int readers__add_follower(struct readers *r, int fd, enum sink_format format,
			  struct sink **consumer);
int readers__join(struct readers *r, struct sink *consumer);
void readers__drop(struct readers *r, struct sink *consumer);

/*
 * No more records come: when all that waits is written, or 5 s have passed in which no
 * output has got on by 1 MiB, call done(ctx), perhaps at once. Errors: -ENOMEM, and done has not
 * been called.
 */
int readers__finish(struct readers *r, void (*done)(void *ctx), void *ctx);

size_t readers__n_followers(const struct readers *r);
bool readers__has_output(const struct readers *r);
uint64_t readers__output_bytes(const struct readers *r);
int readers__output_error(const struct readers *r); /* negative errno or 0 */
struct consumer_losses readers__output_losses(const struct readers *r);

#endif /* HEAPSONDE_READERS_H */
