/* SPDX-License-Identifier: BSD-2-Clause */
/* See model.h. */
#include "user/top/model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/top/label.h"

#define LABEL_BYTES 1024

static void free_rows(struct model_rows *rows)
{
	free(rows->at);
	memset(rows, 0, sizeof(*rows));
}

void model__deinit(struct model *m)
{
	window__deinit(&m->window);
	free_rows(&m->rows);
	free_rows(&m->stacks);
}

int model__step(struct model *m, const struct facts *facts, uint64_t now_ns)
{
	m->rate = heap__rate(m->heap) > 0 ? heap__rate(m->heap) : facts->rate;
	return window__step(&m->window, m->heap, &facts->counts, now_ns);
}

/* ---- order ---- */

/* Do two rows stand for the same, whatever their figures? Names are interned. */
static bool is_same(const struct row *a, const struct row *b, enum rows_by by)
{
	if (a->function != b->function || a->file != b->file || a->line != b->line ||
	    a->is_stack_lost != b->is_stack_lost || !a->stack != !b->stack)
		return false;
	return by != ROWS_BY_STACK || a->stack == b->stack;
}

static int compare_key(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n);
}

/* Any order, but the same for the same rows. */
static int by_identity(const void *left, const void *right, void *ctx)
{
	const struct row *a = left, *b = right;
	const enum rows_by *by = ctx;
	int ret = compare_key(&a->function, &b->function, sizeof(a->function));

	if (!ret)
		ret = compare_key(&a->file, &b->file, sizeof(a->file));
	if (!ret)
		ret = compare_key(&a->line, &b->line, sizeof(a->line));
	if (!ret)
		ret = (int)a->is_stack_lost - (int)b->is_stack_lost;
	if (!ret)
		ret = !a->stack - !b->stack;
	if (!ret && *by == ROWS_BY_STACK)
		ret = compare_key(&a->stack, &b->stack, sizeof(a->stack));
	return ret;
}

/* The bigger first; what is not known last. */
static int by_value(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	return a < b ? 1 : a > b ? -1 : 0;
}

static int by_name(const struct model_row *a, const struct model_row *b, enum rows_by by)
{
	char text_a[LABEL_BYTES], text_b[LABEL_BYTES];

	return strcmp(label__whole(&a->row, by, text_a, sizeof(text_a)),
		      label__whole(&b->row, by, text_b, sizeof(text_b)));
}

/* The one that was seen first; names would take long to compare. */
static int by_age(const struct row *a, const struct row *b)
{
	uint32_t id_a = a->stack ? a->stack->id : 0, id_b = b->stack ? b->stack->id : 0;

	if (id_a != id_b)
		return id_a < id_b ? -1 : 1;
	return (int)a->is_stack_lost - (int)b->is_stack_lost;
}

static int by_view(const void *left, const void *right, void *ctx)
{
	const struct model_row *a = left, *b = right;
	const struct view *v = ctx;
	int ret;

	if (v->sort == VIEW_SORT_NAME) {
		ret = by_name(a, b, v->by);
		return v->is_reversed ? -ret : ret;
	}
	ret = by_value(a->figures.at[v->sort].value, b->figures.at[v->sort].value);
	/* What is not known stays last. */
	if (v->is_reversed && !isnan(a->figures.at[v->sort].value) &&
	    !isnan(b->figures.at[v->sort].value))
		ret = -ret;
	if (!ret)
		ret = by_value(a->figures.at[FIGURE_TOTAL].value,
			       b->figures.at[FIGURE_TOTAL].value);
	return ret ? ret : by_age(&a->row, &b->row);
}

/* ---- rows ---- */

static void sum(struct tally *to, const struct row *rows, long n)
{
	memset(to, 0, sizeof(*to));
	for (long i = 0; i < n; i++)
		tally__add(to, &rows[i].tally);
}

/* Rows with their figures, which take over the n rows of the whole time. */
static int join(struct model_rows *out, const struct model *m, enum rows_by by,
		const struct row *rows, long n, struct row *window, long n_window,
		struct figures_scale *scale)
{
	static const struct tally nothing;

	sum(&scale->all, rows, n);
	sum(&scale->all_window, window, n_window);
	scale->window_s = window__seconds(&m->window);
	scale->rate = m->rate;
	scale->n_cycles = heap__cycles(m->heap);
	scale->lost = *heap__lost_samples(m->heap);
	scale->lost_window = window__lost(&m->window);
	qsort_r(window, (size_t)n_window, sizeof(*window), by_identity, &by);
	out->at = calloc((size_t)n + 1, sizeof(*out->at));
	if (!out->at)
		return -ENOMEM;
	out->n = (size_t)n;
	for (long i = 0; i < n; i++) {
		const struct row *added = NULL;
		long low = 0, high = n_window;

		while (low < high && !added) {
			long middle = low + (high - low) / 2;
			int order = by_identity(&rows[i], &window[middle], &by);

			if (!order)
				added = &window[middle];
			else if (order < 0)
				high = middle;
			else
				low = middle + 1;
		}
		out->at[i].row = rows[i];
		figures__make(&out->at[i].figures, &rows[i].tally, added ? &added->tally : &nothing,
			      scale);
	}
	figures__make(&out->all, &scale->all, &scale->all_window, scale);
	/* All of all is no estimate. */
	out->all.at[FIGURE_SHARE].low = out->all.at[FIGURE_SHARE].high = NAN;
	return 0;
}

/* Rows of the view's filter; only_site: NULL, or only what that row is about. */
static int make_rows(struct model_rows *out, const struct model *m, const struct view *v,
		     enum rows_by by, const struct row *only_site)
{
	const struct rows_filter filter = view__filter(v);
	struct figures_scale scale = { .metric = v->metric };
	struct row *rows = NULL, *window = NULL;
	struct heap_cell *const *cells;
	size_t n_cells = window__cells(&m->window, &cells);
	long n = rows__make(&rows, m->heap, by, v->metric, &filter), n_window, kept = 0;
	int ret = -ENOMEM;

	n_window = n < 0 ? n : rows__make_of(&window, cells, n_cells, by, v->metric, &filter);
	if (n_window >= 0) {
		for (long i = 0; i < n; i++)
			if (!only_site || is_same(&rows[i], only_site, ROWS_BY_SITE))
				rows[kept++] = rows[i];
		n = kept;
		kept = 0;
		for (long i = 0; i < n_window; i++)
			if (!only_site || is_same(&window[i], only_site, ROWS_BY_SITE))
				window[kept++] = window[i];
		ret = join(out, m, by, rows, n, window, kept, &scale);
	}
	rows__free(rows);
	rows__free(window);
	if (!ret)
		qsort_r(out->at, out->n, sizeof(*out->at), by_view, (void *)v);
	return ret;
}

static void follow_selected(struct view *view, const struct model_rows *rows,
			    const struct row *selected)
{
	for (size_t i = 0; i < rows->n; i++)
		if (is_same(&rows->at[i].row, selected, view->by)) {
			view->selected = i;
			return;
		}
	if (view->is_open)
		view->is_open = false;
}

int model__make(struct model *m, struct view *view)
{
	struct model_rows rows = { 0 }, stacks = { 0 };
	bool was_there = view->selected < m->rows.n;
	int ret = make_rows(&rows, m, view, view->by, NULL);

	if (ret)
		return ret;
	if (was_there && (view->selected > 0 || view->is_open))
		follow_selected(view, &rows, &m->rows.at[view->selected].row);
	if (view->selected >= rows.n)
		view->selected = rows.n ? rows.n - 1 : 0;
	if (view->is_open && rows.n) {
		const struct row *open = &rows.at[view->selected].row;

		if (view->by == ROWS_BY_SITE) {
			ret = make_rows(&stacks, m, view, ROWS_BY_STACK, open);
		} else {
			stacks.at = calloc(1, sizeof(*stacks.at));
			ret = stacks.at ? 0 : -ENOMEM;
			if (!ret) {
				stacks.at[0] = rows.at[view->selected];
				stacks.n = 1;
			}
		}
	}
	if (ret) {
		free_rows(&rows);
		return ret;
	}
	free_rows(&m->rows);
	free_rows(&m->stacks);
	m->rows = rows;
	m->stacks = stacks;
	return 0;
}
