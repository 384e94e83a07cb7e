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
#include <time.h>
#include <unistd.h>

#include "user/cli/cli.h"
#include "user/cli/record.h"

/* How long records may wait in the ring buffer. */
#define POLL_MS 50
/* How often counters are read and the target's executable is looked at. */
#define TICK_NS 200000000ull

uint64_t session__now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- beginning ---- */

static int open_signals(struct session *s, struct hs_error *err)
{
	child__remember_signals();
	s->signal_fd = cli__open_signals(err);
	return s->signal_fd < 0 ? s->signal_fd : 0;
}

static const char *output_name(const struct session *s)
{
	return s->options->output ? s->options->output : "standard output";
}

static int write_error(const struct session *s, int code, struct hs_error *err)
{
	if (code == -ENOMEM)
		return hs_error__set(err, code, "out of memory");
	return hs_error__set(err, code, "cannot write %s: %s; what was written stays readable",
			     output_name(s), strerror(-code));
}

static int open_sink(struct session *s, struct hs_error *err)
{
	const struct record_options *o = s->options;
	int fd = cli__open_output(o->output, err), ret;

	if (fd < 0)
		return fd;
	ret = o->is_raw ? raw_sink__new(&s->sink, fd) : jsonl_sink__new(&s->sink, fd);
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

static int check_domains(const struct session *s, struct hs_error *err)
{
	const struct attach_options *a = &s->options->attach;
	struct sonde_domain_info *live = NULL;
	int n;

	if (!a->domains)
		return 0;
	n = target__domains(s->target, &live);
	if (n < 0)
		return hs_error__set(err, n, "cannot read the domains of PID %d: %s",
				     s->target->pid, strerror(-n));
	for (size_t i = 0; i < a->n_domains; i++) {
		int k = 0;

		while (k < n && live[k].unique_id != a->domains[i])
			k++;
		if (k == n) {
			free(live);
			return hs_error__set(err, -ENOENT,
					     "PID %d has no domain %u (it has %d; `heapsonde list` "
					     "shows how many)",
					     s->target->pid, a->domains[i], n);
		}
	}
	free(live);
	return 0;
}

static int write_json(struct session *s, json_t *object)
{
	int err;

	if (!object)
		return -ENOMEM;
	err = s->sink->ops->json(s->sink, object);
	json_decref(object);
	return err;
}

static int open_symbolizer(struct session *s, struct hs_error *err)
{
	const struct sonde_registry *r = &s->target->registry;
	const struct frame_layout layout = {
		.retaddr_bytes = r->fd_retaddr_bytes,
		.frame_data = r->fd_frame_data,
		.num_live = r->fd_num_live,
		.live_ofs = r->fd_live_ofs,
	};

	return symbolizer__new(&s->symbolizer, s->target->pid, &layout, err);
}

int session__begin(struct session *s, const struct record_options *o, struct hs_error *err)
{
	int ret;

	memset(s, 0, sizeof(*s));
	s->signal_fd = -1;
	s->options = o;
	ret = kernel_features__probe(&s->kernel, err);
	if (!ret)
		ret = open_signals(s, err);
	if (!ret)
		ret = open_target(s, err);
	if (!ret)
		ret = kernel_features__require(&s->kernel, err);
	if (!ret)
		ret = check_domains(s, err);
	if (!ret)
		ret = open_symbolizer(s, err);
	if (!ret)
		ret = open_sink(s, err);
	if (ret)
		return ret;

	ret = domain_book__new(&s->book);
	if (!ret)
		ret = pipeline__init(&s->pipeline, s->symbolizer, s->sink,
				     o->top ? o->attach.tier.rate : 0);
	if (ret)
		return hs_error__set(err, ret, "out of memory");
	ret = attachment__new(&s->attachment, s->target, &o->attach, &s->kernel, err);
	if (ret)
		return ret;
	ret = collector__new(&s->collector, s->attachment, pipeline__event, &s->pipeline);
	if (ret)
		return hs_error__set(err, ret, "cannot read the ring buffer: %s", strerror(-ret));
	s->begin_ns = session__now_ns();
	ret = write_json(s, session_json__header(s));
	if (!ret)
		ret = write_json(s, session_json__profile(s));
	if (!ret)
		ret = s->sink->ops->flush(s->sink);
	if (ret)
		return write_error(s, ret, err);
	if (s->child && child__resume(s->child))
		return hs_error__set(err, -ESRCH, "%s was killed before it began", o->command[0]);
	return 0;
}

/* ---- running ---- */

static int on_loss(void *ctx, uint32_t domain, enum hs_loss cause, uint64_t n)
{
	if (!decode__loss_is_real(cause))
		return 0;
	return write_json(ctx, session_json__loss(domain, cause, n));
}

/* Read the counters and write what was lost since the last time. */
static int tick(struct session *s)
{
	int ret = domain_book__update(s->book, s->attachment, s->target->pid);

	return ret ? ret : domain_book__each_loss(s->book, on_loss, s);
}

/*
 * A signal to us. With a command it is the command's affair: what the terminal
 * sends it has got itself, anything else is passed on; only a second one stops
 * the recording.
 */
static void on_signal(struct session *s)
{
	struct signalfd_siginfo info;

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (!s->child || s->n_signals++) {
			s->reason = END_INTERRUPTED;
			continue;
		}
		if (info.ssi_code != SI_KERNEL)
			kill(child__pid(s->child), (int)info.ssi_signo);
	}
}

/* Wait for records, a signal, the target's end, or a while. */
static void wait_a_while(struct session *s, int timeout_ms)
{
	struct pollfd fds[] = {
		{ .fd = s->signal_fd, .events = POLLIN },
		{ .fd = s->target->pidfd, .events = POLLIN },
	};

	poll(fds, 2, timeout_ms);
	if (fds[0].revents)
		on_signal(s);
	if (fds[1].revents && !s->reason)
		s->reason = END_TARGET_EXITED;
}

static int loop(struct session *s)
{
	uint64_t next_tick = s->begin_ns + TICK_NS, end = UINT64_MAX;
	int n = 0, ret;

	if (s->options->duration_s > 0)
		end = s->begin_ns + (uint64_t)(s->options->duration_s * 1e9);
	while (!s->reason) {
		uint64_t now;

		wait_a_while(s, n == COLLECT_BATCH ? 0 : POLL_MS);
		n = collector__drain(s->collector);
		if (n < 0)
			return n;
		now = session__now_ns();
		if (now >= next_tick) {
			next_tick = now + TICK_NS;
			ret = tick(s);
			if (ret)
				return ret;
			if (!s->reason && target__has_execed(s->target))
				s->reason = END_TARGET_EXECED;
		}
		if (n < COLLECT_BATCH) {
			ret = s->sink->ops->flush(s->sink);
			if (ret)
				return ret;
		}
		if (!s->reason && now >= end)
			s->reason = END_DURATION;
	}
	return 0;
}

/* What is still in the kernel when nothing is attached any more. */
static int finish(struct session *s)
{
	uint64_t missed = 0;
	int ret;

	do {
		ret = collector__drain(s->collector);
	} while (ret == COLLECT_BATCH);
	if (ret < 0)
		return ret;
	ret = tick(s);
	if (!ret && domain_book__lost(s->book, HS_LOSS_EVENT_RING_FULL))
		ret = untold__collect(s->attachment, s->target->pid, pipeline__event, &s->pipeline);
	attachment__missed(s->attachment, &missed);
	if (!ret)
		ret = write_json(s, session_json__summary(s, missed));
	return ret ? ret : s->sink->ops->flush(s->sink);
}

int session__run(struct session *s, struct hs_error *err)
{
	int ret = loop(s);

	if (ret)
		s->reason = END_ERROR;
	attachment__detach(s->attachment);
	if (!ret)
		ret = finish(s);
	return ret ? write_error(s, ret, err) : 0;
}

int session__wait_child(struct session *s)
{
	int wait_status = 0;

	while (child__wait(s->child, &wait_status, false) == 0)
		wait_a_while(s, 1000);
	return child__exit_code(wait_status);
}

void session__free(struct session *s)
{
	if (!s)
		return;
	collector__free(s->collector);
	attachment__free(s->attachment);
	pipeline__deinit(&s->pipeline);
	domain_book__free(s->book);
	symbolizer__free(s->symbolizer);
	sink__free(s->sink);
	target__free(s->target);
	child__free(s->child);
	if (s->signal_fd > 0)
		close(s->signal_fd);
	memset(s, 0, sizeof(*s));
}
