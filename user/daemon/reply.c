/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's answers; see reply.h. */
#include "user/daemon/reply.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/sinks/outbox.h"
#include "user/wire/wire.h"

#define WAIT_US 5000000

/* The rest of an answer. */
struct rest {
	struct outbox *outbox;
	sd_event_source *written, *deadline;
};

static size_t n_waiting;

static void rest__free(struct rest *r)
{
	sd_event_source_disable_unref(r->written);
	sd_event_source_disable_unref(r->deadline);
	outbox__free(r->outbox);
	free(r);
	n_waiting--;
}

static int on_written(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	(void)source;
	(void)fd;
	(void)events;
	rest__free(ctx);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t us, void *ctx)
{
	(void)source;
	(void)us;
	rest__free(ctx);
	return 0;
}

/* Queue n bytes for the connection, which this takes over. */
static void send_later(sd_event *loop, int connection, const char *bytes, size_t n)
{
	struct rest *r = calloc(1, sizeof(*r));
	int ret = -ENOMEM;

	if (!r) {
		close(connection);
		return;
	}
	n_waiting++;
	ret = outbox__new(&r->outbox, connection, false);
	if (!ret)
		ret = outbox__put(r->outbox, bytes, n);
	if (!ret)
		ret = sd_event_add_time_relative(loop, &r->deadline, CLOCK_MONOTONIC, WAIT_US, 0,
						 on_deadline, r);
	if (ret >= 0)
		ret = sd_event_add_io(loop, &r->written, outbox__finish(r->outbox), EPOLLIN,
				      on_written, r);
	if (ret < 0)
		rest__free(r);
}

void reply__send(sd_event *loop, int connection, json_t *object)
{
	size_t n = 0;
	char *line = object ? wire__line(object, &n) : NULL;
	ssize_t sent = -1;

	if (line) {
		sent = send(connection, line, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			sent = 0;
	}
	if (sent >= 0 && (size_t)sent < n)
		send_later(loop, connection, line + sent, n - (size_t)sent);
	else
		close(connection);
	free(line);
	json_decref(object);
}

json_t *reply__make_ok(uint32_t profile)
{
	json_t *o = wire__ok();

	if (o && json_object_set_new(o, "profile", json_integer(profile))) {
		json_decref(o);
		return NULL;
	}
	return o;
}

void reply__ok(sd_event *loop, int connection, uint32_t profile)
{
	reply__send(loop, connection, reply__make_ok(profile));
}

void reply__error(sd_event *loop, int connection, int code, const struct hs_error *err)
{
	reply__send(loop, connection, wire__error(code, err));
}

size_t reply__n_waiting(void)
{
	return n_waiting;
}
