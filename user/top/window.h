/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the last few seconds added to the sampled heap.
 *
 * In:   the cells of user/track/heap.h, looked at once per refresh.
 * Out:  cells with the differences, and the time between.
 */
#ifndef HEAPSONDE_WINDOW_H
#define HEAPSONDE_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "user/top/facts.h"
#include "user/track/heap.h"

/* The window reaches back so many refreshes. */
#define WINDOW_STEPS 5

struct window_cell; /* window.c */

struct window {
	struct window_cell *cells;
	/* As of the last refreshes; place n % (WINDOW_STEPS + 1) is the n-th's. */
	uint64_t times_ns[WINDOW_STEPS + 1];
	struct facts_counts counts[WINDOW_STEPS + 1];
	struct amount lost[WINDOW_STEPS + 1]; /* heap__lost_samples */
	uint64_t n_steps;                     /* so far */
	/* Since the first of them: allocated and promoted, of the cells that have any. */
	struct heap_cell *added;
	struct heap_cell **list;
	size_t n_added, room;
};

/* A zeroed window is empty. */
void window__deinit(struct window *w);

/* One refresh, at CLOCK_MONOTONIC now_ns. Errors: -ENOMEM. */
int window__step(struct window *w, const struct heap *h, const struct facts_counts *counts,
		 uint64_t now_ns);

/* Begin anew at the next refresh. */
void window__restart(struct window *w);

/* Its length; 0 before the second refresh. */
double window__seconds(const struct window *w);

/*
 * What the counters counted in it: sets *added, and returns the seconds in which. 0: they
 * have not been told often enough to say.
 */
double window__counted(const struct window *w, struct facts_counts *added);

/* Samples whose loss was told in it. */
struct amount window__lost(const struct window *w);

/*
 * The cells that have something in the window, with that in .tally.allocated and
 * .tally.promoted. *out is owned by w, until the next step. Returns how many.
 */
size_t window__cells(const struct window *w, struct heap_cell *const **out);

#endif /* HEAPSONDE_WINDOW_H */
