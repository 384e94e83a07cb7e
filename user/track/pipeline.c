/* SPDX-License-Identifier: BSD-2-Clause */
/* The way of an event; see pipeline.h. */
#include "user/track/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/track/hash.h"
#include "user/track/losses.h"

/* Domains whose rates are remembered. The kernel knows half as many at a time, but the record
 * that one has ended may have found no room. */
#define RATES_MAX 16384

/* What the last rate record of a domain told. */
struct domain_rate {
	uint32_t domain; /* key */
	double rate;
	UT_hash_handle hh;
};

int pipeline__init(struct pipeline *p, struct symbolizer *symbolizer, struct sink *sink,
		   double rate, bool want_sites)
{
	const struct heap_options sites = { .sites_only = true };
	int err;

	memset(p, 0, sizeof(*p));
	p->symbolizer = symbolizer;
	p->sink = sink;
	p->rate = p->lowest_rate = rate;
	err = stack_table__new(&p->stacks, symbolizer);
	if (!err)
		err = thread_table__new(&p->threads);
	if (!err && want_sites)
		err = heap__new(&p->sites, &sites);
	if (err)
		pipeline__deinit(p);
	return err;
}

void pipeline__deinit(struct pipeline *p)
{
	struct domain_rate *r, *next;

	HASH_ITER (hh, p->rates, r, next) {
		HASH_DEL(p->rates, r);
		free(r);
	}
	stack_table__free(p->stacks);
	thread_table__free(p->threads);
	heap__free(p->sites);
	memset(p, 0, sizeof(*p));
}

/* ---- rates ---- */

static struct domain_rate *rate_of(const struct pipeline *p, uint32_t domain)
{
	struct domain_rate *r;

	HASH_FIND(hh, p->rates, &domain, sizeof(domain), r);
	return r;
}

double pipeline__rate_of(const struct pipeline *p, uint32_t domain)
{
	const struct domain_rate *r = rate_of(p, domain);

	return r ? r->rate : p->rate;
}

static void forget_rate(struct pipeline *p, uint32_t domain)
{
	struct domain_rate *r = rate_of(p, domain);

	if (!r)
		return;
	HASH_DEL(p->rates, r);
	free(r);
}

static int learn_rate(struct pipeline *p, const struct hs_rec_rate *rec)
{
	struct domain_rate *r = rate_of(p, rec->h.domain);

	if (!r) {
		if (HASH_COUNT(p->rates) >= RATES_MAX)
			forget_rate(p, p->rates->domain); /* the oldest */
		r = calloc(1, sizeof(*r));
		if (!r)
			return -ENOMEM;
		r->domain = rec->h.domain;
		HASH_ADD(hh, p->rates, domain, sizeof(r->domain), r);
		if (!r->hh.tbl) {
			free(r);
			return -ENOMEM;
		}
	}
	r->rate = decode__rate(rec);
	if (r->rate < p->lowest_rate)
		p->lowest_rate = r->rate;
	return 0;
}

/* ---- events ---- */

static int on_stack(struct pipeline *p, const struct hs_event *event)
{
	const struct stack *stack;
	bool is_new;
	int err = stack_table__learn(p->stacks, event->stack, &stack, &is_new);

	if (err || !stack)
		return err;
	if (is_new)
		return p->sink->ops->stack(p->sink, event, stack);
	return p->sink->ops->stack_again ? p->sink->ops->stack_again(p->sink, event, stack) : 0;
}

static int on_thread(struct pipeline *p, const struct hs_record *h)
{
	int ret = thread_table__see(p->threads, h->tid, h->domain);

	return ret > 0 ? p->sink->ops->thread(p->sink, h->tid, h->domain, h->time_ns) : ret;
}

static void on_alloc(struct pipeline *p, const struct hs_rec_alloc *rec, const struct stack **stack)
{
	p->n_allocs++;
	if (rec->stack_hash) {
		*stack = stack_table__find(p->stacks, rec->stack_hash);
		if (!*stack)
			p->stacks_unknown++;
	}
}

/* To those who keep a sampled heap. */
static int tell_heaps(struct pipeline *p, const struct hs_event *event, const struct stack *stack)
{
	double rate = 0;
	int err = 0;

	if (!p->sites && !p->heap)
		return 0;
	/* Nothing else is weighed; it costs a look-up. */
	if (event->type == HS_REC_ALLOC)
		rate = pipeline__rate_of(p, event->h->domain);
	if (p->sites)
		err = heap__event(p->sites, event, stack, rate);
	if (!err && p->heap)
		err = heap__event(p->heap, event, stack, rate);
	return err;
}

int pipeline__event(void *ctx, const struct hs_event *event)
{
	const struct stack *stack = NULL;
	struct pipeline *p = ctx;
	int err = 0;

	if (event->type == HS_REC_STACK)
		return on_stack(p, event);
	if (p->sink->ops->thread)
		err = on_thread(p, event->h);
	if (err)
		return err;
	switch (event->type) {
	case HS_REC_ALLOC:
		on_alloc(p, event->alloc, &stack);
		break;
	case HS_REC_RATE:
		err = learn_rate(p, event->rate);
		break;
	case HS_REC_DOMAIN_TERMINATE:
		forget_rate(p, event->h->domain);
		break;
	default:
		break;
	}
	if (!err)
		err = tell_heaps(p, event, stack);
	if (!err)
		err = p->sink->ops->event(p->sink, event, stack);
	if (event->type == HS_REC_DOMAIN_TERMINATE)
		thread_table__end_domain(p->threads, event->h->domain);
	return err;
}

static void tell_losses(const struct pipeline *p, const char *type, const json_t *object)
{
	struct heap *const heaps[] = { p->sites, p->heap };

	for (size_t i = 0; i < sizeof(heaps) / sizeof(heaps[0]); i++) {
		if (!heaps[i])
			continue;
		if (!strcmp(type, "loss"))
			losses__told(heaps[i], object, p->lowest_rate);
		else if (!strcmp(type, "summary"))
			losses__summed_up(heaps[i], object);
	}
}

int pipeline__json(void *ctx, json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));
	struct pipeline *p = ctx;
	double rate;

	if (type && !strcmp(type, "profile") && p->rate <= 0) {
		rate = json_number_value(json_object_get(object, "rate"));
		if (!(rate > 0 && rate <= 1))
			return -EBADMSG;
		p->rate = p->lowest_rate = rate;
	}
	if (type)
		tell_losses(p, type, object);
	return p->sink->ops->json(p->sink, object);
}
