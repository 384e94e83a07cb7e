/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heapsonde follow: write the records of a profile as they come.
 *
 * In:   the number of the profile.
 * Out:  its records on stdout, until the profile or the user ends it: whole lines only, or
 *       a capture, which may end anywhere.
 */
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/cli/cli.h"
#include "user/cli/common_args.h"
#include "user/cli/daemon_args.h"
#include "user/cli/output_file.h"
#include "user/client/client.h"
#include "user/collect/capture.h"

#define ROOM_MIN_BYTES 65536u
/* Longer than any record. */
#define ROOM_MAX_BYTES (256u << 20)
/* A pipe that is ready takes as much without blocking (PIPE_BUF). */
#define WRITE_BYTES 4096u

enum { OPT_FORMAT = 256 };

struct options {
	struct daemon_args args;
	const char *format_name; /* of --format; NULL: not given */
	enum sink_format format;
};

struct follower {
	struct client client;
	int signal_fd;
	char *bytes;
	size_t n, room;
	size_t n_whole;   /* up to the end of the last whole line; of a capture all */
	size_t n_written; /* of these */
	bool is_stopping; /* by a signal */
	bool has_ended;   /* the daemon sends no more */
	bool has_summary; /* the last record was it */
	/* If it is a capture: looks for the summary. */
	struct capture *capture; /* NULL: lines */
	struct capture_reader reader;
};

static const struct argp_option option_list[] = {
	{ "format", OPT_FORMAT, "FORMAT", 0,
	  "jsonl (default); hsd, a capture for `heapsonde report`, `export` and the like; or raw, "
	  "the same not compressed",
	  0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		state->child_inputs[0] = &o->args;
		return 0;
	case OPT_FORMAT:
		o->format_name = arg;
		return 0;
	case ARGP_KEY_END:
		o->format = output_file__argp_format(state, o->format_name, NULL);
		if (o->format != SINK_JSONL && isatty(STDOUT_FILENO))
			cli__argp_error(state, "a capture is not for a terminal");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int begin(struct follower *f, const struct options *o, struct hs_error *err)
{
	json_t *request, *answer = NULL;
	int ret = client__connect(&f->client, o->args.socket, err);

	if (ret)
		return ret;
	request = json_pack("{s:s, s:i}", "op", "follow", "profile", o->args.profile);
	/* Only if it need be: an older daemon knows nothing of it. */
	if (request && o->format != SINK_JSONL &&
	    json_object_set_new(request, "format", json_string(sink_format__name(o->format)))) {
		json_decref(request);
		request = NULL;
	}
	ret = request ? client__ask(&f->client, request, -1, &answer, err)
		      : hs_error__set(err, -ENOMEM, "out of memory");
	json_decref(request);
	json_decref(answer);
	if (ret)
		return ret;
	f->signal_fd = cli__open_signals(err);
	return f->signal_fd < 0 ? f->signal_fd : 0;
}

/* ---- in ---- */

/* Drop what has been written, and make room for more. Called with no whole line left. */
static int make_room(struct follower *f)
{
	f->n -= f->n_written;
	if (f->n)
		memmove(f->bytes, f->bytes + f->n_written, f->n);
	f->n_whole = f->n_written = 0;
	if (f->n == f->room) {
		size_t room = f->room ? 2 * f->room : ROOM_MIN_BYTES;
		char *grown = room > ROOM_MAX_BYTES ? NULL : realloc(f->bytes, room);

		if (!grown)
			return -ENOMEM;
		f->bytes = grown;
		f->room = room;
	}
	return 0;
}

/* ---- captures ---- */

static int see_json(void *ctx, json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));
	struct follower *f = ctx;

	f->has_summary = type && !strcmp(type, "summary");
	return 0;
}

static int see_event(void *ctx, const struct hs_event *event)
{
	(void)ctx;
	(void)event;
	return 0;
}

static int open_capture(struct follower *f, struct hs_error *err)
{
	int ret;

	f->reader.json = see_json;
	f->reader.event = see_event;
	f->reader.ctx = f;
	ret = capture__new(&f->capture, &f->reader);
	return ret ? hs_error__set(err, ret, "out of memory") : 0;
}

/* Any of its bytes may be written. */
static int take_capture(struct follower *f, size_t n, struct hs_error *err)
{
	f->n_whole = f->n;
	return capture__feed(f->capture, f->bytes + f->n - n, n, err);
}

/* ---- lines ---- */

/* Does the last of the whole lines say that this is the end? */
static bool ends_in_summary(const struct follower *f)
{
	static const char summary[] = "{\"type\":\"summary\"";
	const char *start = memrchr(f->bytes, '\n', f->n_whole - 1);
	size_t at = start ? (size_t)(start + 1 - f->bytes) : 0;

	return f->n_whole - at >= sizeof(summary) &&
	       !memcmp(f->bytes + at, summary, sizeof(summary) - 1);
}

static int receive(struct follower *f, struct hs_error *err)
{
	size_t old;
	ssize_t n;
	const char *newline;

	if (make_room(f))
		return hs_error__set(err, -ENOMEM, "out of memory");
	old = f->n;
	n = recv(f->client.fd, f->bytes + old, f->room - old, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		f->has_ended = true;
		return 0;
	}
	f->n += (size_t)n;
	if (f->capture)
		return take_capture(f, (size_t)n, err);
	newline = memrchr(f->bytes + old, '\n', (size_t)n);
	if (newline) {
		f->n_whole = (size_t)(newline + 1 - f->bytes);
		f->has_summary = ends_in_summary(f);
	}
	return 0;
}

/* ---- out ---- */

static int write_error(int code, struct hs_error *err)
{
	return hs_error__set(err, code, "cannot write the output: %s", strerror(-code));
}

static int write_some(struct follower *f, struct hs_error *err)
{
	size_t n = f->n_whole - f->n_written;
	ssize_t written;

	written = write(STDOUT_FILENO, f->bytes + f->n_written, n > WRITE_BYTES ? WRITE_BYTES : n);
	if (written < 0 && errno != EINTR && errno != EAGAIN)
		return write_error(-errno, err);
	if (written > 0)
		f->n_written += (size_t)written;
	return 0;
}

/*
 * A signal: the line that has been begun is still written, and nothing after it. A
 * second one does not wait for that.
 */
static void on_signal(struct follower *f)
{
	struct signalfd_siginfo info;
	const char *newline;

	if (read(f->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (f->is_stopping || f->capture || !f->n_written || f->bytes[f->n_written - 1] == '\n') {
		f->n_whole = f->n_written;
	} else {
		newline = memchr(f->bytes + f->n_written, '\n', f->n_whole - f->n_written);
		f->n_whole = newline ? (size_t)(newline + 1 - f->bytes) : f->n_written;
	}
	f->is_stopping = true;
}

static int copy(struct follower *f, struct hs_error *err)
{
	for (;;) {
		bool has_output = f->n_written < f->n_whole;
		struct pollfd fds[] = {
			{ .fd = f->signal_fd, .events = POLLIN },
			{ .fd = STDOUT_FILENO, .events = has_output ? POLLOUT : 0 },
			{ .fd = has_output ? -1 : f->client.fd, .events = POLLIN },
		};
		int ret = 0;

		if (!has_output && (f->is_stopping || f->has_ended))
			return 0;
		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[0].revents)
			on_signal(f);
		else if (!has_output && fds[1].revents & (POLLERR | POLLHUP | POLLNVAL))
			ret = write_error(-EPIPE, err);
		else if (fds[1].revents && has_output)
			ret = write_some(f, err);
		else if (fds[2].revents)
			ret = receive(f, err);
		if (ret)
			return ret;
	}
}

static int run(struct follower *f, const struct options *o, struct hs_error *err)
{
	int ret = o->format == SINK_JSONL ? 0 : open_capture(f, err);

	if (!ret)
		ret = begin(f, o, err);
	if (!ret)
		ret = copy(f, err);
	if (!ret && !f->is_stopping && !f->has_summary)
		ret = hs_error__set(err, -ECONNRESET,
				    "the daemon has closed the connection before the end of "
				    "profile %d",
				    o->args.profile);
	return ret;
}

int cmd_follow(int argc, char **argv)
{
	static const struct argp_child children[] = { { &daemon_args__argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = { option_list,
					  parse,
					  "PROFILE",
					  "Write the records of a profile to standard output, from "
					  "now on until it ends, or Ctrl-C.",
					  children,
					  NULL,
					  NULL };
	struct follower f = { .client.fd = -1, .signal_fd = -1 };
	struct options o = { 0 };
	struct hs_error err;
	int status = 0;

	if (common_args__parse(&argp, argc, argv, 0, &o))
		return CLI_EXIT_USAGE;
	if (run(&f, &o, &err))
		status = cli__die(&err);
	client__close(&f.client);
	capture__free(f.capture);
	if (f.signal_fd >= 0)
		close(f.signal_fd);
	free(f.bytes);
	return status;
}
