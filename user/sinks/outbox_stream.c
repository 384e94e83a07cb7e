/* SPDX-License-Identifier: BSD-2-Clause */
/* An outbox as a stdio stream; see outbox_stream.h. */
#include "user/sinks/outbox_stream.h"

#include <errno.h>
#include <stdlib.h>

struct outbox_stream {
	struct outbox *outbox;
	outbox_wait_fn *wait;
	void *ctx;
};

/* 0, or a negative errno: there will be no room. */
static int wait_for_room(const struct outbox_stream *s)
{
	int err;

	while (!(err = outbox__error(s->outbox)) &&
	       outbox__queued(s->outbox) >= OUTBOX_STREAM_QUEUE_BYTES)
		if (!s->wait(s->ctx, -1))
			return -ECANCELED;
	return err;
}

/* What stdio calls to write. */
static ssize_t put(void *cookie, const char *bytes, size_t n)
{
	const struct outbox_stream *s = cookie;
	int err = wait_for_room(s);

	if (!err)
		err = outbox__put(s->outbox, bytes, n);
	if (err) {
		errno = -err;
		return 0;
	}
	/* It cannot tell a flush from a full buffer. */
	outbox__push(s->outbox);
	return (ssize_t)n;
}

static int end(void *cookie)
{
	free(cookie);
	return 0;
}

int outbox_stream__new(FILE **out, struct outbox *o, outbox_wait_fn *wait, void *ctx)
{
	const cookie_io_functions_t io = { .write = put, .close = end };
	struct outbox_stream *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct outbox_stream){ .outbox = o, .wait = wait, .ctx = ctx };
	*out = fopencookie(s, "w", io);
	if (*out)
		return 0;
	free(s);
	return -ENOMEM;
}

int outbox_stream__finish(struct outbox *o, outbox_wait_fn *wait, void *ctx)
{
	int done_fd = outbox__finish(o);

	while (!outbox__is_done(o))
		if (!wait(ctx, done_fd))
			return -ECANCELED;
	return outbox__error(o);
}
