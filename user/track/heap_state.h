/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the sampled heap is made of; of heap.c and heap_losses.c only.
 *
 * In:   living blocks.
 * Out:  how they enter and leave tallies.
 */
#ifndef HEAPSONDE_HEAP_STATE_H
#define HEAPSONDE_HEAP_STATE_H

#include "user/track/blocks.h"
#include "user/track/cells.h"
#include "user/track/cycles.h"
#include "user/track/heap.h"

/* A block that lives, as far as is known. */
struct live_block {
	struct heap_cell *cell;
	double words;
	double variance;
	double blocks;
	uint64_t born_ns;
	uint32_t birth;   /* major cycles that had ended (user/track/cycles.h) */
	bool is_old;      /* in the major heap: its age counts */
	bool is_doubtful; /* its end may have been lost (heap__doubt) */
};

struct heap {
	struct heap_options options;
	struct cell_table *cells;
	struct block_table *blocks;
	struct timeline *timeline;
	struct cycle_count *cycles;
	bool tells_cycles;   /* the end of one has been told */
	struct tally *total; /* as of the last heap__total */
	struct amount lost;  /* samples of allocations */
	bool is_unmeasured;  /* and what nobody knows */
	uint64_t first_ns;
	uint64_t last_ns;
	double rate;
};

/* Is this after the time that the heap is to show? */
static inline bool heap__is_later(const struct heap *h, uint64_t time_ns)
{
	return h->options.until_ns && time_ns > h->options.until_ns;
}

/* Add a living block of the major heap; sign -1: take it away. */
static inline void ages__add_live(struct ages *a, const struct live_block *b, int sign)
{
	double birth = b->birth;

	a->live_words += sign * b->words;
	a->live_births += sign * b->words * birth;
	a->live_squares += sign * b->words * birth * birth;
}

/* It is not known any more how old the block becomes. */
static inline void live_block__forget_age(struct live_block *b)
{
	struct ages *a = &b->cell->tally.ages;

	ages__add_live(a, b, -1);
	a->variance -= b->variance;
}

static inline struct amount live_block__amount(const struct live_block *b)
{
	return (struct amount){ b->words, b->variance, b->blocks };
}

/* It does not live any more, as far as is known. */
static inline void tally__leave(struct tally *t, const struct amount *amount)
{
	amount__subtract(&t->live, amount);
	t->n_live--;
	/* Sums of fractions leave a trace. */
	if (!t->n_live)
		t->live = (struct amount){ 0 };
}

/* Cycles that a block has lived through when n have ended. Another domain may own it than
 * allocated it, and have told less. */
static inline uint32_t live_block__age(const struct live_block *b, uint32_t n)
{
	return n > b->birth ? n - b->birth : 0;
}

#endif /* HEAPSONDE_HEAP_STATE_H */
