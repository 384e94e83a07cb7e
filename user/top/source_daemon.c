/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile in the daemon, for users who are not root; see source.h.
 *
 * The daemon writes a raw capture into a pipe of ours, which is read as it comes. The
 * profile is bound to our connection: however we end, the daemon notices and discards it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/client/start_request.h"
#include "user/client/client.h"
#include "user/collect/capture.h"
#include "user/top/source.h"
#include "user/track/pipeline.h"

#define READ_BYTES (256u << 10)
/* What a step reads at most. */
#define STEP_BYTES (4u << 20)
#define PIPE_BYTES (1 << 20)
/* How long the end may take until it is the daemon's affair alone. */
#define FINISH_MS 10000

struct remote {
	struct source base;
	struct source_options options;
	struct client client;      /* the profile lives as long as this connection */
	struct client rate_client; /* a change of the rate that is under way; fd -1: none */
	int pipe_fd;               /* the records; -1: they have ended */
	json_int_t profile;
	struct symbolizer *symbolizer;
	struct pipeline pipeline;
	struct capture_reader reader;
	struct capture *capture;
	char *buffer;
};

/* ---- running ---- */

static int fds(const struct source *s, struct pollfd *fds)
{
	const struct remote *r = (const struct remote *)s;

	/* Those that are -1 are passed over by poll. */
	fds[0] = (struct pollfd){ .fd = r->pipe_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = r->client.fd, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = r->rate_client.fd, .events = POLLIN };
	return 3;
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

/* The records have come to their end. */
static int end_records(struct remote *r, struct hs_error *err)
{
	int ret;

	close(r->pipe_fd);
	r->pipe_fd = -1;
	r->base.has_ended = true;
	r->base.has_rate = false;
	ret = capture__end(r->capture, err);
	if (!ret && r->reader.is_cut)
		ret = hs_error__set(err, -EIO,
				    "the daemon has ended the recording before its summary");
	return ret;
}

/* 1: there may be more, 0: not now, or an error with a text. */
static int read_records(struct remote *r, struct hs_error *err)
{
	for (size_t done = 0; done < STEP_BYTES && r->pipe_fd >= 0;) {
		ssize_t n = read(r->pipe_fd, r->buffer, READ_BYTES);
		int ret;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN
				       ? 0
				       : hs_error__set(err, -errno, "cannot read the records: %s",
						       strerror(errno));
		if (n == 0)
			return end_records(r, err);
		ret = capture__feed(r->capture, r->buffer, (size_t)n, err);
		if (ret)
			return ret;
		done += (size_t)n;
	}
	return r->pipe_fd >= 0;
}

/*
 * What the daemon says of the profile or of the rate. Its last words about the profile
 * come after the records, which say the same.
 */
static void hear(struct remote *r)
{
	json_t *answer = NULL;
	struct hs_error refusal;
	int ret;

	if (is_readable(r->rate_client.fd)) {
		ret = client__receive(&r->rate_client, &answer, &refusal);
		if (ret) {
			client__close(&r->rate_client);
			r->base.has_rate = !r->base.has_ended;
		}
		if (ret < 0)
			r->base.refusal = refusal;
		json_decref(answer);
		answer = NULL;
	}
	if (is_readable(r->client.fd)) {
		/* With the connection gone nobody writes any more: the pipe tells. */
		if (client__receive(&r->client, &answer, &refusal))
			client__close(&r->client);
		json_decref(answer);
	}
}

static int step(struct source *s, struct hs_error *err)
{
	struct remote *r = (struct remote *)s;

	if (s->has_ended)
		return 0;
	hear(r);
	return read_records(r, err);
}

static int set_rate(struct source *s, double rate, struct hs_error *err)
{
	struct remote *r = (struct remote *)s;
	json_t *request =
		json_pack("{s:s, s:I, s:f}", "op", "rate", "profile", r->profile, "rate", rate);
	int ret;

	if (!request)
		return hs_error__set(err, -ENOMEM, "out of memory");
	ret = client__connect(&r->rate_client, r->options.socket, err);
	if (!ret)
		ret = client__send(&r->rate_client, request, -1, err);
	json_decref(request);
	if (ret)
		client__close(&r->rate_client);
	else
		s->has_rate = false;
	return ret;
}

/* The daemon is told, and its last records are taken in until it closes the pipe. */
static int finish(struct source *s, enum end_reason reason, struct hs_error *err)
{
	struct remote *r = (struct remote *)s;
	struct pollfd p = { .events = POLLIN };
	int ret = 0;

	(void)reason;
	if (s->has_ended)
		return 0;
	client__shutdown(&r->client);
	while (!s->has_ended && ret >= 0) {
		p.fd = r->pipe_fd;
		if (poll(&p, 1, FINISH_MS) <= 0)
			return hs_error__set(err, -ETIMEDOUT, "the daemon does not respond");
		ret = read_records(r, err);
	}
	return ret < 0 ? ret : 0;
}

static void free_remote(struct source *s)
{
	struct remote *r = (struct remote *)s;

	if (r->pipe_fd >= 0)
		close(r->pipe_fd);
	client__close(&r->rate_client);
	client__close(&r->client);
	capture__free(r->capture);
	pipeline__deinit(&r->pipeline);
	symbolizer__free(r->symbolizer);
	free(r->buffer);
	free(r);
}

static const struct source_ops ops = {
	.fds = fds,
	.step = step,
	.set_rate = set_rate,
	.finish = finish,
	.free = free_remote,
};

/* ---- beginning ---- */

/* Send the request with the pipe's other end, and wait for the answer. */
static int start(struct remote *r, struct hs_error *err)
{
	const struct start_request request = { .pid = r->options.pid,
					       .profile = r->options.profile,
					       .format = SINK_RAW,
					       .is_bound = true };
	json_t *json = start_request__json(&request), *answer = NULL;
	int ends[2], ret;

	if (!json)
		return hs_error__set(err, -ENOMEM, "out of memory");
	if (pipe2(ends, O_CLOEXEC)) {
		json_decref(json);
		return hs_error__set(err, -errno, "no pipe: %s", strerror(errno));
	}
	r->pipe_fd = ends[0];
	/* Only ours: the daemon's end has flags of its own. More room is a wish. */
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
	ret = client__ask(&r->client, json, ends[1], &answer, err);
	close(ends[1]);
	json_decref(json);
	r->profile = json_integer_value(json_object_get(answer, "profile"));
	json_decref(answer);
	return ret;
}

static int prepare(struct remote *r, struct hs_error *err)
{
	int ret;

	r->buffer = malloc(READ_BYTES);
	ret = r->buffer ? symbolizer__new_empty(&r->symbolizer) : -ENOMEM;
	if (!ret)
		ret = pipeline__init(&r->pipeline, r->symbolizer, r->options.sink, 0, false);
	r->pipeline.heap = r->options.heap;
	r->reader = (struct capture_reader){ .json = pipeline__json,
					     .event = pipeline__event,
					     .ctx = &r->pipeline,
					     .symbolizer = r->symbolizer };
	if (!ret)
		ret = capture__new(&r->capture, &r->reader);
	return ret ? hs_error__set(err, ret, "out of memory") : 0;
}

int source__begin_daemon(struct source **out, const struct source_options *o, struct hs_error *err)
{
	struct remote *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return hs_error__set(err, -ENOMEM, "out of memory");
	r->base = (struct source){ .ops = &ops, .has_rate = true, .wait_ms = -1 };
	r->options = *o;
	r->client.fd = -1;
	r->rate_client.fd = -1;
	r->pipe_fd = -1;
	ret = prepare(r, err);
	if (!ret)
		ret = client__connect(&r->client, o->socket, err);
	if (!ret)
		ret = start(r, err);
	if (ret) {
		free_remote(&r->base);
		return ret;
	}
	*out = &r->base;
	return 0;
}
