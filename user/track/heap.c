/* SPDX-License-Identifier: BSD-2-Clause */
/* The sampled heap; see heap.h. */
#include "user/track/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/track/heap_state.h"

int heap__new(struct heap **out, const struct heap_options *options)
{
	struct heap *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	if (options)
		h->options = *options;
	if (!h->options.survived)
		h->options.survived = HEAP_SURVIVED_DEFAULT;
	err = cell_table__new(&h->cells, &h->options);
	if (!err)
		err = block_table__new(&h->blocks, sizeof(struct live_block));
	if (!err)
		err = cycle_count__new(&h->cycles);
	h->total = calloc(1, sizeof(*h->total));
	if (!h->total)
		err = -ENOMEM;
	if (!err && h->options.want_timeline)
		err = timeline__new(&h->timeline);
	if (err) {
		heap__free(h);
		return err;
	}
	*out = h;
	return 0;
}

void heap__free(struct heap *h)
{
	if (!h)
		return;
	cell_table__free(h->cells);
	block_table__free(h->blocks);
	timeline__free(h->timeline);
	cycle_count__free(h->cycles);
	free(h->total);
	free(h);
}

/* ---- ages ---- */

static void ages__died(struct ages *a, const struct live_block *b, double age)
{
	if (b->is_doubtful)
		a->variance += b->variance;
	else
		ages__add_live(a, b, -1);
	a->dead_words += b->words;
	a->dead_cycles += b->words * age;
	a->dead_squares += b->words * age * age;
}

/* ---- events ---- */

/* The block has come to the major heap: from now on its age counts. */
static void grow_old(struct live_block *b)
{
	struct ages *a = &b->cell->tally.ages;

	b->is_old = true;
	if (b->is_doubtful)
		return;
	ages__add_live(a, b, 1);
	a->variance += b->variance;
}

static void follow(struct heap *h, const struct hs_rec_alloc *rec, struct live_block *b,
		   struct heap_cell *cell, const struct amount *amount)
{
	*b = (struct live_block){ .cell = cell,
				  .words = amount->words,
				  .variance = amount->variance,
				  .blocks = amount->blocks,
				  .born_ns = rec->h.time_ns,
				  .birth = cycle_count__of(h->cycles, rec->h.domain) };
	amount__add(&cell->tally.live, amount);
	cell->tally.n_live++;
	if (rec->heap == HS_HEAP_MAJOR)
		grow_old(b);
}

/* Add what was allocated to its cell. b: where to keep the block; NULL: it is not followed. */
static int count_alloc(struct heap *h, const struct hs_rec_alloc *rec, const struct stack *stack,
		       double rate, struct live_block *b)
{
	struct amount amount = amount__of(rec->n_samples, rec->size_words, rate);
	struct heap_cell *cell = cell_table__of(h->cells, rec, stack);
	struct tally *t;

	if (!cell)
		return -ENOMEM;
	h->rate = rate;
	t = &cell->tally;
	amount__add(&t->allocated, &amount);
	t->n_allocs++;
	if (rec->heap == HS_HEAP_MINOR)
		amount__add(&t->minor, &amount);
	if (h->timeline)
		timeline__alloc(h->timeline, rec->h.time_ns, amount.words, amount.variance,
				rec->is_tracked);
	if (b)
		follow(h, rec, b, cell, &amount);
	else
		amount__add(&t->unknown, &amount);
	return 0;
}

static int on_alloc(struct heap *h, const struct hs_rec_alloc *rec, const struct stack *stack,
		    double rate)
{
	struct live_block *b;
	bool is_new;
	int err;

	if (rec->h.time_ns < h->options.since_ns)
		return 0;
	/* A capture may tell a block twice; heapsonde's own do not. */
	if (!rec->is_tracked)
		return block_table__find(h->blocks, rec->id)
			       ? 0
			       : count_alloc(h, rec, stack, rate, NULL);
	b = block_table__add(h->blocks, rec->id, &is_new);
	if (!b)
		return -ENOMEM;
	if (!is_new)
		return 0;
	err = count_alloc(h, rec, stack, rate, b);
	if (err)
		block_table__remove(h->blocks, rec->id, b);
	return err;
}

static void on_promote(struct heap *h, const struct hs_rec_block *rec)
{
	struct live_block *b = block_table__find(h->blocks, rec->id);
	struct amount amount;

	if (!b || b->is_old)
		return;
	amount = live_block__amount(b);
	amount__add(&b->cell->tally.promoted, &amount);
	grow_old(b);
	if (h->timeline)
		timeline__promote(h->timeline, rec->h.time_ns, b->words);
}

/* A block of the major heap is dead, or lost sight of; age: in cycles. */
static void end_old(const struct heap *h, struct live_block *b, bool is_unknown, uint32_t age)
{
	struct tally *t = &b->cell->tally;
	struct amount amount = live_block__amount(b);

	if (is_unknown) {
		if (!b->is_doubtful)
			live_block__forget_age(b);
		return;
	}
	ages__died(&t->ages, b, age);
	if (age >= h->options.survived)
		amount__add(&t->dead_survivors, &amount);
}

/* It is dead, or nothing more will be known of it. */
static void on_end(struct heap *h, const struct hs_event *event)
{
	const struct hs_rec_block *rec = event->block;
	struct live_block *b = block_table__find(h->blocks, rec->id);
	bool is_unknown = event->type == HS_REC_UNKNOWN;
	struct amount amount;
	struct tally *t;

	if (!b)
		return;
	amount = live_block__amount(b);
	t = &b->cell->tally;
	if (b->is_doubtful)
		amount__subtract(&t->unknown, &amount);
	else
		tally__leave(t, &amount);
	if (is_unknown)
		amount__add(&t->unknown, &amount);
	else
		amount__add(rec->heap == HS_HEAP_MINOR ? &t->dead_young : &t->dead_old, &amount);
	if (b->is_old)
		end_old(h, b, is_unknown,
			live_block__age(b, cycle_count__of(h->cycles, rec->h.domain)));
	if (h->timeline && !b->is_doubtful)
		timeline__end(h->timeline, rec->h.time_ns, b->words, b->variance);
	block_table__remove(h->blocks, rec->id, b);
}

/*
 * A domain's count of cycles. Recordings of records version 1 and 2 do not tell when a
 * cycle ends; what they tell at a domain's end would make all its blocks old at once. So
 * before the first end of a cycle a count is where to begin, and no more.
 */
static void on_count(struct heap *h, const struct hs_event *event, const struct hs_counts *counts)
{
	bool is_end = event->type == HS_REC_MAJOR_CYCLE;

	h->tells_cycles |= is_end;
	if (h->tells_cycles || !cycle_count__knows(h->cycles, event->h->domain))
		cycle_count__told(h->cycles, event->h->domain, counts->major_collections, is_end);
}

static void on_domain(struct heap *h, const struct hs_event *event)
{
	on_count(h, event, &event->domain->counts);
	if (event->type == HS_REC_DOMAIN_TERMINATE)
		cycle_count__forget(h->cycles, event->h->domain);
}

static void saw_time(struct heap *h, uint64_t time_ns)
{
	if (!h->first_ns || time_ns < h->first_ns)
		h->first_ns = time_ns;
	if (time_ns > h->last_ns)
		h->last_ns = time_ns;
}

int heap__event(struct heap *h, const struct hs_event *event, const struct stack *stack,
		double rate)
{
	uint64_t time_ns = event->h->time_ns;

	if (event->type == HS_REC_STACK || heap__is_later(h, time_ns))
		return 0;
	saw_time(h, time_ns);
	switch (event->type) {
	case HS_REC_ALLOC:
		return on_alloc(h, event->alloc, stack, rate);
	case HS_REC_PROMOTE:
		on_promote(h, event->block);
		return 0;
	case HS_REC_DEALLOC:
	case HS_REC_UNKNOWN:
		on_end(h, event);
		return 0;
	case HS_REC_RATE:
		on_count(h, event, &event->rate->counts);
		return 0;
	default:
		on_domain(h, event);
		return 0;
	}
}

/* ---- reading ---- */

size_t heap__cells(const struct heap *h, struct heap_cell *const **out)
{
	return cell_table__all(h->cells, out);
}

uint64_t heap__cycles(const struct heap *h)
{
	return cycle_count__all(h->cycles);
}

const struct tally *heap__total(const struct heap *h)
{
	struct heap_cell *const *cells;
	size_t n = cell_table__all(h->cells, &cells);

	memset(h->total, 0, sizeof(*h->total));
	for (size_t i = 0; i < n; i++)
		tally__add(h->total, &cells[i]->tally);
	return h->total;
}

uint64_t heap__first_ns(const struct heap *h)
{
	return h->first_ns;
}

uint64_t heap__last_ns(const struct heap *h)
{
	return h->last_ns;
}

const struct timeline *heap__timeline(const struct heap *h)
{
	return h->timeline;
}

uint32_t heap__survived(const struct heap *h)
{
	return h->options.survived;
}

double heap__rate(const struct heap *h)
{
	return h->rate;
}
