/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the sampled heap lacks, and what needs a walk over all its blocks; see heap.h.
 *
 * In:   what was lost, as records tell it (user/track/losses.c).
 * Out:  blocks that are not known to live any more; the amount that may be missing anywhere.
 */
#include "user/track/heap_state.h"

/* ---- losses ---- */

void heap__lost(struct heap *h, const struct heap_loss_time *when, uint64_t n_samples, double rate)
{
	const struct amount amount = amount__of(n_samples, 0, rate);

	if (!heap__is_later(h, when->since_ns) && when->time_ns >= h->options.since_ns)
		amount__add(&h->lost, &amount);
}

void heap__lost_unmeasured(struct heap *h, const struct heap_loss_time *when)
{
	h->is_unmeasured |= !heap__is_later(h, when->since_ns);
}

static int doubt_block(void *ctx, uint64_t id, void *entry)
{
	const struct heap *h = ctx;
	struct live_block *b = entry;
	struct amount amount = live_block__amount(b);

	(void)id;
	if (b->is_doubtful)
		return 0;
	tally__leave(&b->cell->tally, &amount);
	amount__add(&b->cell->tally.unknown, &amount);
	if (b->is_old)
		live_block__forget_age(b);
	if (h->timeline)
		timeline__end(h->timeline, h->last_ns, b->words, b->variance);
	b->is_doubtful = true;
	return 0;
}

void heap__doubt(struct heap *h, const struct heap_loss_time *when)
{
	if (!heap__is_later(h, when->since_ns))
		block_table__each(h->blocks, doubt_block, h);
}

const struct amount *heap__lost_samples(const struct heap *h)
{
	return &h->lost;
}

bool heap__is_unmeasured(const struct heap *h)
{
	return h->is_unmeasured;
}

/* ---- what needs a walk ---- */

static int settle_block(void *ctx, uint64_t id, void *entry)
{
	const struct heap *h = ctx;
	const struct live_block *b = entry;
	struct tally *t = &b->cell->tally;
	struct amount amount = live_block__amount(b);

	(void)id;
	if (b->is_doubtful || !b->is_old ||
	    live_block__age(b, cycle_count__all(h->cycles)) < h->options.survived)
		return 0;
	amount__add(&t->survivors, &amount);
	amount__add(&t->old_live, &amount);
	if (!t->oldest_live_ns || b->born_ns < t->oldest_live_ns)
		t->oldest_live_ns = b->born_ns;
	return 0;
}

void heap__settle(struct heap *h)
{
	struct heap_cell *const *cells;
	size_t n = cell_table__all(h->cells, &cells);

	for (size_t i = 0; i < n; i++) {
		struct tally *t = &cells[i]->tally;

		t->survivors = t->dead_survivors;
		t->old_live = (struct amount){ 0 };
		t->oldest_live_ns = 0;
	}
	block_table__each(h->blocks, settle_block, h);
}
