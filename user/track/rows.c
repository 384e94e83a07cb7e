/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows; see rows.h. */
#include "user/track/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* What the cells of a row have in common. Names are interned by the symbolizer: equal
 * strings are equal pointers. Without padding, and zeroed where a kind of row has less. */
struct row_key {
	const void *what; /* function, or stack */
	const char *file;
	uint64_t number; /* line, domain, source or size class */
	uint64_t kind;   /* of enum stack_kind, for rows that are about stacks */
};

enum stack_kind { STACK_THERE = 1, STACK_EMPTY, STACK_LOST };

struct entry {
	struct row_key key;
	struct row row;
	uint64_t seen_in; /* the last cell that was added to .inclusive, counted from 1 */
	UT_hash_handle hh;
};

const struct amount *rows__amount(const struct tally *t, enum rows_metric metric)
{
	switch (metric) {
	case ROWS_LIVE:
		return &t->live;
	case ROWS_PROMOTED:
		return &t->promoted;
	case ROWS_SURVIVORS:
		return &t->survivors;
	default:
		return &t->allocated;
	}
}

/* ---- filter ---- */

static bool has_function(const struct stack *stack, const char *part)
{
	if (!stack)
		return false;
	for (uint32_t i = 0; i < stack->depth; i++) {
		const struct stack_frame *f = &stack->frames[i];

		for (size_t j = 0; j < f->n_locations; j++)
			if (f->locations[j].function && strcasestr(f->locations[j].function, part))
				return true;
	}
	return false;
}

static bool matches(const struct heap_cell *c, const struct rows_filter *filter)
{
	if (!filter)
		return true;
	if (filter->domain >= 0 && (uint64_t)filter->domain != c->domain)
		return false;
	if (filter->source >= 0 && filter->source != c->source)
		return false;
	return !filter->function || has_function(c->stack, filter->function);
}

/* ---- grouping ---- */

static enum stack_kind kind_of(const struct heap_cell *c)
{
	return c->stack ? STACK_THERE : c->is_stack_lost ? STACK_LOST : STACK_EMPTY;
}

static struct row_key key_of(const struct heap_cell *c, enum rows_by by)
{
	const struct hs_location *l = c->stack ? &c->stack->frames[0].locations[0] : NULL;
	struct row_key key = { 0 };

	switch (by) {
	case ROWS_BY_DOMAIN:
		key.number = c->domain;
		return key;
	case ROWS_BY_SOURCE:
		key.number = c->source;
		return key;
	case ROWS_BY_SIZE:
		key.number = c->size_class;
		return key;
	case ROWS_BY_STACK:
		key.what = c->stack;
		break;
	case ROWS_BY_FUNCTION:
		key.what = l ? l->function : NULL;
		break;
	default:
		key.what = l ? l->function : NULL;
		key.file = l ? l->file : NULL;
		key.number = l ? l->line : 0;
		break;
	}
	key.kind = kind_of(c);
	return key;
}

static void describe(struct row *r, const struct heap_cell *c, enum rows_by by,
		     const struct hs_location *l)
{
	r->stack = c->stack;
	switch (by) {
	case ROWS_BY_DOMAIN:
		r->domain = c->domain;
		return;
	case ROWS_BY_SOURCE:
		r->source = c->source;
		return;
	case ROWS_BY_SIZE:
		r->size_class = c->size_class;
		return;
	default:
		break;
	}
	r->is_stack_lost = kind_of(c) == STACK_LOST;
	if (!l)
		return;
	r->function = l->function;
	if (by != ROWS_BY_FUNCTION) {
		r->file = l->file;
		r->line = l->line;
	}
}

/* The entry for key, made if there is none: location l of cell c describes it. NULL: no
 * memory. */
static struct entry *entry_at(struct entry **entries, const struct row_key *key,
			      const struct heap_cell *c, enum rows_by by,
			      const struct hs_location *l)
{
	struct entry *e;

	HASH_FIND(hh, *entries, key, sizeof(*key), e);
	if (e) {
		/* Cells come in no order; which stack stands for the row shall not depend on it. */
		if (c->stack && (!e->row.stack || c->stack->id < e->row.stack->id))
			e->row.stack = c->stack;
		return e;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->key = *key;
	describe(&e->row, c, by, l);
	HASH_ADD(hh, *entries, key, sizeof(e->key), e);
	if (!e->hh.tbl) {
		free(e);
		return NULL;
	}
	return e;
}

static int add_cell(struct entry **entries, const struct heap_cell *c, enum rows_by by)
{
	const struct hs_location *l = c->stack ? &c->stack->frames[0].locations[0] : NULL;
	const struct row_key key = key_of(c, by);
	struct entry *e = entry_at(entries, &key, c, by, l);

	if (!e)
		return -ENOMEM;
	tally__add(&e->row.tally, &c->tally);
	return 0;
}

static int include_in(struct entry **entries, const struct heap_cell *c, uint64_t n_cell,
		      enum rows_metric metric, const struct hs_location *l)
{
	const struct row_key key = { .what = l ? l->function : NULL, .kind = kind_of(c) };
	struct entry *e = entry_at(entries, &key, c, ROWS_BY_FUNCTION, l);

	if (!e)
		return -ENOMEM;
	/* A function that calls itself is on the stack more than once. */
	if (e->seen_in == n_cell)
		return 0;
	e->seen_in = n_cell;
	amount__add(&e->row.inclusive, rows__amount(&c->tally, metric));
	return 0;
}

/* Add the cell to .inclusive of all functions on its stack. n_cell: its number, from 1. */
static int include_cell(struct entry **entries, const struct heap_cell *c, uint64_t n_cell,
			enum rows_metric metric)
{
	int err = 0;

	if (!c->stack)
		return include_in(entries, c, n_cell, metric, NULL);
	for (uint32_t i = 0; i < c->stack->depth && !err; i++) {
		const struct stack_frame *f = &c->stack->frames[i];

		for (size_t j = 0; j < f->n_locations && !err; j++)
			err = include_in(entries, c, n_cell, metric, &f->locations[j]);
	}
	return err;
}

/* ---- order ---- */

struct order {
	enum rows_by by;
	enum rows_metric metric;
};

static int descending(double a, double b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int compare(const void *left, const void *right, void *ctx)
{
	const struct row *a = left, *b = right;
	const struct order *o = ctx;
	char text_a[2304], text_b[2304];
	int ret = descending(rows__amount(&a->tally, o->metric)->words,
			     rows__amount(&b->tally, o->metric)->words);

	if (!ret)
		ret = descending(a->inclusive.words, b->inclusive.words);
	/* There may be a hundred thousand stacks with one sample each: no labels for them. */
	if (!ret && o->by == ROWS_BY_STACK && a->stack && b->stack)
		return a->stack->id < b->stack->id ? -1 : a->stack->id > b->stack->id;
	if (!ret)
		ret = strcmp(rows__label(a, o->by, text_a, sizeof(text_a)),
			     rows__label(b, o->by, text_b, sizeof(text_b)));
	return ret;
}

/* ---- all of it ---- */

static void free_entries(struct entry *entries)
{
	struct entry *e, *next;

	HASH_ITER (hh, entries, e, next) {
		HASH_DEL(entries, e);
		free(e);
	}
}

static int group(struct entry **entries, struct heap_cell *const *cells, size_t n_cells,
		 enum rows_by by, enum rows_metric metric, const struct rows_filter *filter)
{
	int err = 0;

	for (size_t i = 0; i < n_cells && !err; i++) {
		if (!matches(cells[i], filter))
			continue;
		err = add_cell(entries, cells[i], by);
		if (!err && by == ROWS_BY_FUNCTION)
			err = include_cell(entries, cells[i], i + 1, metric);
	}
	return err;
}

long rows__make_of(struct row **out, struct heap_cell *const *cells, size_t n_cells,
		   enum rows_by by, enum rows_metric metric, const struct rows_filter *filter)
{
	struct order order = { by, metric };
	struct entry *entries = NULL, *e;
	struct row *rows;
	size_t n = 0;

	if (group(&entries, cells, n_cells, by, metric, filter)) {
		free_entries(entries);
		return -ENOMEM;
	}
	/* One more than needed: calloc of nothing may give NULL. */
	rows = calloc(HASH_COUNT(entries) + (size_t)1, sizeof(*rows));
	if (!rows) {
		free_entries(entries);
		return -ENOMEM;
	}
	for (e = entries; e; e = e->hh.next) {
		rows[n] = e->row;
		if (by != ROWS_BY_FUNCTION)
			rows[n].inclusive = *rows__amount(&e->row.tally, metric);
		n++;
	}
	free_entries(entries);
	qsort_r(rows, n, sizeof(*rows), compare, &order);
	*out = rows;
	return (long)n;
}

long rows__make(struct row **out, const struct heap *h, enum rows_by by, enum rows_metric metric,
		const struct rows_filter *filter)
{
	struct heap_cell *const *cells;
	size_t n_cells = heap__cells(h, &cells);

	return rows__make_of(out, cells, n_cells, by, metric, filter);
}

void rows__free(struct row *rows)
{
	free(rows);
}
