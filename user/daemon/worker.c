/* SPDX-License-Identifier: BSD-2-Clause */
/* The worker of one process; see worker.h. */
#include "user/daemon/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "user/common/clock.h"
#include "user/daemon/held.h"
#include "user/daemon/peer.h"
#include "user/daemon/reply.h"
#include "user/daemon/requests.h"
#include "user/daemon/worker_events.h"
#include "user/wire/wire.h"

struct worker {
	int channel;
	pid_t pid;
	const struct kernel_features *kernel;
	sd_event *loop;
	struct target *target; /* from the first start on */
	struct symbolizer *symbolizer;
	struct held *profiles;
	enum end_reason gone;  /* the target has gone */
	bool has_other_memory; /* at the last look */
	bool is_leaving;       /* nobody can ask for anything any more */
	uint64_t next_tick_ns, next_status_ns;
};

/* ---- telling the supervisor ---- */

static void on_changed(void *ctx, struct held *h)
{
	struct worker *w = ctx;

	worker_events__profile(w->channel, h);
}

/* Leave the loop when there is nothing more to be written. */
static void leave_if_done(struct worker *w)
{
	if (!w->is_leaving || reply__n_waiting())
		return;
	for (const struct held *h = w->profiles; h; h = h->next)
		if (h->state == HELD_RUNNING || h->state == HELD_ENDING)
			return;
	sd_event_exit(w->loop, 0);
}

/* Free what was discarded: not at once, because its own functions may be running. */
static void sweep(struct worker *w)
{
	struct held **at = &w->profiles;

	while (*at) {
		struct held *h = *at;

		if (h->state == HELD_DISCARDED) {
			*at = h->next;
			held__free(h);
		} else {
			at = &h->next;
		}
	}
	leave_if_done(w);
}

/* ---- the target's end ---- */

static void end_all(struct worker *w, enum end_reason reason)
{
	for (struct held *h = w->profiles; h; h = h->next)
		held__end(h, reason);
}

static void target_gone(struct worker *w, enum end_reason reason)
{
	if (w->gone)
		return;
	w->gone = reason;
	end_all(w, reason);
}

static int on_target_exit(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	(void)fd;
	(void)events;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	target_gone(ctx, END_TARGET_EXITED);
	return 0;
}

/* ---- requests ---- */

static void close_target(struct worker *w)
{
	symbolizer__free(w->symbolizer);
	target__free(w->target);
	w->symbolizer = NULL;
	w->target = NULL;
}

/*
 * What the user may know comes first, and nothing is read of a process, let alone
 * parsed, before he may have it profiled.
 */
static int open_target(struct worker *w, const struct request *r, struct hs_error *err)
{
	int ret;

	if (w->target)
		return peer__may_profile(w->target, r->uid, r->gid, err);
	ret = peer__may_ask(w->pid, r->uid, r->gid, err);
	if (!ret)
		ret = target__open_probed(&w->target, w->pid, err);
	if (!ret)
		ret = peer__may_profile(w->target, r->uid, r->gid, err);
	if (!ret)
		ret = symbolizer__new(&w->symbolizer, w->target, err);
	if (!ret &&
	    sd_event_add_io(w->loop, NULL, w->target->pidfd, EPOLLIN, on_target_exit, w) < 0)
		ret = hs_error__set(err, -ENOMEM, "out of memory");
	if (ret)
		close_target(w);
	return ret;
}

static int start(struct worker *w, struct request *r, int connection, struct hs_error *err)
{
	struct held *h;
	int output, ret = open_target(w, r, err);

	/* Root's profiles go on when the process becomes somebody else's. */
	r->options.attach.one_user = r->uid != 0;
	r->options.attach.uid = r->uid;
	for (h = w->profiles; h && !ret; h = h->next)
		ret = held__check_conflict(h, &r->options, err);
	if (!ret)
		ret = request__take_output(connection, &output, err);
	if (!ret)
		ret = held__start(&h, r, output, w->target, w->symbolizer, w->kernel, w->loop, err);
	if (ret)
		return ret;
	h->changed = on_changed;
	h->ctx = w;
	h->next = w->profiles;
	w->profiles = h;
	worker_events__started(w->channel, h);
	held__answer_start(h, connection);
	return 0;
}

static int status(struct held *h, int connection, struct hs_error *err)
{
	json_t *o = json_pack("{s:b, s:[o]}", "ok", true, "profiles", held__status(h, true));

	if (!o)
		return hs_error__set(err, -ENOMEM, "out of memory");
	reply__send(h->loop, connection, o);
	return 0;
}

static struct held *find(const struct worker *w, uint32_t profile)
{
	struct held *h = w->profiles;

	while (h && h->request.profile != profile)
		h = h->next;
	return h;
}

/* A request about a profile. On success the connection is closed or somebody's. */
static int serve(struct worker *w, struct request *r, int connection, struct hs_error *err)
{
	struct held *h = find(w, r->profile);
	int ret;

	/* The supervisor knows our profiles; one that it does not know yet to be
	 * discarded is. */
	if (!h)
		return hs_error__set(err, -EALREADY, "profile %u has been discarded already",
				     r->profile);
	/* What happened before the request comes before its effect, unless it is more
	 * than a batch. */
	held__drain(h);
	held__tick(h);
	switch (r->op) {
	case REQUEST_STOP:
		ret = held__stop(h, err);
		break;
	case REQUEST_RATE:
		ret = held__set_rate(h, &r->tier, err);
		break;
	case REQUEST_DISCARD:
		return held__discard(h, connection, err);
	case REQUEST_FOLLOW:
		return held__follow(h, connection, r->format, err);
	case REQUEST_STATUS:
		return status(h, connection, err);
	default:
		return hs_error__set(err, -EBADMSG, "not a request for a worker");
	}
	if (!ret)
		reply__ok(w->loop, connection, r->profile);
	return ret;
}

/* Has the target gone, as far as can be told now? */
static bool has_gone(struct worker *w)
{
	if (w->target && !w->gone && target__has_execed(w->target))
		target_gone(w, END_TARGET_EXECED);
	if (w->target && !w->gone && !target__same_exe(w->target))
		target_gone(w, END_TARGET_EXITED);
	return w->gone;
}

static void on_request(struct worker *w, json_t *object, int connection)
{
	struct hs_error err = { "" };
	struct request r;
	int ret = request__parse(object, &r, &err);

	if (ret) {
		reply__error(w->loop, connection, ret, &err);
		return;
	}
	if (r.op == REQUEST_START && has_gone(w)) {
		worker_events__bounce(w->channel, object, connection);
		close(connection);
		request__deinit(&r);
		return;
	}
	if (r.op == REQUEST_START) {
		uint32_t profile = r.profile;

		ret = start(w, &r, connection, &err);
		if (ret) {
			worker_events__refused(w->channel, profile);
			/* If it is unread: a close with bytes unread is a reset for
			 * the client, who would not see the answer. */
			wire__drop(connection);
		}
	} else {
		ret = serve(w, &r, connection, &err);
	}
	if (ret)
		reply__error(w->loop, connection, ret, &err);
	request__deinit(&r);
}

static int on_channel(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	struct worker *w = ctx;
	struct wire_message m;
	json_t *object = NULL;
	int ret = wire__receive_packet(fd, &m, &object);

	(void)events;
	if (ret == 1 && m.n_fds >= 1) {
		int connection = m.fds[0];

		m.fds[0] = -1;
		on_request(w, object, connection);
	}
	json_decref(object);
	wire_message__deinit(&m);
	/* A packet that is no good is not the end; all else is. */
	if (ret != 1 && ret != -EBADMSG && ret != -EMSGSIZE && ret != -EAGAIN && ret != -ENOMEM) {
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
		w->is_leaving = true;
		end_all(w, END_INTERRUPTED);
	}
	sweep(w);
	return 0;
}

/* ---- the clock ---- */

/*
 * Has it executed something? The same program at the same addresses is noticed by its
 * memory; but that also goes before a process that exits is known to have ended, so it
 * counts only if it is still so at the next look.
 */
static void look_at_target(struct worker *w)
{
	bool had_other_memory = w->has_other_memory;

	if (!w->target || w->gone)
		return;
	w->has_other_memory = !target__same_memory(w->target);
	if (target__has_execed(w->target) || (had_other_memory && w->has_other_memory))
		target_gone(w, END_TARGET_EXECED);
}

static int on_clock(sd_event_source *source, uint64_t us, void *ctx)
{
	struct worker *w = ctx;
	uint64_t now = clock__now_ns();
	bool has_more = false;
	struct held *h;

	(void)us;
	for (h = w->profiles; h; h = h->next)
		has_more |= held__drain(h);
	if (now >= w->next_tick_ns) {
		w->next_tick_ns = now + PROFILE_TICK_NS;
		for (h = w->profiles; h; h = h->next)
			held__tick(h);
		look_at_target(w);
	}
	if (now >= w->next_status_ns && !w->is_leaving) {
		w->next_status_ns = now + WORKER_STATUS_NS;
		worker_events__all(w->channel, w->target, w->profiles);
	}
	sweep(w);
	/* At once, if there is more than we are fast; but requests come in between. */
	sd_event_source_set_time_relative(source, has_more ? 0 : PROFILE_DRAIN_MS * 1000u);
	return 0;
}

/* The supervisor has died: its end of the channel says so too, but perhaps later. */
static int on_sigterm(sd_event_source *source, const struct signalfd_siginfo *info, void *ctx)
{
	struct worker *w = ctx;

	(void)source;
	(void)info;
	w->is_leaving = true;
	end_all(w, END_INTERRUPTED);
	sweep(w);
	return 0;
}

static int set_up(struct worker *w)
{
	sd_event_source *clock = NULL;
	int ret = sd_event_new(&w->loop);

	if (ret >= 0)
		ret = sd_event_add_io(w->loop, NULL, w->channel, EPOLLIN, on_channel, w);
	if (ret >= 0)
		ret = sd_event_add_signal(w->loop, NULL, SIGTERM, on_sigterm, w);
	if (ret >= 0)
		ret = sd_event_add_time_relative(w->loop, &clock, CLOCK_MONOTONIC,
						 PROFILE_DRAIN_MS * 1000u, 1000, on_clock, w);
	if (ret >= 0)
		ret = sd_event_source_set_enabled(clock, SD_EVENT_ON);
	if (ret >= 0)
		ret = sd_event_source_set_floating(clock, true);
	sd_event_source_unref(clock);
	return ret;
}

int worker__run(int channel_fd, pid_t pid, const struct kernel_features *kernel)
{
	struct worker w = { .channel = channel_fd, .pid = pid, .kernel = kernel };
	int ret = set_up(&w);

	if (ret >= 0)
		ret = sd_event_loop(w.loop);
	while (w.profiles) {
		struct held *h = w.profiles;

		w.profiles = h->next;
		held__free(h);
	}
	close_target(&w);
	sd_event_unref(w.loop);
	return ret < 0;
}
