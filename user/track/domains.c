/* SPDX-License-Identifier: BSD-2-Clause */
/* The book of domains; see domains.h. */
#include "user/track/domains.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/decode/decode.h"
#include "user/sinks/json.h"

/* Terminated domains that keep an entry of their own. */
#define TERMINATED_MAX 1024

struct domain_book {
	struct domain_entry *entries; /* by unique id; DOMAIN_NONE last, if at all */
	size_t n_entries;
	size_t room;
	uint32_t next_change;    /* unique id: where domain_book__each_change goes on */
	size_t n_folded;         /* terminated domains without an entry */
	struct hs_domain folded; /* their sums */
};

int domain_book__new(struct domain_book **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void domain_book__free(struct domain_book *b)
{
	if (!b)
		return;
	free(b->entries);
	free(b);
}

/* The entry of a domain, made in its place if there is none; NULL: no memory. */
static struct domain_entry *entry_of(struct domain_book *b, uint32_t unique_id)
{
	size_t low = 0, high = b->n_entries;
	struct domain_entry *grown;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (b->entries[middle].unique_id < unique_id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < b->n_entries && b->entries[low].unique_id == unique_id)
		return &b->entries[low];
	if (b->n_entries == b->room) {
		size_t room = b->room ? 2 * b->room : 16;

		grown = realloc(b->entries, room * sizeof(*grown));
		if (!grown)
			return NULL;
		b->entries = grown;
		b->room = room;
	}
	memmove(&b->entries[low + 1], &b->entries[low],
		(b->n_entries - low) * sizeof(b->entries[0]));
	memset(&b->entries[low], 0, sizeof(b->entries[0]));
	b->entries[low].unique_id = unique_id;
	b->n_entries++;
	return &b->entries[low];
}

/* Losses that belong to no domain, if there are any. */
static int update_none(struct domain_book *b, const struct attachment *a)
{
	uint64_t lost[HS_LOSS_CAUSES], any = 0;
	struct domain_entry *e;

	attachment__losses(a, lost);
	for (int i = 0; i < HS_LOSS_CAUSES; i++)
		any |= lost[i];
	if (!any)
		return 0;
	e = entry_of(b, DOMAIN_NONE);
	if (!e)
		return -ENOMEM;
	memcpy(e->now.lost, lost, sizeof(lost));
	return 0;
}

static bool has_terminated(const struct domain_entry *e)
{
	/* For a whole interval, so that its last changes have been seen. */
	return e->before.flags & HS_DOMAIN_TERMINATED;
}

static void counts__add(struct hs_counts *to, const struct hs_counts *c)
{
	to->minor_words += c->minor_words;
	to->promoted_words += c->promoted_words;
	to->major_words += c->major_words;
	to->minor_collections += c->minor_collections;
	to->major_collections += c->major_collections;
}

static void fold(struct domain_book *b, const struct hs_domain *d)
{
	b->n_folded++;
	counts__add(&b->folded.now, &d->now);
	counts__add(&b->folded.base, &d->base);
	counts__add(&b->folded.end, d->flags & HS_DOMAIN_ENDED ? &d->end : &d->now);
	b->folded.samples_hit += d->samples_hit;
	b->folded.samples_left_out += d->samples_left_out;
	b->folded.samples_kept += d->samples_kept;
	b->folded.records_kept += d->records_kept;
	for (int i = 0; i < HS_LOSS_CAUSES; i++)
		b->folded.lost[i] += d->lost[i];
}

/*
 * A program may spawn domains for days. When there are twice as many terminated
 * ones as are kept, the older half goes into the sums.
 */
static void fold_oldest(struct domain_book *b)
{
	size_t n_terminated = 0, n_left = 0;

	for (size_t i = 0; i < b->n_entries; i++)
		n_terminated += has_terminated(&b->entries[i]);
	if (n_terminated < 2 * TERMINATED_MAX)
		return;
	for (size_t i = 0; i < b->n_entries; i++) {
		if (has_terminated(&b->entries[i]) && n_terminated > TERMINATED_MAX) {
			fold(b, &b->entries[i].now);
			n_terminated--;
		} else {
			b->entries[n_left++] = b->entries[i];
		}
	}
	b->n_entries = n_left;
}

int domain_book__update(struct domain_book *b, const struct attachment *a, pid_t tgid)
{
	struct domain_stat *stats = NULL;
	int n = counters__read(a, tgid, &stats), err = 0;

	if (n < 0)
		return n;
	for (size_t i = 0; i < b->n_entries; i++)
		b->entries[i].before = b->entries[i].now;
	fold_oldest(b);
	for (int i = 0; i < n && !err; i++) {
		struct domain_entry *e = entry_of(b, stats[i].unique_id);

		if (!e) {
			err = -ENOMEM;
			break;
		}
		e->now = stats[i].d;
		if (e->now.flags & HS_DOMAIN_BASED)
			e->rate = attachment__rate(a, e->now.rate_seq);
		/* Blocks that it could hand over to nobody are found through it. */
		if (e->now.flags & HS_DOMAIN_TERMINATED && !e->now.major_head)
			counters__forget(a, tgid, e->unique_id);
	}
	free(stats);
	return err ? err : update_none(b, a);
}

size_t domain_book__entries(const struct domain_book *b, const struct domain_entry **out)
{
	*out = b->entries;
	return b->n_entries;
}

int domain_book__each_loss(const struct domain_book *b,
			   int (*each)(void *ctx, uint32_t domain, enum hs_loss cause, uint64_t n),
			   void *ctx)
{
	for (size_t i = 0; i < b->n_entries; i++) {
		const struct domain_entry *e = &b->entries[i];

		for (int cause = 0; cause < HS_LOSS_CAUSES; cause++) {
			uint64_t n = e->now.lost[cause] - e->before.lost[cause];
			int ret = n ? each(ctx, e->unique_id, cause, n) : 0;

			if (ret)
				return ret;
		}
	}
	return 0;
}

static struct domain_counters counters_of(const struct hs_domain *d)
{
	return (struct domain_counters){ d->now, d->samples_kept, d->tracked };
}

int domain_book__each_change(struct domain_book *b, bool is_last,
			     int (*each)(void *ctx, uint32_t domain,
					 const struct domain_counters *counters),
			     void *ctx)
{
	size_t first = 0, n_told = 0;

	while (!is_last && first < b->n_entries && b->entries[first].unique_id < b->next_change)
		first++;
	for (size_t i = 0; i < b->n_entries; i++) {
		struct domain_entry *e = &b->entries[(first + i) % b->n_entries];
		struct domain_counters c = counters_of(is_last ? &e->now : &e->before);
		int ret;

		if (e->unique_id == DOMAIN_NONE || !memcmp(&c, &e->told, sizeof(c)))
			continue;
		if (!is_last && n_told++ == DOMAIN_COUNTERS_MAX) {
			b->next_change = e->unique_id;
			break;
		}
		e->told = c;
		ret = each(ctx, e->unique_id, &c);
		if (ret)
			return ret;
	}
	return 0;
}

void domain_book__skip_counts(struct domain_book *b)
{
	for (size_t i = 0; i < b->n_entries; i++)
		b->entries[i].told.counts = b->entries[i].now.now;
}

size_t domain_book__folded(const struct domain_book *b, struct hs_counts *sums)
{
	*sums = b->folded.now;
	return b->n_folded;
}

bool domain_entry__is_covered(const struct domain_entry *e)
{
	return e->unique_id != DOMAIN_NONE && e->now.flags & HS_DOMAIN_COVERED &&
	       !(e->now.flags & HS_DOMAIN_TERMINATED);
}

bool domain_book__all_gone(const struct domain_book *b)
{
	bool any = b->n_folded > 0;

	for (size_t i = 0; i < b->n_entries; i++) {
		if (domain_entry__is_covered(&b->entries[i]))
			return false;
		any = any || b->entries[i].now.flags & HS_DOMAIN_COVERED;
	}
	return any;
}

/* Add what was counted to o, which this takes over. NULL if memory is short. */
static json_t *with_counts(json_t *o, const struct hs_domain *d, const struct hs_counts *end)
{
	json_t *rest;

	if (!o || json__add_counts(o, "", &d->now) || json__add_counts(o, "base_", &d->base) ||
	    json__add_counts(o, "end_", end))
		goto fail;
	rest = json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I}", "samples_hit", (json_int_t)d->samples_hit,
		"samples_left_out", (json_int_t)d->samples_left_out, "samples_kept",
		(json_int_t)d->samples_kept, "samples_lost", (json_int_t)d->lost[HS_LOSS_RING_FULL],
		"records", (json_int_t)d->records_kept, "tracked", (json_int_t)d->tracked);
	if (!rest || json_object_update(o, rest)) {
		json_decref(rest);
		goto fail;
	}
	json_decref(rest);
	return o;
fail:
	json_decref(o);
	return NULL;
}

static bool is_sampled(const struct hs_domain *d)
{
	return d->flags & HS_DOMAIN_COVERED && d->flags & HS_DOMAIN_BASED;
}

/*
 * Sampled blocks that a domain may have had ready and not handed over: all but one of
 * a batch (runtime/abi.h), if it was still running, as far as its records say.
 */
static uint32_t waiting_max(const struct hs_domain *d)
{
	if (!is_sampled(d) || d->flags & (HS_DOMAIN_TERMINATED | HS_DOMAIN_EXITED))
		return 0;
	return SONDE_BATCH_MAX - 1;
}

uint64_t domain_book__waiting_max(const struct domain_book *b)
{
	uint64_t blocks = 0;

	for (size_t i = 0; i < b->n_entries; i++)
		blocks += waiting_max(&b->entries[i].now);
	return blocks;
}

static json_t *entry_to_json(const struct domain_entry *e)
{
	const struct hs_domain *d = &e->now;
	bool has_rate = is_sampled(d) && e->rate > 0;

	return with_counts(
		json_pack("{s:I, s:s, s:b, s:o, s:I}", "domain", (json_int_t)e->unique_id, "state",
			  d->flags & HS_DOMAIN_TERMINATED ? "terminated" : "alive", "sampled",
			  is_sampled(d), "rate", has_rate ? json_real(e->rate) : json_null(),
			  "waiting_max", (json_int_t)waiting_max(d)),
		d, d->flags & HS_DOMAIN_ENDED ? &d->end : &d->now);
}

json_t *domain_book__folded_to_json(const struct domain_book *b)
{
	if (!b->n_folded)
		return json_null();
	return with_counts(json_pack("{s:I}", "count", (json_int_t)b->n_folded), &b->folded,
			   &b->folded.end);
}

json_t *domain_book__to_json(const struct domain_book *b)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < b->n_entries; i++) {
		if (b->entries[i].unique_id == DOMAIN_NONE)
			continue;
		if (json_array_append_new(array, entry_to_json(&b->entries[i]))) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

uint64_t domain_book__samples(const struct domain_book *b)
{
	uint64_t n = b->folded.samples_kept;

	for (size_t i = 0; i < b->n_entries; i++)
		n += b->entries[i].now.samples_kept;
	return n;
}

uint64_t domain_book__lost(const struct domain_book *b, enum hs_loss cause)
{
	uint64_t n = b->folded.lost[cause];

	for (size_t i = 0; i < b->n_entries; i++)
		n += b->entries[i].now.lost[cause];
	return n;
}

json_t *domain_book__losses_to_json(const struct domain_book *b, bool want_real)
{
	json_t *object = json_object();

	for (int cause = 0; object && cause < HS_LOSS_CAUSES; cause++) {
		uint64_t n = domain_book__lost(b, cause);

		if (n && decode__loss_is_real(cause) == want_real &&
		    json_object_set_new(object, decode__loss_name(cause),
					json_integer((json_int_t)n))) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}
