/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampled heap: how many words each place allocates, and what becomes of them.
 *
 * In:   checked events with their stacks and the rate in force (user/track/pipeline.h).
 * Out:  a tally for each cell, that is each combination of stack, allocating domain,
 *       source and, if wanted, size class; user/track/rows.h adds them up as people ask for them.
 *
 * Blocks that were allocated before the recording are not known, and so are in no figure.
 */
#ifndef HEAPSONDE_HEAP_H
#define HEAPSONDE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/decode/decode.h"
#include "user/track/estimate.h"
#include "user/track/stacks.h"
#include "user/track/timeline.h"

/* Stands for all domains beyond HEAP_DOMAINS_MAX, of a process that spawns and spawns. */
#define HEAP_DOMAIN_OTHERS UINT32_MAX
#define HEAP_DOMAINS_MAX 1024

/*
 * How many major cycles blocks have lived through that have reached the major heap:
 * sums over words, so that they can be added up. The age of a block is the number of
 * cycles that have ended since it was allocated.
 */
struct ages {
	double dead_words;   /* Σ w over the dead */
	double dead_cycles;  /* Σ w·age */
	double dead_squares; /* Σ w·age² */
	double live_words;   /* Σ w over the living */
	double live_births;  /* Σ w·birth, birth: cycles that had ended at its allocation */
	double live_squares; /* Σ w·birth² */
	double variance;     /* of all these words together */
};

/* What has become of the blocks of a cell, or of several. What each alloc touches is together. */
struct tally {
	uint64_t n_allocs;  /* sampled blocks */
	uint64_t n_live;    /* of these, alive */
	struct amount live; /* not known to be dead */
	struct amount allocated;
	struct amount minor;          /* of these, in the minor heap */
	struct amount promoted;       /* out of the minor heap */
	struct amount dead_young;     /* in the minor heap, never promoted */
	struct amount dead_old;       /* in the major heap */
	struct amount unknown;        /* not followed, or fate unknown: neither live nor dead */
	struct amount survivors;      /* lived through options.survived cycles or more, be they dead
				       * since or not; only after heap__settle */
	struct amount dead_survivors; /* of survivors, the dead; at all times */
	struct amount old_live;       /* of survivors, those alive; only after heap__settle */
	struct ages ages;
	uint64_t oldest_live_ns; /* allocation of the oldest of old_live, 0: none; after settle */
};

void tally__add(struct tally *to, const struct tally *from);

/*
 * Mean age in major cycles, of blocks that have reached the major heap, weighted by
 * words, those alive counted as old as they are so far. n_cycles: that have ended by now
 * (heap__cycles). NAN, interval included, if there are none. missing: words that may belong
 * there, of any age that there can be (heap__missing).
 */
struct interval ages__mean(const struct ages *a, uint64_t n_cycles, const struct amount *missing);

struct heap_cell {
	const struct stack *stack; /* NULL: empty, or lost */
	bool is_stack_lost;
	uint32_t domain;    /* that allocated; or HEAP_DOMAIN_OTHERS */
	uint8_t source;     /* enum sonde_source */
	uint8_t size_class; /* see heap__size_class */
	struct tally tally;
};

/* What is allocated while a cycle marks is marked: only the second end finds it dead. */
#define HEAP_SURVIVED_DEFAULT 2

struct heap_options {
	uint64_t since_ns; /* blocks allocated before are left out; CLOCK_MONOTONIC; 0: none */
	uint64_t until_ns; /* what happens later is left out; 0: nothing */
	uint32_t survived; /* major cycles, for survivors; 0: HEAP_SURVIVED_DEFAULT */
	bool want_timeline;
	bool want_sizes; /* cells are by size class too, for rows by size; else it is 0 */
	bool sites_only; /* a cell for each allocation site, and no more, so that there are no
			  * more of them than places in the program: for rows by site. Its
			  * stack is one of them; domain, source and size class are 0 */
};

struct heap;

/* options: NULL for none; copied. Errors: -ENOMEM. */
int heap__new(struct heap **out, const struct heap_options *options);

/* NULL is fine. */
void heap__free(struct heap *h);

/*
 * Take in an event. stack: of an alloc, NULL if empty or lost. rate: λ in force in its
 * domain, for an alloc, in (0, 1]. Errors: -ENOMEM.
 */
int heap__event(struct heap *h, const struct hs_event *event, const struct stack *stack,
		double rate);

/* ---- losses ---- */

/* When something was lost: not before, not later; CLOCK_MONOTONIC. */
struct heap_loss_time {
	uint64_t since_ns;
	uint64_t time_ns;
};

/* Samples of allocations were lost, at this rate; of which blocks is not known. */
void heap__lost(struct heap *h, const struct heap_loss_time *when, uint64_t n_samples, double rate);

/* Records were lost, and how much they would have told is not known. */
void heap__lost_unmeasured(struct heap *h, const struct heap_loss_time *when);

/*
 * Promotions or deaths may have been lost: no block that is there is known to live any
 * more. They count as unknown, until they are told to be dead.
 */
void heap__doubt(struct heap *h, const struct heap_loss_time *when);

/* All that heap__lost was told. */
const struct amount *heap__lost_samples(const struct heap *h);

/* Has heap__lost_unmeasured been called? Then intervals do not hold all that may be. */
bool heap__is_unmeasured(const struct heap *h);

/*
 * What an amount of a tally may lack (amount__interval): the samples that were lost and, if
 * it says what became of blocks (is_fate), those whose fate is unknown.
 */
struct amount heap__missing(const struct amount *lost, const struct tally *t, bool is_fate);

/*
 * Bring up to date what needs a walk over the living blocks: survivors, old_live,
 * oldest_live_ns. May be called again and again.
 */
void heap__settle(struct heap *h);

/* The cells, in no order; *out and what it points to are owned by h, until the next event. */
size_t heap__cells(const struct heap *h, struct heap_cell *const **out);

/* Major cycles that have ended since the recording began, as far as records have told
 * (user/track/cycles.h). Captures of version 2 and earlier do not tell. */
uint64_t heap__cycles(const struct heap *h);

/* Of all cells, added up; owned by h, until the next call. */
const struct tally *heap__total(const struct heap *h);

/* Time of the first and of the last event taken in, 0: none. */
uint64_t heap__first_ns(const struct heap *h);
uint64_t heap__last_ns(const struct heap *h);

/* NULL unless wanted; owned by h. */
const struct timeline *heap__timeline(const struct heap *h);

/* Major cycles that survivors have lived through: options.survived, at least 1. */
uint32_t heap__survived(const struct heap *h);

/* λ that the last allocation was sampled at, for the interval of what was never seen. */
double heap__rate(const struct heap *h);

/*
 * Size classes: 0 … 32 are sizes in words, without header; above, classes end at the
 * powers of two. *low, *high: the sizes of a class, inclusive.
 */
#define HEAP_SIZE_CLASSES 92
uint8_t heap__size_class(uint64_t size_words);
void heap__size_class_range(uint8_t size_class, uint64_t *low, uint64_t *high);

#endif /* HEAPSONDE_HEAP_H */
