/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile as a worker holds it; see held.h. */
#include "user/daemon/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "user/collect/collect.h"
#include "user/daemon/reply.h"
#include "user/sinks/json.h"
#include "user/track/sites.h"
#include "user/wire/wire.h"

/* Each has a thread and a queue. */
#define FOLLOWERS_MAX 16

static uint32_t number(const struct held *h)
{
	return h->request.profile;
}

static void changed(struct held *h)
{
	if (h->changed)
		h->changed(h->ctx, h);
}

/* ---- beginning ---- */

static int on_duration(sd_event_source *source, uint64_t us, void *ctx)
{
	struct held *h = ctx;

	(void)source;
	(void)us;
	if (h->state != HELD_RUNNING)
		return 0;
	if (h->request.bound) {
		h->is_discarding = true;
		held__end(h, END_DURATION);
	} else if (!profile__stop(h->profile, END_DURATION)) {
		changed(h);
	}
	return 0;
}

/* Its time, if it has one, begins when it samples. */
static int set_duration(struct held *h, struct hs_error *err)
{
	int ret;

	if (!(h->request.duration_s > 0))
		return 0;
	ret = sd_event_add_time_relative(h->loop, &h->duration_source, CLOCK_MONOTONIC,
					 (uint64_t)(h->request.duration_s * 1e6), 0, on_duration,
					 h);
	return ret < 0 ? hs_error__set(err, ret, "cannot set the duration: %s", strerror(-ret)) : 0;
}

int held__start(struct held **out, struct request *request, int output, struct target *target,
		struct symbolizer *symbolizer, const struct kernel_features *kernel, sd_event *loop,
		struct hs_error *err)
{
	struct held *h = calloc(1, sizeof(*h));
	int ret;

	if (!h) {
		request__deinit(request);
		if (output >= 0)
			close(output);
		return hs_error__set(err, -ENOMEM, "out of memory");
	}
	h->request = *request;
	memset(request, 0, sizeof(*request));
	h->request.options.attach.domains = h->request.options.domains;
	h->loop = loop;
	h->client = h->waiting = -1;
	ret = fanout__new(&h->fanout);
	if (!ret)
		ret = readers__new(&h->readers, h->fanout, loop);
	if (output >= 0) {
		if (!ret)
			ret = readers__add_output(h->readers, output, h->request.format);
		else
			close(output);
	}
	if (ret)
		hs_error__set(err, ret, "cannot set up the output: %s", strerror(-ret));
	else
		ret = profile__begin(&h->profile, &h->request.options, target, kernel, symbolizer,
				     h->fanout, !h->request.counters_only, err);
	if (!ret)
		ret = set_duration(h, err);
	if (ret) {
		held__free(h);
		return ret;
	}
	*out = h;
	return 0;
}

void held__free(struct held *h)
{
	if (!h)
		return;
	sd_event_source_disable_unref(h->client_source);
	sd_event_source_disable_unref(h->duration_source);
	if (h->client >= 0)
		close(h->client);
	if (h->waiting >= 0)
		close(h->waiting);
	profile__free(h->profile);
	readers__free(h->readers);
	sink__free(h->fanout);
	json_decref(h->final);
	request__deinit(&h->request);
	free(h);
}

/* The client of a bound start has gone, or has closed its side to say so. */
static int on_client_gone(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	struct held *h = ctx;

	(void)fd;
	(void)events;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	h->is_discarding = true;
	held__end(h, END_INTERRUPTED);
	return 0;
}

void held__answer_start(struct held *h, int client)
{
	json_t *o;

	if (!h->request.bound) {
		reply__ok(h->loop, client, number(h));
		return;
	}
	o = reply__make_ok(number(h));
	h->client = client;
	/* A client that cannot be told is gone, which the source tells at once. */
	if (o)
		wire__send_line(client, o, NULL, 0);
	json_decref(o);
	if (sd_event_add_io(h->loop, &h->client_source, client, EPOLLRDHUP, on_client_gone, h) <
	    0) {
		h->is_discarding = true;
		held__end(h, END_ERROR);
	}
}

/* ---- running ---- */

bool held__drain(struct held *h)
{
	int n, ret;

	if (h->state != HELD_RUNNING)
		return false;
	n = profile__drain(h->profile);
	ret = n < 0 ? n : h->fanout->ops->flush(h->fanout);
	if (ret < 0)
		held__end(h, END_ERROR);
	return n == COLLECT_BATCH;
}

void held__tick(struct held *h)
{
	enum profile_state before;

	if (h->state != HELD_RUNNING)
		return;
	if (h->request.bound && readers__output_error(h->readers)) {
		/* Nobody gets what it would go on to record. */
		held__end(h, END_ERROR);
		return;
	}
	before = h->profile->state;
	if (profile__tick(h->profile))
		held__end(h, END_ERROR);
	else if (h->profile->state != before)
		changed(h);
}

/* Is there something to ask for? */
static int check_running(const struct held *h, struct hs_error *err)
{
	if (h->state == HELD_RUNNING)
		return 0;
	return hs_error__set(err, -EALREADY,
			     h->is_discarding ? "profile %u has been discarded already"
					      : "profile %u has ended",
			     number(h));
}

int held__stop(struct held *h, struct hs_error *err)
{
	int ret = check_running(h, err);

	if (ret)
		return ret;
	ret = profile__stop(h->profile, END_INTERRUPTED);
	if (ret == -EALREADY)
		return hs_error__set(err, ret, "profile %u is stopped already (%s)", number(h),
				     end_reason__text(h->profile->reason));
	changed(h);
	return ret ? hs_error__set(err, ret, "out of memory") : 0;
}

int held__set_rate(struct held *h, const struct tier_choice *tier, struct hs_error *err)
{
	int ret = check_running(h, err);

	if (!ret)
		ret = profile__set_rate(h->profile, tier, err);
	if (!ret)
		changed(h);
	return ret;
}

int held__follow(struct held *h, int connection, enum sink_format format, struct hs_error *err)
{
	int ret = check_running(h, err);
	struct sink *consumer;
	json_t *o;

	if (ret)
		return ret;
	if (readers__n_followers(h->readers) >= FOLLOWERS_MAX)
		return hs_error__set(err, -EDQUOT, "profile %u has %d followers already", number(h),
				     FOLLOWERS_MAX);
	o = reply__make_ok(number(h));
	ret = o ? wire__send_line(connection, o, NULL, 0) : -ENOMEM;
	json_decref(o);
	if (ret)
		return hs_error__set(err, ret, "cannot answer: %s", strerror(-ret));
	/* From here on the connection is the consumer's; it has been answered. */
	if (readers__add_follower(h->readers, connection, format, &consumer))
		return 0;
	ret = profile__introduce(h->profile, consumer);
	if (!ret)
		ret = consumer->ops->flush(consumer);
	if (!ret)
		ret = readers__join(h->readers, consumer);
	if (ret)
		readers__drop(h->readers, consumer);
	else
		changed(h);
	return 0;
}

/* ---- ending ---- */

/* What a bound client is told at the end. */
static json_t *end_answer(const struct held *h)
{
	json_t *o = reply__make_ok(number(h));
	char *top = NULL;
	size_t size;
	FILE *f;

	if (!o)
		return NULL;
	json_object_set_new(o, "reason", json_string(end_reason__text(h->profile->reason)));
	json_object_set_new(o, "lost", held__lost(h));
	json_object_set_new(o, "waiting_max",
			    json_integer((json_int_t)domain_book__waiting_max(h->profile->book)));
	if (h->request.top && h->profile->pipeline.sites) {
		f = open_memstream(&top, &size);
		if (f) {
			sites__print(h->profile->pipeline.sites, f, h->request.top);
			fclose(f);
		}
	}
	json_object_set_new(o, "top", json__text(top));
	free(top);
	json_object_set_new(o, "output_error", held__output_error(h));
	if (h->request.counters_only)
		json_object_set_new(o, "domains", domain_book__to_json(h->profile->book));
	return o;
}

static json_t *discard_answer(const struct held *h)
{
	json_t *o = reply__make_ok(number(h));

	if (o)
		json_object_set_new(o, "output_error", held__output_error(h));
	return o;
}

/* All outputs are written, or given up. */
static void on_outputs_done(void *ctx)
{
	struct held *h = ctx;
	json_t *to_client = h->client >= 0 ? end_answer(h) : NULL;
	json_t *to_waiting = h->waiting >= 0 ? discard_answer(h) : NULL;
	int client = h->client, waiting = h->waiting;

	h->state = h->is_discarding || h->request.bound ? HELD_DISCARDED : HELD_FINISHED;
	h->final = held__status(h, true);
	profile__free(h->profile);
	h->profile = NULL;
	sd_event_source_disable_unref(h->client_source);
	h->client_source = NULL;
	h->client = h->waiting = -1;
	/* The supervisor knows before the client does. */
	changed(h);
	if (client >= 0)
		reply__send(h->loop, client, to_client);
	if (waiting >= 0)
		reply__send(h->loop, waiting, to_waiting);
}

void held__end(struct held *h, enum end_reason reason)
{
	if (h->state != HELD_RUNNING)
		return;
	h->state = HELD_ENDING;
	/* Its sinks do not fail; what else can has no remedy now. */
	profile__finish(h->profile, reason);
	if (readers__finish(h->readers, on_outputs_done, h))
		on_outputs_done(h);
}

int held__discard(struct held *h, int connection, struct hs_error *err)
{
	if (h->state == HELD_RUNNING && h->profile->state == PROFILE_SAMPLING)
		return hs_error__set(err, -EINPROGRESS,
				     "profile %u is still sampling: stop it first", number(h));
	if (h->is_discarding)
		return hs_error__set(err, -EALREADY, "profile %u has been discarded already",
				     number(h));
	h->is_discarding = true;
	h->waiting = connection;
	if (h->state == HELD_FINISHED) {
		h->state = HELD_DISCARDED;
		h->waiting = -1;
		changed(h);
		reply__send(h->loop, connection, discard_answer(h));
		return 0;
	}
	held__end(h, END_INTERRUPTED);
	return 0;
}
