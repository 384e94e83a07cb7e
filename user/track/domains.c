/* SPDX-License-Identifier: BSD-2-Clause */
/* The book of domains; see domains.h. */
#include "user/track/domains.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/track/domains_inside.h"

/* Terminated domains that keep an entry of their own. */
#define TERMINATED_MAX 1024

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

/* Room for so many entries. 0 or -ENOMEM. */
static int make_room(struct domain_book *b, size_t n)
{
	size_t room = b->room ? b->room : 16;
	struct domain_entry *grown;

	while (room < n)
		room *= 2;
	if (room == b->room)
		return 0;
	grown = realloc(b->entries, room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	b->entries = grown;
	b->room = room;
	return 0;
}

/* How many of the domains in stats have no entry. Both are in order. */
static size_t count_new(const struct domain_book *b, const struct domain_stat *stats, size_t n)
{
	size_t at = 0, n_new = 0;

	for (size_t i = 0; i < n; i++) {
		while (at < b->n_entries && b->entries[at].unique_id < stats[i].unique_id)
			at++;
		if (at == b->n_entries || b->entries[at].unique_id != stats[i].unique_id)
			n_new++;
	}
	return n_new;
}

/*
 * Make entries for the domains that have none, in their places: in one pass, from the end, for
 * there may be thousands each time. 0 or -ENOMEM.
 */
static int enter_new(struct domain_book *b, const struct domain_stat *stats, size_t n)
{
	size_t n_new = count_new(b, stats, n), from = b->n_entries;
	size_t to = b->n_entries + n_new;

	if (make_room(b, to))
		return -ENOMEM;
	b->n_entries = to;
	while (n_new) {
		uint32_t id = stats[n - 1].unique_id;

		if (from && b->entries[from - 1].unique_id >= id) {
			n -= b->entries[from - 1].unique_id == id;
			b->entries[--to] = b->entries[--from];
			continue;
		}
		b->entries[--to] = (struct domain_entry){ .unique_id = id };
		n--;
		n_new--;
	}
	return 0;
}

/* The entry of a domain that has one. */
static struct domain_entry *entry_of(struct domain_book *b, uint32_t unique_id)
{
	size_t low = 0, high = b->n_entries;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (b->entries[middle].unique_id < unique_id)
			low = middle + 1;
		else
			high = middle;
	}
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
	if (enter_new(b, &(struct domain_stat){ .unique_id = DOMAIN_NONE }, 1))
		return -ENOMEM;
	e = entry_of(b, DOMAIN_NONE);
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
	/* What lies between base and end was sampled. */
	if (is_sampled(d)) {
		counts__add(&b->folded.base, &d->base);
		counts__add(&b->folded.end, d->flags & HS_DOMAIN_ENDED ? &d->end : &d->now);
	}
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
	err = enter_new(b, stats, (size_t)n);
	for (int i = 0; i < n && !err; i++) {
		struct domain_entry *e = entry_of(b, stats[i].unique_id);

		/* Ids are used once, says the runtime. Who comes back is another. */
		if (e->now.flags & HS_DOMAIN_TERMINATED) {
			fold(b, &e->now);
			*e = (struct domain_entry){ .unique_id = e->unique_id };
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
