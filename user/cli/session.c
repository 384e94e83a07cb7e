/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording from its first step to its last; see record.h.
 *
 * In:   struct record_options.
 * Out:  a sink full of records; nothing attached.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "user/cli/attach_notes.h"
#include "user/cli/cli.h"
#include "user/cli/record.h"
#include "user/collect/collect.h"
#include "user/common/clock.h"
#include "user/common/say.h"

/* How often one who waits for the output looks at what else there is; when it says so. */
#define OUTPUT_WAIT_MS 10
#define WAITING_TOLD_NS 1000000000ull

static const char *output_name(const struct session *s)
{
	return s->output ? s->output : "standard output";
}

/* ---- waiting ---- */

/*
 * A signal to us. With a command it is the command's affair: what the terminal
 * sends it has got itself, anything else is passed on; only a second one stops
 * the recording.
 */
static void on_signal(struct session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (s->is_waiting_told) {
			s->is_given_up = true;
		} else if (!s->child || s->n_signals++) {
			s->reason = END_INTERRUPTED;
		} else if (info.ssi_code != SI_KERNEL) {
			kill(child__pid(s->child), (int)info.ssi_signo);
		}
	}
}

/* Wait for a signal, the end of the target or of the time, something to read, or a while. */
static void wait_a_while(struct session *s, int fd, int timeout_ms)
{
	struct pollfd fds[] = {
		{ .fd = s->signal_fd, .events = POLLIN },
		{ .fd = s->reason ? -1 : s->target->pidfd, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};

	poll(fds, 3, timeout_ms);
	if (fds[0].revents)
		on_signal(s);
	if (fds[1].revents && !s->reason)
		s->reason = END_TARGET_EXITED;
	if (!s->reason && s->end_ns && clock__now_ns() >= s->end_ns)
		s->reason = END_DURATION;
}

/* Nothing but the output keeps us: say so, if it does for long. */
static void tell_waiting(struct session *s)
{
	uint64_t now = clock__now_ns();

	if (!s->waiting_since_ns)
		s->waiting_since_ns = now;
	if (s->is_waiting_told || now - s->waiting_since_ns < WAITING_TOLD_NS)
		return;
	s->is_waiting_told = true;
	say__note("detached; waiting for room in %s for the last records (interrupt again to leave "
		  "them out)",
		  output_name(s));
}

/*
 * The output has no room: a reader is slow or has stopped, a file system hangs. What ends the
 * recording meanwhile is heeded at once, so that nobody stays attached because nobody reads.
 */
static bool wait_for_output(void *ctx, int fd)
{
	struct session *s = ctx;

	wait_a_while(s, fd, OUTPUT_WAIT_MS);
	if (!s->reason || !s->profile)
		return true;
	profile__detach(s->profile, s->reason);
	tell_waiting(s);
	return !s->is_given_up;
}

/* ---- beginning ---- */

static int open_signals(struct session *s, struct hs_error *err)
{
	child__remember_signals();
	s->signal_fd = cli__open_signals(err);
	return s->signal_fd < 0 ? s->signal_fd : 0;
}

static int write_error(const struct session *s, int code, struct hs_error *err)
{
	if (code == -ENOMEM)
		return hs_error__set(err, code, "out of memory");
	if (code == -ECANCELED)
		return hs_error__set(err, code,
				     "%s has no room for the last records; what was written stays "
				     "readable",
				     output_name(s));
	return hs_error__set(err, code, "cannot write %s: %s; what was written stays readable",
			     output_name(s), strerror(-code));
}

static int open_sink(struct session *s, struct hs_error *err)
{
	const struct record_options *o = s->options;
	FILE *stream;
	int ret = 0;

	if (o->output)
		ret = output_file__expand(o->output, s->target->pid, &s->output, err);
	if (!ret)
		ret = output_file__open(&s->file, s->output, o->force ? OUTPUT_FORCE : 0, err);
	if (ret)
		return ret;
	ret = outbox__new(&s->outbox, output_file__take(&s->file), o->format == SINK_JSONL);
	if (!ret)
		ret = outbox_stream__new(&stream, s->outbox, wait_for_output, s);
	if (!ret)
		ret = sink__new_file(&s->sink, stream, o->format);
	return ret ? write_error(s, ret, err) : 0;
}

static int open_target(struct session *s, struct hs_error *err)
{
	pid_t pid = s->options->pid;
	int ret;

	if (!pid) {
		ret = child__start(&s->child, s->options->command, err);
		if (ret)
			return ret;
		pid = child__pid(s->child);
	}
	return target__open_probed(&s->target, pid, err);
}

int session__begin(struct session *s, const struct record_options *o, struct hs_error *err)
{
	uint64_t before_ns;
	int ret;

	memset(s, 0, sizeof(*s));
	s->signal_fd = -1;
	s->file.fd = -1;
	s->options = o;
	ret = kernel_features__probe(&s->kernel, err);
	if (!ret)
		ret = open_signals(s, err);
	if (!ret)
		ret = open_target(s, err);
	if (!ret)
		ret = kernel_features__require(&s->kernel, err);
	if (!ret)
		ret = symbolizer__new(&s->symbolizer, s->target, err);
	if (!ret)
		ret = open_sink(s, err);
	if (ret)
		return ret;
	attach_notes__target(s->target, &s->kernel);
	before_ns = clock__now_ns();
	ret = profile__begin(&s->profile, &o->profile, s->target, &s->kernel, s->symbolizer,
			     s->sink, o->top > 0, err);
	if (!ret)
		ret = output_file__keep(&s->file, err);
	if (ret)
		return ret;
	attach_notes__attached(&o->profile.attach, clock__now_ns() - before_ns);
	if (s->child && child__resume(s->child))
		return hs_error__set(err, -ESRCH, "%s was killed before it began", o->command[0]);
	return 0;
}

/* ---- running ---- */

static int loop(struct session *s)
{
	struct profile *p = s->profile;
	uint64_t next_tick = p->begin_ns + PROFILE_TICK_NS;
	int n = 0, ret;

	if (s->options->duration_s > 0)
		s->end_ns = p->begin_ns + (uint64_t)(s->options->duration_s * 1e9);
	while (!s->reason) {
		uint64_t now;

		wait_a_while(s, -1, n == COLLECT_BATCH ? 0 : PROFILE_DRAIN_MS);
		n = profile__drain(p);
		if (n < 0)
			return n;
		now = clock__now_ns();
		if (now >= next_tick) {
			next_tick = now + PROFILE_TICK_NS;
			ret = profile__tick(p);
			if (ret)
				return ret;
			if (!s->reason && target__has_execed(s->target))
				s->reason = END_TARGET_EXECED;
		}
		if (n < COLLECT_BATCH) {
			ret = s->sink->ops->flush(s->sink);
			/* It may have failed since it was last written to. */
			if (!ret)
				ret = outbox__error(s->outbox);
			if (ret)
				return ret;
		}
	}
	return 0;
}

int session__run(struct session *s, struct hs_error *err)
{
	int ret = loop(s), written;
	uint64_t before_ns = clock__now_ns();

	if (!s->reason)
		s->reason = END_ERROR;
	profile__detach(s->profile, s->reason);
	say__detail("detached in %.1f ms", (double)(clock__now_ns() - before_ns) / 1e6);
	/* A sink that has failed takes nothing more, but what it has goes out. */
	if (!ret)
		ret = profile__finish(s->profile, s->reason);
	sink__free(s->sink);
	s->sink = NULL;
	/* Some file systems tell only at the end that they could not write (NFS, quotas). */
	written = outbox_stream__finish(s->outbox, wait_for_output, s);
	if (!ret)
		ret = written;
	return ret ? write_error(s, ret, err) : 0;
}

int session__wait_child(struct session *s)
{
	int wait_status = 0;

	while (child__wait(s->child, &wait_status, false) == 0)
		wait_a_while(s, s->target->pidfd, 1000);
	return child__exit_code(wait_status);
}

void session__free(struct session *s)
{
	if (!s)
		return;
	profile__free(s->profile);
	symbolizer__free(s->symbolizer);
	sink__free(s->sink);
	outbox__free(s->outbox);
	if (s->options) /* else its descriptor is zeroed, too */
		output_file__drop(&s->file);
	free(s->output);
	target__free(s->target);
	child__free(s->child);
	if (s->signal_fd > 0)
		close(s->signal_fd);
	memset(s, 0, sizeof(*s));
}
