/* SPDX-License-Identifier: BSD-2-Clause */
/* The HTTP side of metrics.h. */
#include "user/daemon/metrics.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "user/common/clock.h"
#include "user/daemon/metrics_listen.h"
#include "user/daemon/metrics_text.h"
#include "user/daemon/usage.h"

/* Rounds of the server in one metrics__run. */
#define RUNS_MAX 8

struct metrics {
	struct MHD_Daemon *http;
	int epoll;      /* what the supervisor watches: the next two */
	int http_epoll; /* MHD's own */
	int timer;      /* for MHD's timeouts */
	json_t *(*snapshot)(void *ctx);
	void *ctx;
	struct metrics_view view;
	struct MHD_Response *text; /* the last, or NULL */
	uint64_t fresh_until_ms;
};

static uint64_t now_ms(void)
{
	return clock__now_ns() / 1000000;
}

/* ---- the snapshot ---- */

/* What the supervisor does not say of itself. */
static int add_daemon(json_t *snapshot)
{
	json_int_t n = (json_int_t)json_array_size(json_object_get(snapshot, "targets"));

	if (json_object_get(snapshot, "daemon"))
		return 0;
	return json_object_set_new(snapshot, "daemon",
				   json_pack("{s:I, s:I, s:I}", "cpu_ns",
					     (json_int_t)usage__cpu_ns(), "rss_bytes",
					     (json_int_t)usage__resident_bytes(), "workers", n));
}

static int render(struct metrics *m, char **text, size_t *len)
{
	json_t *snapshot = m->snapshot(m->ctx);
	int err = !snapshot || add_daemon(snapshot) ? -ENOMEM : 0;

	if (!err)
		err = metrics_view__update(&m->view, snapshot);
	if (!err)
		err = metrics_text__render(&m->view, text, len);
	json_decref(snapshot);
	return err;
}

/* ---- answers ---- */

static struct MHD_Response *fixed(const char *text, const char *type)
{
	struct MHD_Response *r =
		MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);

	if (r)
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	return r;
}

/* Queue and drop r, which may be NULL: the connection is closed then. */
static enum MHD_Result queue(struct MHD_Connection *c, unsigned int status, struct MHD_Response *r)
{
	enum MHD_Result ret = r ? MHD_queue_response(c, status, r) : MHD_NO;

	if (r)
		MHD_destroy_response(r);
	return ret;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned int status, const char *text)
{
	struct MHD_Response *r = fixed(text, "text/plain; charset=utf-8");

	if (r && status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (r && status != MHD_HTTP_NOT_FOUND)
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	return queue(c, status, r);
}

/* Answers that are being sent keep the response that they have. */
static void renew(struct metrics *m)
{
	uint64_t now = now_ms();
	char *text = NULL;
	size_t len = 0;

	if (m->text && now < m->fresh_until_ms)
		return;
	if (m->text)
		MHD_destroy_response(m->text);
	m->text = NULL;
	if (render(m, &text, &len))
		return;
	m->text = MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	if (!m->text) {
		free(text);
		return;
	}
	MHD_add_response_header(m->text, MHD_HTTP_HEADER_CONTENT_TYPE,
				"text/plain; version=0.0.4; charset=utf-8");
	MHD_add_response_header(m->text, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	m->fresh_until_ms = now + METRICS_FRESH_MS;
}

static enum MHD_Result answer_metrics(struct metrics *m, struct MHD_Connection *c)
{
	renew(m);
	if (!m->text)
		return refuse(c, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
	return MHD_queue_response(c, MHD_HTTP_OK, m->text);
}

static bool has_body(struct MHD_Connection *c)
{
	const char *length =
		MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return (length && strcmp(length, "0") != 0) ||
	       MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **request)
{
	static const char page[] =
		"<!DOCTYPE html><title>heapsonde</title>"
		"<p>heapsonde " HEAPSONDE_VERSION ": <a href=\"/metrics\">metrics</a>\n";
	static int seen;

	(void)version;
	(void)upload;
	(void)upload_size;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
	if (has_body(c))
		return refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, "no request bodies\n");
	if (!*request) { /* the headers are there; an answer now would close the connection */
		*request = &seen;
		return MHD_YES;
	}
	if (!strcmp(url, "/metrics"))
		return answer_metrics(ctx, c);
	if (!strcmp(url, "/"))
		return queue(c, MHD_HTTP_OK, fixed(page, "text/html; charset=utf-8"));
	return refuse(c, MHD_HTTP_NOT_FOUND, "there is /metrics\n");
}

/* ---- beginning, running, end ---- */

/* Ask to be called when the next timeout of MHD's is due. */
static void set_timer(struct metrics *m)
{
	struct itimerspec when = { 0 };
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(m->http, &ms) == MHD_YES) {
		when.it_value.tv_sec = (time_t)(ms / 1000);
		when.it_value.tv_nsec = (long)(ms % 1000) * 1000000;
		if (!ms)
			when.it_value.tv_nsec = 1;
	}
	timerfd_settime(m->timer, 0, &when, NULL);
}

void metrics__run(struct metrics *m)
{
	MHD_UNSIGNED_LONG_LONG ms;
	uint64_t expired;

	if (read(m->timer, &expired, sizeof(expired)) < 0)
		expired = 0; /* so it is readable for another reason */
	/* Twice at least: where a connection goes that was one of the most that there
	 * may be, only the next run listens for others again. */
	for (int i = 0; i < RUNS_MAX; i++) {
		MHD_run(m->http);
		if (i && (MHD_get_timeout(m->http, &ms) != MHD_YES || ms))
			break;
	}
	set_timer(m);
}

static void ignore_log(void *ctx, const char *format, va_list args)
{
	(void)ctx;
	(void)format;
	(void)args;
}

/* Takes over the socket. */
static int start_http(struct metrics *m, int socket)
{
	const union MHD_DaemonInfo *info;

	m->http = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, m,
				   MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL,
				   MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT,
				   (unsigned int)METRICS_CONNECTIONS_MAX,
				   MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)METRICS_TIMEOUT_S,
				   MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				   (size_t)METRICS_CONNECTION_BYTES, MHD_OPTION_END);
	if (!m->http) {
		close(socket);
		return -ENOMEM;
	}
	info = MHD_get_daemon_info(m->http, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info || info->epoll_fd < 0)
		return -ENOSYS;
	m->http_epoll = info->epoll_fd;
	return 0;
}

static int watch(struct metrics *m)
{
	struct epoll_event e = { .events = EPOLLIN };

	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	m->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (m->epoll < 0 || m->timer < 0 || epoll_ctl(m->epoll, EPOLL_CTL_ADD, m->http_epoll, &e) ||
	    epoll_ctl(m->epoll, EPOLL_CTL_ADD, m->timer, &e))
		return -errno;
	return 0;
}

int metrics__new(struct metrics **out, const char *addr_port, json_t *(*snapshot)(void *ctx),
		 void *ctx, struct hs_error *err)
{
	struct metrics *m = calloc(1, sizeof(*m));
	int ret, socket;

	*out = NULL;
	if (!m)
		return hs_error__set(err, -ENOMEM, "out of memory");
	m->epoll = m->timer = -1;
	m->snapshot = snapshot;
	m->ctx = ctx;
	socket = metrics_listen(addr_port, err);
	ret = socket < 0 ? socket : 0;
	if (!ret) {
		ret = start_http(m, socket);
		if (!ret)
			ret = watch(m);
		if (ret)
			hs_error__set(err, ret, "cannot serve metrics: %s", strerror(-ret));
	}
	if (ret) {
		metrics__free(m);
		return ret;
	}
	*out = m;
	return 0;
}

int metrics__fd(const struct metrics *m)
{
	return m->epoll;
}

int metrics__port(const struct metrics *m)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(m->http, MHD_DAEMON_INFO_LISTEN_FD);

	return info ? metrics_listen__port(info->listen_fd) : -1;
}

void metrics__free(struct metrics *m)
{
	if (!m)
		return;
	if (m->http)
		MHD_stop_daemon(m->http);
	if (m->text)
		MHD_destroy_response(m->text);
	if (m->epoll >= 0)
		close(m->epoll);
	if (m->timer >= 0)
		close(m->timer);
	metrics_view__deinit(&m->view);
	free(m);
}
