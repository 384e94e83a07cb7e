/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The figures of a row of `heapsonde top`, each with its 95 % interval.
 *
 * In:   tallies (user/track/heap.h): of the whole time, and of the window, the last
 *       seconds.
 * Out:  struct figures; docs/top.md has the formulas.
 */
#ifndef HEAPSONDE_FIGURES_H
#define HEAPSONDE_FIGURES_H

#include "user/track/heap.h"
#include "user/track/rows.h"

enum figure {
	FIGURE_ALLOC,    /* words allocated per second, in the window */
	FIGURE_LIVE,     /* words that live */
	FIGURE_PROMOTE,  /* words promoted per second, in the window */
	FIGURE_SHARE,    /* of all rows, of the metric's figure, 0 … 1 */
	FIGURE_PROMOTED, /* promoted / (promoted + dead young), 0 … 1 */
	FIGURE_YOUNG,    /* dead young / (dead young + promoted + direct), 0 … 1 */
	FIGURE_AGE,      /* mean age in major cycles */
	FIGURE_TOTAL,    /* words allocated since the beginning */
	FIGURES
};

/* An unknown value is NAN. */
struct figures {
	struct interval at[FIGURES];
};

/* What all rows have in common. */
struct figures_scale {
	enum rows_metric metric;         /* what FIGURE_SHARE is a share of */
	double window_s;                 /* length of the window; <= 0: there is none yet */
	double rate;                     /* λ in force, for what was never sampled */
	uint64_t n_cycles;               /* major cycles that have ended */
	struct tally all, all_window;    /* of all rows */
	struct amount lost, lost_window; /* samples that may be of any row (heap__lost) */
};

/* of: since the beginning. window: what the window added. */
void figures__make(struct figures *f, const struct tally *of, const struct tally *window,
		   const struct figures_scale *scale);

/* The figure that a metric is about: FIGURE_ALLOC, FIGURE_LIVE or FIGURE_PROMOTE. */
enum figure figures__of_metric(enum rows_metric metric);

#endif /* HEAPSONDE_FIGURES_H */
