/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepting, reading requests, writing answers; see connections.h.
 *
 * In:   the sockets.
 * Out:  requests to the handler, answers to the clients.
 */
#include "user/daemon/connections.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/daemon/log.h"
#include "user/wire/wire.h"

/* Connections that are accepted at a time. */
#define ACCEPT_BATCH 32
/* How long to let it be when there are no descriptors left. */
#define ACCEPT_PAUSE_US 100000u
#define TIMER_ACCURACY_US 250000u

struct connection {
	struct connection *next, **at; /* at: where the pointer to this one is */
	struct connections *all;
	int fd;
	struct ucred peer;
	sd_event_source *io, *timer;
	struct wire_message message;
	char *answer; /* when the request is done with */
	size_t n_answer, n_sent;
};

struct connections {
	sd_event *event;
	int fd;
	sd_event_source *io, *pause;
	connection_request_fn *on_request;
	void *ctx;
	struct connection *first;
};

/* ---- connections ---- */

void connection__free(struct connection *c)
{
	if (!c)
		return;
	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	sd_event_source_disable_unref(c->io);
	sd_event_source_disable_unref(c->timer);
	close(c->fd);
	wire_message__deinit(&c->message);
	free(c->answer);
	free(c);
}

static int on_timeout(sd_event_source *source, uint64_t us, void *ctx)
{
	(void)source;
	(void)us;
	connection__free(ctx);
	return 0;
}

/* Takes fd over. NULL if memory is short. */
static struct connection *connection__new(struct connections *cs, int fd, const struct ucred *peer)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return NULL;
	}
	c->all = cs;
	c->fd = fd;
	c->peer = *peer;
	wire_message__init(&c->message);
	c->next = cs->first;
	if (c->next)
		c->next->at = &c->next;
	c->at = &cs->first;
	cs->first = c;
	if (sd_event_add_time_relative(cs->event, &c->timer, CLOCK_MONOTONIC, CONNECTION_US,
				       TIMER_ACCURACY_US, on_timeout, c) < 0) {
		connection__free(c);
		return NULL;
	}
	return c;
}

uid_t connection__uid(const struct connection *c)
{
	return c->peer.uid;
}

gid_t connection__gid(const struct connection *c)
{
	return c->peer.gid;
}

int connection__fd(const struct connection *c)
{
	return c->fd;
}

void connection__drop_request(struct connection *c)
{
	wire__drop(c->fd);
}

/* ---- answers ---- */

static int on_writable(sd_event_source *source, int fd, uint32_t events, void *ctx);

/* Write what the socket takes, and end the connection if that was all. */
static void write_answer(struct connection *c)
{
	while (c->n_sent < c->n_answer) {
		ssize_t n = send(c->fd, c->answer + c->n_sent, c->n_answer - c->n_sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			/* The first time only: the source of the request is done with. */
			if (!c->io && sd_event_add_io(c->all->event, &c->io, c->fd, EPOLLOUT,
						      on_writable, c) < 0)
				break;
			return;
		}
		if (n < 0)
			break;
		c->n_sent += (size_t)n;
	}
	connection__free(c);
}

static int on_writable(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	(void)source;
	(void)fd;
	(void)events;
	write_answer(ctx);
	return 0;
}

void connection__answer(struct connection *c, json_t *answer)
{
	/* What is unread when a socket is closed makes an error of its end. */
	wire__drop(c->fd);
	c->io = sd_event_source_disable_unref(c->io);
	c->answer = answer ? wire__line(answer, &c->n_answer) : NULL;
	json_decref(answer);
	if (c->answer)
		write_answer(c);
	else
		connection__free(c);
}

void connections__answer_on(struct connections *cs, int fd, json_t *answer)
{
	static const struct ucred nobody = { 0 };
	struct connection *c = connection__new(cs, fd, &nobody);

	if (c)
		connection__answer(c, answer);
	else
		json_decref(answer);
}

static void answer_error(struct connection *c, int code)
{
	struct hs_error err;

	if (code == -EMSGSIZE)
		hs_error__set(&err, code, "the request is longer than %d bytes",
			      WIRE_REQUEST_MAX_BYTES);
	else if (code == -EBADMSG)
		hs_error__set(&err, code, "the request is not a JSON object in a line");
	else
		hs_error__set(&err, code, "cannot read the request: %s", strerror(-code));
	connection__answer(c, wire__error(code, &err));
}

/* ---- requests ---- */

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	struct connection *c = ctx;
	json_t *request = NULL;
	int ret;

	(void)events;
	do {
		ret = wire__peek_line(fd, &c->message, WIRE_REQUEST_MAX_BYTES, &request);
	} while (!ret);
	if (ret == -EAGAIN)
		return 0;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	if (ret == 1)
		c->all->on_request(c->all->ctx, c, request);
	else if (ret == -ECONNRESET || ret == -EPIPE)
		connection__free(c);
	else
		answer_error(c, ret);
	json_decref(request);
	return 0;
}

/* ---- accepting ---- */

static bool is_too_many(const struct connections *cs, uid_t uid)
{
	size_t n = 0, n_of_uid = 0;

	for (const struct connection *c = cs->first; c; c = c->next) {
		n++;
		n_of_uid += c->peer.uid == uid;
	}
	return n_of_uid >= CONNECTIONS_PER_UID ||
	       n >= (uid ? CONNECTIONS_OF_USERS : CONNECTIONS_MAX);
}

/* What fits into the socket at once will do. */
static void refuse(int fd)
{
	struct hs_error err;
	json_t *answer;

	hs_error__set(&err, -EDQUOT, "too many unfinished requests: wait for their answers");
	answer = wire__error(-EDQUOT, &err);
	if (answer)
		wire__send_line(fd, answer, NULL, 0);
	json_decref(answer);
	close(fd);
}

static void welcome(struct connections *cs, int fd)
{
	struct connection *c;
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len)) {
		close(fd);
		return;
	}
	if (is_too_many(cs, peer.uid)) {
		refuse(fd);
		return;
	}
	c = connection__new(cs, fd, &peer);
	/* Edge-triggered, because the request stays where it is. Not read before the
	 * loop has seen it: then it has also seen what workers said before that. */
	if (c && sd_event_add_io(cs->event, &c->io, fd, EPOLLIN | EPOLLET, on_readable, c) < 0)
		connection__free(c);
}

static int on_pause_end(sd_event_source *source, uint64_t us, void *ctx)
{
	struct connections *cs = ctx;

	(void)source;
	(void)us;
	sd_event_source_set_enabled(cs->io, SD_EVENT_ON);
	return 0;
}

/* No descriptors or no memory: the connections wait in the kernel meanwhile. */
static void pause_accepting(struct connections *cs, int code)
{
	log__line(LOG_PRIORITY_WARNING, "cannot accept connections: %s", strerror(-code));
	sd_event_source_set_time_relative(cs->pause, ACCEPT_PAUSE_US);
	sd_event_source_set_enabled(cs->pause, SD_EVENT_ONESHOT);
	sd_event_source_set_enabled(cs->io, SD_EVENT_OFF);
}

static int on_connection(sd_event_source *source, int listening, uint32_t events, void *ctx)
{
	struct connections *cs = ctx;

	(void)source;
	(void)events;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			welcome(cs, fd);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno != EAGAIN)
			pause_accepting(cs, -errno);
		break;
	}
	return 0;
}

int connections__new(struct connections **out, sd_event *event, int fd,
		     connection_request_fn *on_request, void *ctx)
{
	struct connections *cs = calloc(1, sizeof(*cs));
	int ret;

	if (!cs) {
		close(fd);
		return -ENOMEM;
	}
	cs->event = event;
	cs->fd = fd;
	cs->on_request = on_request;
	cs->ctx = ctx;
	ret = sd_event_add_io(event, &cs->io, fd, EPOLLIN, on_connection, cs);
	if (ret >= 0)
		ret = sd_event_add_time_relative(event, &cs->pause, CLOCK_MONOTONIC, 0, 0,
						 on_pause_end, cs);
	if (ret >= 0)
		ret = sd_event_source_set_enabled(cs->pause, SD_EVENT_OFF);
	if (ret < 0) {
		connections__free(cs);
		return ret;
	}
	*out = cs;
	return 0;
}

void connections__free(struct connections *cs)
{
	if (!cs)
		return;
	while (cs->first)
		connection__free(cs->first);
	sd_event_source_disable_unref(cs->io);
	sd_event_source_disable_unref(cs->pause);
	close(cs->fd);
	free(cs);
}
