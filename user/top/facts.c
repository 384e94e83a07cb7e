/* SPDX-License-Identifier: BSD-2-Clause */
/* See facts.h. */
#include "user/top/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct facts_domain {
	uint32_t id;     /* key */
	bool has_counts; /* last and the offsets are set */
	struct hs_counts last;
	/* What its own counts of collections have to be increased by to be the
	 * process's, in which it has not lived from the beginning. */
	int64_t minor_offset, major_offset;
	UT_hash_handle hh;
};

/*
 * One that has terminated. Its last counters have come with that; the record of them that
 * follows a moment later must not bring it back.
 */
struct facts_gone {
	uint32_t id; /* key */
	UT_hash_handle hh;
};

/* ---- counters ---- */

static struct facts_domain *find(const struct facts *f, uint32_t id)
{
	struct facts_domain *d;

	HASH_FIND(hh, f->domains, &id, sizeof(id), d);
	return d;
}

bool facts__knows_domain(const struct facts *f, uint32_t domain)
{
	return find(f, domain);
}

/* A domain that is heard of for the first time; NULL: no room. */
static struct facts_domain *add(struct facts *f, uint32_t id)
{
	struct facts_domain *d;

	if (f->n_alive >= FACTS_DOMAINS_MAX)
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->id = id;
	HASH_ADD(hh, f->domains, id, sizeof(d->id), d);
	if (!d->hh.tbl) {
		free(d);
		return NULL;
	}
	f->n_alive++;
	f->n_seen++;
	return d;
}

/* What was before the first counters is not ours to count. */
static void begin_counts(const struct facts *f, struct facts_domain *d, const struct hs_counts *now)
{
	d->has_counts = true;
	d->last = *now;
	d->minor_offset = (int64_t)(f->counts.minor_collections - now->minor_collections);
	d->major_offset = (int64_t)(f->counts.major_collections - now->major_collections);
}

/* Counters only grow; a record that comes late adds nothing. */
static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void raise_to(uint64_t *count, uint64_t now, int64_t offset)
{
	uint64_t n = now + (uint64_t)offset;

	if ((int64_t)(n - *count) > 0)
		*count = n;
}

static bool has_gone(const struct facts *f, uint32_t id)
{
	struct facts_gone *g;

	HASH_FIND(hh, f->gone, &id, sizeof(id), g);
	return g;
}

static void see_counts(struct facts *f, uint32_t id, const struct hs_counts *now)
{
	struct facts_domain *d = find(f, id);
	uint64_t promoted;

	if (!d && !has_gone(f, id))
		d = add(f, id);
	if (!d)
		return;
	if (!d->has_counts)
		begin_counts(f, d, now);
	promoted = grown(now->promoted_words, d->last.promoted_words);
	f->counts.minor_words += grown(now->minor_words, d->last.minor_words);
	f->counts.promoted_words += promoted;
	/* major_words holds the promoted ones. */
	f->counts.direct_words += grown(grown(now->major_words, d->last.major_words), promoted);
	raise_to(&f->counts.minor_collections, now->minor_collections, d->minor_offset);
	raise_to(&f->counts.major_collections, now->major_collections, d->major_offset);
	if (now->minor_words >= d->last.minor_words)
		d->last = *now;
}

static void forget_gone(struct facts *f, struct facts_gone *g)
{
	HASH_DEL(f->gone, g);
	free(g);
}

/* Without memory for that it may come back: a wrong number in the header, no more. */
static void remember_gone(struct facts *f, uint32_t id)
{
	struct facts_gone *g = calloc(1, sizeof(*g));

	if (!g)
		return;
	g->id = id;
	HASH_ADD(hh, f->gone, id, sizeof(g->id), g);
	if (!g->hh.tbl)
		free(g);
	else if (HASH_COUNT(f->gone) > FACTS_GONE_MAX)
		/* The head of the table is the one that has been in it longest. */
		forget_gone(f, f->gone);
}

static void end_domain(struct facts *f, uint32_t id)
{
	struct facts_domain *d = find(f, id);

	if (d) {
		HASH_DEL(f->domains, d);
		free(d);
		f->n_alive--;
	}
	if (!has_gone(f, id))
		remember_gone(f, id);
}

/* ---- records of no fixed form ---- */

static uint64_t integer(const json_t *object, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(object, name));

	return n > 0 ? (uint64_t)n : 0;
}

static void copy_text(char to[FACTS_TEXT], const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	if (text)
		snprintf(to, FACTS_TEXT, "%s", text);
}

static void on_counters(struct facts *f, const json_t *object)
{
	const json_t *domain = json_object_get(object, "domain");
	const struct hs_counts now = {
		.minor_words = integer(object, "minor_words"),
		.promoted_words = integer(object, "promoted_words"),
		.major_words = integer(object, "major_words"),
		.minor_collections = integer(object, "minor_collections"),
		.major_collections = integer(object, "major_collections"),
	};

	if (!json_is_integer(domain))
		return;
	see_counts(f, (uint32_t)json_integer_value(domain), &now);
	if (integer(object, "time") > f->counts.time_ns)
		f->counts.time_ns = integer(object, "time");
}

/* The place of a cause; NULL: there are too many. */
static struct facts_loss *loss_of(struct facts *f, const char *cause)
{
	struct facts_loss *l = f->losses;

	for (unsigned int i = 0; i < f->n_losses; i++, l++)
		if (!strncmp(l->cause, cause, sizeof(l->cause) - 1))
			return l;
	if (f->n_losses == FACTS_CAUSES_MAX)
		return NULL;
	f->n_losses++;
	snprintf(l->cause, sizeof(l->cause), "%s", cause);
	return l;
}

static void on_loss(struct facts *f, const json_t *object)
{
	const char *cause = json_string_value(json_object_get(object, "cause"));
	struct facts_loss *l = cause ? loss_of(f, cause) : NULL;

	if (l)
		l->count += integer(object, "count");
}

static void on_summary(struct facts *f, const json_t *object)
{
	const char *cause;
	json_t *n;

	copy_text(f->reason, object, "reason");
	f->has_ended = true;
	json_object_foreach (json_object_get(object, "lost"), cause, n) {
		struct facts_loss *l = loss_of(f, cause);

		/* The sum of the loss records, and what only the end tells. */
		if (l && json_integer_value(n) > 0)
			l->count = (uint64_t)json_integer_value(n);
	}
}

static void on_profile(struct facts *f, const json_t *object)
{
	const char *state = json_string_value(json_object_get(object, "state"));
	double rate = json_number_value(json_object_get(object, "rate"));

	if (rate > 0 && rate <= 1)
		f->rate = rate;
	f->is_stopped = state && !strcmp(state, "stopped");
	copy_text(f->reason, object, "reason");
}

static int on_json(struct sink *s, json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));
	struct facts *f = (struct facts *)s;

	if (!type)
		return 0;
	if (!strcmp(type, "header")) {
		copy_text(f->command, object, "command");
		f->pid = (int64_t)integer(object, "pid");
	} else if (!strcmp(type, "profile")) {
		on_profile(f, object);
	} else if (!strcmp(type, "counters")) {
		on_counters(f, object);
	} else if (!strcmp(type, "loss")) {
		on_loss(f, object);
	} else if (!strcmp(type, "summary")) {
		on_summary(f, object);
	}
	return 0;
}

/* ---- events ---- */

static int on_stack(struct sink *s, const struct hs_event *event, const struct stack *stack)
{
	(void)s;
	(void)event;
	(void)stack;
	return 0;
}

static int on_event(struct sink *s, const struct hs_event *event, const struct stack *stack)
{
	struct facts *f = (struct facts *)s;

	(void)stack;
	/* Others that have counters come at times that counts.time_ns does not tell. */
	switch (event->type) {
	case HS_REC_ALLOC:
		f->n_blocks++;
		f->n_samples += event->alloc->n_samples;
		if (!find(f, event->h->domain) && !has_gone(f, event->h->domain) &&
		    f->n_alive < FACTS_DOMAINS_MAX)
			add(f, event->h->domain);
		break;
	case HS_REC_DOMAIN_SPAWN:
	case HS_REC_EXIT:
		see_counts(f, event->h->domain, &event->domain->counts);
		break;
	case HS_REC_DOMAIN_TERMINATE:
		see_counts(f, event->h->domain, &event->domain->counts);
		end_domain(f, event->h->domain);
		break;
	default:
		break;
	}
	return 0;
}

static int on_flush(struct sink *s)
{
	(void)s;
	return 0;
}

static void on_free(struct sink *s)
{
	facts__deinit((struct facts *)s);
}

static const struct sink_ops ops = {
	.json = on_json,
	.stack = on_stack,
	.event = on_event,
	.flush = on_flush,
	.free = on_free,
};

void facts__init(struct facts *f)
{
	memset(f, 0, sizeof(*f));
	f->base.ops = &ops;
}

void facts__deinit(struct facts *f)
{
	struct facts_domain *d, *next;

	HASH_ITER (hh, f->domains, d, next) {
		HASH_DEL(f->domains, d);
		free(d);
	}
	while (f->gone)
		forget_gone(f, f->gone);
	f->n_alive = 0;
}
