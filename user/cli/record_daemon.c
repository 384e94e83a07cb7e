/* SPDX-License-Identifier: BSD-2-Clause */
/* See record_daemon.h. */
#include "user/cli/record_daemon.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "user/cli/cli.h"
#include "user/cli/output_file.h"
#include "user/cli/profile_args.h"
#include "user/cli/record_notes.h"
#include "user/client/start_request.h"
#include "user/client/client.h"
#include "user/common/say.h"

struct recording {
	const struct record_options *options;
	struct client client;
	struct child *child; /* NULL with -p */
	struct output_file file;
	char *output; /* its name, expanded; NULL: stdout */
	int signal_fd;
	int n_signals; /* to us, with a command */
	bool has_begun;
	bool is_interrupted; /* by the user */
	bool is_given_up;    /* he does not want to wait for the daemon either */
	bool is_ending;      /* the daemon knows */
};

bool record_daemon__is_wanted(const char *socket)
{
	return socket || (geteuid() && client__is_there(NULL));
}

/* ---- waiting ---- */

/*
 * A signal to us; see session.c for what it means with a command. One more than ends
 * the recording gives up waiting for the daemon, which may hang.
 */
static void on_signal(struct recording *r)
{
	struct signalfd_siginfo info;

	while (read(r->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (!r->child || r->n_signals++) {
			r->is_given_up = r->is_interrupted;
			r->is_interrupted = true;
			continue;
		}
		if (info.ssi_code != SI_KERNEL)
			kill(child__pid(r->child), (int)info.ssi_signo);
	}
}

static void end(struct recording *r)
{
	if (!r->is_ending)
		client__shutdown(&r->client);
	r->is_ending = true;
}

/*
 * Wait for the daemon's next line; tell it to end when the user wants that, or when
 * standard output has nobody who reads. 0 or an error with a text.
 */
static int wait_line(struct recording *r, json_t **line, struct hs_error *err)
{
	bool is_unread = false;

	for (;;) {
		struct pollfd fds[] = {
			{ .fd = r->client.fd, .events = POLLIN },
			{ .fd = r->signal_fd, .events = POLLIN },
			{ .fd = r->options->output || is_unread ? -1 : STDOUT_FILENO },
		};
		int ret;

		if (r->has_begun && (r->is_interrupted || is_unread))
			end(r);
		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[0].revents) {
			ret = client__receive(&r->client, line, err);
			if (ret)
				return ret < 0 ? ret : 0;
		}
		if (fds[1].revents)
			on_signal(r);
		if (r->is_given_up)
			return hs_error__set(err, -EINTR, "interrupted before the daemon was done");
		is_unread |= fds[2].revents != 0;
	}
}

/* ---- the steps ---- */

static int send_start(struct recording *r, struct hs_error *err)
{
	const struct record_options *o = r->options;
	struct profile_options profile = o->profile; /* what it points to stays o's */
	struct start_request request = { .pid = r->child ? child__pid(r->child) : o->pid,
					 .profile = &profile,
					 .format = o->format,
					 .is_bound = true,
					 .duration_s = o->duration_s,
					 .top = o->top };
	json_t *json;
	int ret;

	profile_args__fill_memory(&profile.attach);
	json = start_request__json(&request);
	if (!json)
		return hs_error__set(err, -ENOMEM, "out of memory");
	ret = client__send(&r->client, json, o->output ? r->file.fd : STDOUT_FILENO, err);
	json_decref(json);
	/* A daemon that would not read it all has perhaps said why. */
	return ret == -EPIPE || ret == -ECONNRESET ? 0 : ret;
}

static int open_file(struct recording *r, struct hs_error *err)
{
	const struct record_options *o = r->options;
	int ret;

	if (!o->output)
		return 0;
	ret = output_file__expand(o->output, r->child ? child__pid(r->child) : o->pid, &r->output,
				  err);
	if (!ret)
		ret = output_file__open(&r->file, r->output, o->force ? OUTPUT_FORCE : 0, err);
	return ret;
}

static int begin(struct recording *r, struct hs_error *err)
{
	const struct record_options *o = r->options;
	json_t *answer = NULL;
	int ret;

	child__remember_signals();
	r->signal_fd = cli__open_signals(err);
	if (r->signal_fd < 0)
		return r->signal_fd;
	ret = client__connect(&r->client, o->socket, err);
	if (!ret && o->command)
		ret = child__start(&r->child, o->command, err);
	if (!ret)
		ret = open_file(r, err);
	if (!ret)
		ret = send_start(r, err);
	if (!ret)
		ret = wait_line(r, &answer, err);
	if (ret)
		return ret;
	say__detail("the daemon records PID %d as profile %lld",
		    r->child ? child__pid(r->child) : o->pid,
		    (long long)json_integer_value(json_object_get(answer, "profile")));
	json_decref(answer);
	r->has_begun = true;
	if (o->output)
		ret = output_file__keep(&r->file, err);
	if (!ret && r->child && child__resume(r->child))
		ret = hs_error__set(err, -ESRCH, "%s was killed before it began", o->command[0]);
	return ret;
}

/* What the daemon says at the end. 0, or an error with a text. */
static int conclude(const struct recording *r, const json_t *closing, struct hs_error *err)
{
	const struct record_options *o = r->options;
	const char *failed = json_string_value(json_object_get(closing, "output_error"));
	const char *reason = json_string_value(json_object_get(closing, "reason"));
	const char *top = json_string_value(json_object_get(closing, "top"));

	if (failed)
		return hs_error__set(err, -EIO,
				     "cannot write %s: %s; what was written stays readable",
				     r->output ? r->output : "standard output", failed);
	if (!reason || !strcmp(reason, end_reason__text(END_ERROR)))
		return hs_error__set(err, -EIO,
				     "the daemon has ended the recording after an error "
				     "of its own");
	record_notes__print(reason, o->pid, r->child, json_object_get(closing, "lost"),
			    (uint64_t)json_integer_value(json_object_get(closing, "waiting_max")));
	if (o->top && top)
		fputs(top, stderr);
	return 0;
}

static int run(struct recording *r, struct hs_error *err)
{
	json_t *closing;
	int ret = wait_line(r, &closing, err);

	if (ret)
		return ret;
	ret = conclude(r, closing, err);
	json_decref(closing);
	return ret;
}

/* However the recording went, the command is the user's program. */
static int wait_child(struct recording *r)
{
	int pidfd = (int)syscall(SYS_pidfd_open, child__pid(r->child), 0), wait_status = 0;

	while (child__wait(r->child, &wait_status, false) == 0) {
		struct pollfd fds[] = {
			{ .fd = r->signal_fd, .events = POLLIN },
			{ .fd = pidfd, .events = POLLIN },
		};

		if (poll(fds, 2, 1000) > 0 && fds[0].revents)
			on_signal(r);
	}
	if (pidfd >= 0)
		close(pidfd);
	return child__exit_code(wait_status);
}

int record_daemon__run(const struct record_options *o)
{
	struct recording r = { .options = o, .client.fd = -1, .file.fd = -1, .signal_fd = -1 };
	struct hs_error err;
	int status = 0;

	if (begin(&r, &err)) {
		status = cli__die(&err);
	} else {
		if (run(&r, &err))
			status = cli__die(&err);
		if (r.child) {
			int code = wait_child(&r);

			status = status ? status : code;
		}
	}
	output_file__drop(&r.file);
	free(r.output);
	client__close(&r.client);
	child__free(r.child);
	if (r.signal_fd >= 0)
		close(r.signal_fd);
	return status;
}
