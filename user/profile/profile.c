/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile from its first step to its last; see profile.h. */
#include "user/profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/collect/collect.h"
#include "user/common/clock.h"
#include "user/sinks/json.h"

const char *end_reason__text(enum end_reason reason)
{
	switch (reason) {
	case END_INTERRUPTED:
		return "interrupted";
	case END_DURATION:
		return "duration";
	case END_DOMAINS_GONE:
		return "domains gone";
	case END_TARGET_EXITED:
		return "target exited";
	case END_TARGET_EXECED:
		return "target executed another program";
	case END_ERROR:
	case END_NONE:
		break;
	}
	return "error";
}

/* Write object, which this takes over, to a sink. */
static int write_json(struct sink *sink, json_t *object)
{
	int err;

	if (!object)
		return -ENOMEM;
	err = sink->ops->json(sink, object);
	json_decref(object);
	return err;
}

/* The same for what the profile's own heaps have to hear as well. */
static int tell_json(struct profile *p, json_t *object)
{
	int err = object ? pipeline__json(&p->pipeline, object) : -ENOMEM;

	json_decref(object);
	return err;
}

/* ---- counters ---- */

static int on_loss(void *ctx, uint32_t domain, enum hs_loss cause, uint64_t n)
{
	struct profile *p = ctx;

	if (!decode__loss_is_real(cause))
		return 0;
	return tell_json(p, json__loss(domain, decode__loss_name(cause), n,
				       p->counted_before_ns ? p->counted_before_ns : p->begin_ns,
				       p->counted_ns));
}

/* Read the counters and write what was lost since the last time. */
static int count(struct profile *p)
{
	int ret;

	p->counted_before_ns = p->counted_ns;
	p->counted_ns = clock__now_ns();
	ret = domain_book__update(p->book, p->attachment, p->target->pid);
	return ret ? ret : domain_book__each_loss(p->book, on_loss, p);
}

/* ---- beginning ---- */

static bool is_live(const struct sonde_domain_info *live, int n, uint32_t unique_id)
{
	for (int i = 0; i < n; i++)
		if (live[i].unique_id == unique_id)
			return true;
	return false;
}

/* Are the domains there that were listed? */
static int check_domains(const struct target *t, const struct attach_options *a,
			 struct hs_error *err)
{
	struct sonde_domain_info *live = NULL;
	int n, ret = 0;

	if (!a->domains)
		return 0;
	n = target__domains(t, &live);
	if (n == -ESRCH)
		return target__gone(t, err);
	if (n < 0)
		return hs_error__set(err, n, "cannot read the domains of PID %d: %s", t->pid,
				     strerror(-n));
	for (size_t i = 0; i < a->n_domains && !ret; i++)
		if (!is_live(live, n, a->domains[i]))
			ret = hs_error__set(err, -ENOENT,
					    "PID %d has no domain %u (it has %d; `heapsonde list` "
					    "shows how many)",
					    t->pid, a->domains[i], n);
	free(live);
	return ret;
}

static int attach(struct profile *p, struct symbolizer *symbolizer, bool want_sites,
		  struct hs_error *err)
{
	const struct attach_options *a = &p->options->attach;
	int ret = domain_book__new(&p->book);

	if (!ret)
		ret = pipeline__init(&p->pipeline, symbolizer, p->sink, a->tier.rate, want_sites);
	if (ret)
		return hs_error__set(err, ret, "out of memory");
	ret = attachment__new(&p->attachment, p->target, a, p->kernel, err);
	if (ret)
		return ret;
	/* Attaching goes by the PID, which may have come to mean another program. */
	if (!target__same_exe(p->target) || !target__same_memory(p->target))
		return target__gone(p->target, err);
	ret = collector__new(&p->collector, p->attachment, pipeline__event, &p->pipeline);
	if (ret)
		return hs_error__set(err, ret, "cannot read the ring buffer: %s", strerror(-ret));
	p->begin_ns = clock__now_ns();
	return 0;
}

int profile__begin(struct profile **out, const struct profile_options *options, struct target *t,
		   const struct kernel_features *kernel, struct symbolizer *symbolizer,
		   struct sink *sink, bool want_sites, struct hs_error *err)
{
	int ret = check_domains(t, &options->attach, err);
	struct profile *p;

	if (ret)
		return ret;
	p = calloc(1, sizeof(*p));
	if (!p)
		return hs_error__set(err, -ENOMEM, "out of memory");
	p->options = options;
	p->kernel = kernel;
	p->target = t;
	p->sink = sink;
	p->rate = options->attach.tier.rate;
	p->n_rates = 1;
	ret = attach(p, symbolizer, want_sites, err);
	if (!ret) {
		ret = profile__introduce(p, sink);
		if (!ret)
			ret = count(p);
		domain_book__skip_counts(p->book);
		if (!ret)
			ret = sink->ops->flush(sink);
		if (ret)
			hs_error__set(err, ret, "cannot write the output: %s", strerror(-ret));
	}
	if (ret) {
		profile__free(p);
		return ret;
	}
	*out = p;
	return 0;
}

/*
 * The rate of a domain as an event, as if the domain had gone over to it now: sinks
 * know what has to come before one.
 */
static int introduce_rate(const struct profile *p, const struct domain_entry *e, double rate,
			  struct sink *sink)
{
	struct hs_rec_rate rec = {
		.h = { .type = HS_REC_RATE,
		       .size_bytes = sizeof(rec),
		       .time_ns = clock__now_ns(),
		       .profile = p->options->attach.number,
		       .domain = e->unique_id,
		       .tgid = (uint32_t)p->target->pid,
		       .tid = e->now.tid },
		.counts = e->now.now,
	};
	const struct hs_event event = { .type = HS_REC_RATE, .rate = &rec };
	struct tier_choice tier;

	if (tier_choice__make(rate, &tier))
		return 0;
	rec.tier = tier.tier;
	rec.keep_p = tier.keep_p;
	return sink->ops->event(sink, &event, NULL);
}

int profile__introduce(struct profile *p, struct sink *sink)
{
	const struct domain_entry *e;
	size_t n = domain_book__entries(p->book, &e);
	int ret = write_json(sink, profile_json__header(p));

	if (!ret)
		ret = write_json(sink, profile_json__profile(p));
	/* Whoever has not yet gone over to the rate of the profile record: as far as
	 * the records say which have been handed over, not as of now. */
	for (size_t i = 0; i < n && !ret; i++, e++) {
		double rate = pipeline__rate_of(&p->pipeline, e->unique_id);

		if (domain_entry__is_covered(e) && e->now.flags & HS_DOMAIN_BASED &&
		    rate != p->rate)
			ret = introduce_rate(p, e, rate, sink);
	}
	return ret;
}

/* ---- running ---- */

int profile__drain(struct profile *p)
{
	return collector__drain(p->collector);
}

/*
 * All that was in the ring buffer when this began, and not what a busy target goes on
 * to put there: no more records than the ring buffer can hold.
 */
static int drain_all(struct profile *p)
{
	const struct attach_options *a = &p->options->attach;
	uint32_t ring_bytes = a->ring_bytes ? a->ring_bytes : ATTACH_RING_BYTES;
	int64_t left = ring_bytes / sizeof(struct hs_record);
	int n;

	do {
		n = collector__drain(p->collector);
		left -= n;
	} while (n == COLLECT_BATCH && left > 0);
	return n < 0 ? n : 0;
}

/* What on_counters needs. */
struct counters_context {
	struct profile *p;
	uint64_t time_ns;
};

static int on_counters(void *ctx, uint32_t domain, const struct domain_counters *counters)
{
	struct counters_context *c = ctx;

	return write_json(c->p->sink,
			  json__counters(domain, &counters->counts, counters->samples_kept,
					 counters->tracked, c->time_ns));
}

/*
 * Write the counters that have changed, as they were read at the last tick but one: a
 * program in the kernel counts first and tells then, so what has just been counted may
 * not have been told. Since then it has, and is written before.
 */
static int write_counters(struct profile *p)
{
	struct counters_context ctx = { p, p->counted_before_ns };
	int ret = drain_all(p);

	return ret ? ret : domain_book__each_change(p->book, false, on_counters, &ctx);
}

int profile__tick(struct profile *p)
{
	int ret = count(p);

	if (!ret && ++p->n_ticks % PROFILE_COUNTERS_TICKS == 0)
		ret = write_counters(p);
	if (ret || p->state != PROFILE_SAMPLING)
		return ret;
	p->n_rates = attachment__settle(p->attachment);
	if (domain_book__all_gone(p->book))
		ret = profile__stop(p, END_DOMAINS_GONE);
	return ret;
}

static void end_sampling(struct profile *p, enum end_reason reason)
{
	p->state = PROFILE_STOPPED;
	p->reason = reason;
	p->until_ns = clock__now_ns();
}

int profile__stop(struct profile *p, enum end_reason reason)
{
	int ret;

	if (p->state != PROFILE_SAMPLING)
		return -EALREADY;
	end_sampling(p, reason);
	attachment__stop_sampling(p->attachment);
	/* What was sampled before comes before the record that says so. */
	ret = drain_all(p);
	if (!ret)
		ret = write_json(p->sink, profile_json__profile(p));
	return ret ? ret : p->sink->ops->flush(p->sink);
}

int profile__set_rate(struct profile *p, const struct tier_choice *tier, struct hs_error *err)
{
	int ret;

	if (p->state != PROFILE_SAMPLING)
		return hs_error__set(err, -EALREADY, "profile %u does not sample any more",
				     p->options->attach.number);
	ret = attachment__set_rate(p->attachment, tier, err);
	if (ret)
		return ret;
	p->rate = tier->rate;
	p->n_changes++;
	p->n_rates++;
	ret = write_json(p->sink, profile_json__profile(p));
	return ret ? hs_error__set(err, ret, "cannot write the output: %s", strerror(-ret)) : 0;
}

/* ---- ending ---- */

void profile__detach(struct profile *p, enum end_reason reason)
{
	if (p->state == PROFILE_SAMPLING)
		end_sampling(p, reason);
	attachment__detach(p->attachment);
}

int profile__finish(struct profile *p, enum end_reason reason)
{
	int ret, missed;

	if (p->state == PROFILE_FINISHED)
		return -EALREADY;
	profile__detach(p, reason);
	p->state = PROFILE_FINISHED;
	ret = drain_all(p);
	if (!ret)
		ret = count(p);
	if (!ret && (domain_book__lost(p->book, HS_LOSS_EVENT_RING_FULL) ||
		     domain_book__lost(p->book, HS_LOSS_FATE_UNKNOWN)))
		ret = untold__collect(p->attachment, p->target->pid, pipeline__event, &p->pipeline);
	if (!ret)
		ret = domain_book__each_change(p->book, true, on_counters,
					       &(struct counters_context){ p, p->counted_ns });
	missed = attachment__missed(p->attachment, &p->missed);
	p->summary = profile_json__summary(p);
	if (!ret)
		ret = tell_json(p, json_incref(p->summary));
	/* Samples would be missing that nobody has counted. */
	if (!ret)
		ret = missed;
	return ret ? ret : p->sink->ops->flush(p->sink);
}

void profile__free(struct profile *p)
{
	if (!p)
		return;
	collector__free(p->collector);
	attachment__free(p->attachment);
	pipeline__deinit(&p->pipeline);
	domain_book__free(p->book);
	json_decref(p->summary);
	free(p);
}
