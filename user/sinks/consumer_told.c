/* SPDX-License-Identifier: BSD-2-Clause */
/* What has to be told before a record; see consumer_told.h. */
#include "user/sinks/consumer_told.h"

#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* A rate record that found no room. */
struct owed_rate {
	uint32_t domain; /* key */
	struct hs_rec_rate rec;
	UT_hash_handle hh;
};

int consumer_told__init(struct consumer_told *t, struct sink *inner, enum sink_format format)
{
	t->inner = inner;
	t->format = format;
	/* A raw capture can say itself which thread runs for which domain. */
	return format == SINK_JSONL ? thread_table__new(&t->threads) : 0;
}

/* ---- threads and stacks ---- */

static int tell_thread(struct consumer_told *t, const struct hs_record *h)
{
	int ret = thread_table__see(t->threads, h->tid, h->domain);

	return ret > 0 ? t->inner->ops->thread(t->inner, h->tid, h->domain, h->time_ns) : ret;
}

static bool knows_stack(const struct consumer_told *t, uint64_t hash, uint32_t id)
{
	return told__has(&t->stacks, id) &&
	       (t->format == SINK_JSONL || told__has_hash(&t->stacks, hash, id));
}

int consumer_told__stack(struct consumer_told *t, const struct hs_event *event,
			 const struct stack *stack)
{
	const struct sink_ops *ops = t->inner->ops;
	int err;

	if (told__has(&t->stacks, stack->id))
		err = ops->stack_again ? ops->stack_again(t->inner, event, stack) : 0;
	else
		err = ops->stack(t->inner, event, stack);
	if (!err)
		err = told__add(&t->stacks, stack->id);
	if (!err && t->format != SINK_JSONL)
		err = told__add_hash(&t->stacks, event->stack->hash, stack->id);
	return err;
}

/* The stack of an allocation, as the record that was before our time or left out. */
static int tell_stack_of(struct consumer_told *t, const struct hs_rec_alloc *alloc,
			 const struct stack *stack)
{
	size_t size = sizeof(struct hs_rec_stack) + stack->depth * sizeof(uint64_t);
	struct hs_rec_stack *rec;
	struct hs_event event = { .type = HS_REC_STACK };
	int err;

	if (knows_stack(t, alloc->stack_hash, stack->id))
		return 0;
	rec = calloc(1, size);
	if (!rec)
		return -ENOMEM;
	rec->h = alloc->h;
	rec->h.type = HS_REC_STACK;
	rec->h.size_bytes = (uint32_t)size;
	rec->hash = alloc->stack_hash;
	rec->depth = stack->depth;
	for (uint32_t i = 0; i < stack->depth; i++)
		rec->frames[i] = stack->frames[i].slot;
	event.stack = rec;
	err = consumer_told__stack(t, &event, stack);
	free(rec);
	return err;
}

int consumer_told__event(struct consumer_told *t, const struct hs_event *event,
			 const struct stack *stack)
{
	int err = t->threads ? tell_thread(t, event->h) : 0;

	if (!err && stack && event->type == HS_REC_ALLOC)
		err = tell_stack_of(t, event->alloc, stack);
	if (!err)
		err = t->inner->ops->event(t->inner, event, stack);
	if (event->type == HS_REC_DOMAIN_TERMINATE)
		thread_table__end_domain(t->threads, event->h->domain);
	return err;
}

/* ---- rates that found no room ---- */

static struct owed_rate *owed_of(const struct consumer_told *t, uint32_t domain)
{
	struct owed_rate *o;

	HASH_FIND(hh, t->owed, &domain, sizeof(domain), o);
	return o;
}

int consumer_told__owe(struct consumer_told *t, const struct hs_rec_rate *rec)
{
	struct owed_rate *o = owed_of(t, rec->h.domain);

	if (!o) {
		o = calloc(1, sizeof(*o));
		if (!o)
			return -ENOMEM;
		o->domain = rec->h.domain;
		HASH_ADD(hh, t->owed, domain, sizeof(o->domain), o);
		if (!o->hh.tbl) {
			free(o);
			return -ENOMEM;
		}
	}
	o->rec = *rec;
	return 0;
}

static void forget(struct consumer_told *t, struct owed_rate *o)
{
	if (!o)
		return;
	HASH_DEL(t->owed, o);
	free(o);
}

void consumer_told__disown(struct consumer_told *t, uint32_t domain)
{
	forget(t, owed_of(t, domain));
}

int consumer_told__settle(struct consumer_told *t)
{
	struct owed_rate *o, *next;
	int err = 0;

	HASH_ITER (hh, t->owed, o, next) {
		const struct hs_event event = { .type = HS_REC_RATE, .rate = &o->rec };

		err = consumer_told__event(t, &event, NULL);
		if (err)
			break;
		forget(t, o);
	}
	return err;
}

void consumer_told__deinit(struct consumer_told *t)
{
	struct owed_rate *o, *next;

	HASH_ITER (hh, t->owed, o, next)
		forget(t, o);
	thread_table__free(t->threads);
	told__deinit(&t->stacks);
}
