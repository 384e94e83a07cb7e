/* SPDX-License-Identifier: BSD-2-Clause */
/* See window.h. */
#include "user/top/window.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define PLACES (WINDOW_STEPS + 1)

/* Counters that change are told within so many seconds; that they do not, is not told. */
#define COUNTERS_S 2.0

/* What a cell had at the last refreshes. */
struct window_cell {
	const struct heap_cell *cell; /* key */
	struct amount allocated[PLACES];
	struct amount promoted[PLACES];
	UT_hash_handle hh;
};

void window__deinit(struct window *w)
{
	struct window_cell *c, *next;

	HASH_ITER (hh, w->cells, c, next) {
		HASH_DEL(w->cells, c);
		free(c);
	}
	free(w->added);
	free(w->list);
	memset(w, 0, sizeof(*w));
}

void window__restart(struct window *w)
{
	w->n_steps = 0;
	w->n_added = 0;
}

/* The places of the latest and of the earliest refresh; n_steps > 0. */
static size_t latest(const struct window *w)
{
	return (w->n_steps - 1) % PLACES;
}

static size_t earliest(const struct window *w)
{
	return w->n_steps < PLACES ? 0 : w->n_steps % PLACES;
}

static struct window_cell *cell_of(struct window *w, const struct heap_cell *cell)
{
	struct window_cell *c;

	HASH_FIND_PTR(w->cells, &cell, c);
	if (c)
		return c;
	/* Zeroed: before it was first seen it had nothing. */
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->cell = cell;
	HASH_ADD_PTR(w->cells, cell, c);
	if (!c->hh.tbl) {
		free(c);
		return NULL;
	}
	return c;
}

static int make_room(struct window *w, size_t n)
{
	struct heap_cell *added;
	struct heap_cell **list;

	if (n <= w->room)
		return 0;
	added = realloc(w->added, n * sizeof(*added));
	if (!added)
		return -ENOMEM;
	w->added = added;
	list = realloc(w->list, n * sizeof(*list));
	if (!list)
		return -ENOMEM;
	w->list = list;
	w->room = n;
	return 0;
}

static void add_difference(struct window *w, const struct window_cell *c)
{
	struct amount allocated = c->allocated[latest(w)], promoted = c->promoted[latest(w)];
	struct heap_cell *to;

	amount__subtract(&allocated, &c->allocated[earliest(w)]);
	amount__subtract(&promoted, &c->promoted[earliest(w)]);
	/* Less than a word is what sums of fractions leave. */
	if (allocated.words < 0.5 && promoted.words < 0.5)
		return;
	to = &w->added[w->n_added];
	*to = *c->cell;
	memset(&to->tally, 0, sizeof(to->tally));
	to->tally.allocated = allocated;
	to->tally.promoted = promoted;
	w->list[w->n_added++] = to;
}

int window__step(struct window *w, const struct heap *h, const struct facts_counts *counts,
		 uint64_t now_ns)
{
	struct heap_cell *const *cells;
	size_t n = heap__cells(h, &cells);

	w->n_added = 0;
	if (make_room(w, n))
		return -ENOMEM;
	w->n_steps++;
	w->times_ns[latest(w)] = now_ns;
	w->counts[latest(w)] = *counts;
	w->lost[latest(w)] = *heap__lost_samples(h);
	for (size_t i = 0; i < n; i++) {
		struct window_cell *c = cell_of(w, cells[i]);

		if (!c)
			return -ENOMEM;
		c->allocated[latest(w)] = cells[i]->tally.allocated;
		c->promoted[latest(w)] = cells[i]->tally.promoted;
		add_difference(w, c);
	}
	return 0;
}

double window__seconds(const struct window *w)
{
	if (w->n_steps < 2)
		return 0;
	return (double)(w->times_ns[latest(w)] - w->times_ns[earliest(w)]) / 1e9;
}

double window__counted(const struct window *w, struct facts_counts *added)
{
	struct facts_counts now, before;
	double told_s, idle_s = window__seconds(w) - COUNTERS_S;

	if (w->n_steps < 2)
		return 0;
	now = w->counts[latest(w)];
	before = w->counts[earliest(w)];
	if (!before.time_ns)
		return 0;
	*added = (struct facts_counts){
		.minor_words = now.minor_words - before.minor_words,
		.promoted_words = now.promoted_words - before.promoted_words,
		.direct_words = now.direct_words - before.direct_words,
		.minor_collections = now.minor_collections - before.minor_collections,
		.major_collections = now.major_collections - before.major_collections,
	};
	/* Between the times when they were read, which are not those of the refreshes. */
	told_s = (double)(now.time_ns - before.time_ns) / 1e9;
	return fmax(fmax(told_s, idle_s), 0);
}

struct amount window__lost(const struct window *w)
{
	struct amount lost = { 0 };

	if (w->n_steps) {
		lost = w->lost[latest(w)];
		amount__subtract(&lost, &w->lost[earliest(w)]);
	}
	return lost;
}

size_t window__cells(const struct window *w, struct heap_cell *const **out)
{
	*out = w->list;
	return w->n_added;
}
