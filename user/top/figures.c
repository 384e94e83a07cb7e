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

static struct interval per_second(const struct amount *a, const struct figures_scale *s)
{
	struct interval i;

	if (s->window_s <= 0)
		return unknown;
	i = amount__interval(a, s->rate);
	i.value /= s->window_s;
	i.low /= s->window_s;
	i.high /= s->window_s;
	return i;
}

/* part of all, where all includes part. */
static struct interval share_of(const struct amount *part, const struct amount *all)
{
	struct amount rest = *all;

	amount__subtract(&rest, part);
	return amount__share(part, &rest);
}

static struct interval share(const struct tally *of, const struct tally *window,
			     const struct figures_scale *s)
{
	if (s->metric == ROWS_LIVE)
		return share_of(&of->live, &s->all.live);
	return share_of(rows__amount(window, s->metric), rows__amount(&s->all_window, s->metric));
}

/* Of all whose first fate is known, those that died in the minor heap. */
static struct interval young(const struct tally *t)
{
	struct amount rest = t->allocated;

	/* What was allocated in the major heap has not died young. */
	amount__subtract(&rest, &t->minor);
	amount__add(&rest, &t->promoted);
	return amount__share(&t->dead_young, &rest);
}

void figures__make(struct figures *f, const struct tally *of, const struct tally *window,
		   const struct figures_scale *s)
{
	f->at[FIGURE_ALLOC] = per_second(&window->allocated, s);
	f->at[FIGURE_LIVE] = amount__interval(&of->live, s->rate);
	f->at[FIGURE_PROMOTE] = per_second(&window->promoted, s);
	f->at[FIGURE_SHARE] = share(of, window, s);
	f->at[FIGURE_PROMOTED] = amount__share(&of->promoted, &of->dead_young);
	f->at[FIGURE_YOUNG] = young(of);
	f->at[FIGURE_AGE] = ages__mean(&of->ages, s->n_cycles);
	f->at[FIGURE_TOTAL] = amount__interval(&of->allocated, s->rate);
}
