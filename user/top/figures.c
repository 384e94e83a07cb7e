/* SPDX-License-Identifier: BSD-2-Clause */
/* See figures.h. */
#include "user/top/figures.h"

#include <math.h>

enum figure figures__of_metric(enum rows_metric metric)
{
	switch (metric) {
	case ROWS_LIVE:
		return FIGURE_LIVE;
	case ROWS_PROMOTED:
		return FIGURE_PROMOTE;
	default:
		return FIGURE_ALLOC;
	}
}

static const struct interval unknown = { NAN, NAN, NAN };

static struct interval per_second(const struct amount *a, const struct amount *missing,
				  const struct figures_scale *s)
{
	struct interval i;

	if (s->window_s <= 0)
		return unknown;
	i = amount__interval(a, missing, s->rate);
	i.value /= s->window_s;
	i.low /= s->window_s;
	i.high /= s->window_s;
	return i;
}

/* part of all, where all includes part. */
static struct interval share_of(const struct amount *part, const struct amount *all,
				const struct amount *missing)
{
	struct amount rest = *all;

	amount__subtract(&rest, part);
	return amount__share(part, &rest, missing);
}

/* fates: what is missing of the row and of the others together. */
static struct interval share(const struct tally *of, const struct tally *window,
			     const struct amount *fates, const struct figures_scale *s)
{
	if (s->metric == ROWS_LIVE)
		return share_of(&of->live, &s->all.live, fates);
	return share_of(rows__amount(window, s->metric), rows__amount(&s->all_window, s->metric),
			&s->lost_window);
}

/* Of all whose first fate is known, those that died in the minor heap. */
static struct interval young(const struct tally *t, const struct amount *missing)
{
	struct amount rest = t->allocated;

	/* What was allocated in the major heap has not died young. */
	amount__subtract(&rest, &t->minor);
	amount__add(&rest, &t->promoted);
	return amount__share(&t->dead_young, &rest, missing);
}

void figures__make(struct figures *f, const struct tally *of, const struct tally *window,
		   const struct figures_scale *s)
{
	const struct amount allocs = heap__missing(&s->lost, of, false);
	const struct amount fates = heap__missing(&s->lost, of, true);
	const struct amount all_fates = heap__missing(&s->lost, &s->all, true);

	f->at[FIGURE_ALLOC] = per_second(&window->allocated, &s->lost_window, s);
	f->at[FIGURE_LIVE] = amount__interval(&of->live, &fates, s->rate);
	f->at[FIGURE_PROMOTE] = per_second(&window->promoted, &s->lost_window, s);
	f->at[FIGURE_SHARE] = share(of, window, &all_fates, s);
	f->at[FIGURE_PROMOTED] = amount__share(&of->promoted, &of->dead_young, &fates);
	f->at[FIGURE_YOUNG] = young(of, &fates);
	f->at[FIGURE_AGE] = ages__mean(&of->ages, s->n_cycles, &fates);
	f->at[FIGURE_TOTAL] = amount__interval(&of->allocated, &allocs, s->rate);
}
