/* SPDX-License-Identifier: BSD-2-Clause */
/* Two heaps side by side; see diff_pairs.h. */
#include "user/report/diff_pairs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct entry {
	char *name; /* key, owned */
	struct diff_pair pair;
	UT_hash_handle hh;
};

/* ---- what belongs together ---- */

static void print_location(FILE *f, const char *function, const char *file, uint32_t line)
{
	/* A blank cannot be told from one in a name, a newline can: names have none. */
	fprintf(f, "%s\n%s\n%u\n", function ? function : "\n", file ? file : "\n", line);
}

static void print_stack(FILE *f, const struct stack *stack)
{
	for (uint32_t i = 0; stack && i < stack->depth; i++)
		for (size_t j = 0; j < stack->frames[i].n_locations; j++) {
			const struct hs_location *l = &stack->frames[i].locations[j];

			print_location(f, l->function, l->file, l->line);
		}
}

/* What the row is called, in a way that both heaps share; the caller's. NULL: no memory. */
static char *name_of(const struct row *row, enum rows_by by)
{
	char *name = NULL;
	size_t size;
	FILE *f = open_memstream(&name, &size);

	if (!f)
		return NULL;
	if (by == ROWS_BY_STACK)
		print_stack(f, row->stack);
	else
		print_location(f, row->function, row->file, row->line);
	fprintf(f, "%d %d %u %u %u", !row->stack, row->is_stack_lost, row->domain, row->source,
		row->size_class);
	if (fclose(f)) {
		free(name);
		return NULL;
	}
	return name;
}

static struct entry *entry_of(struct entry **entries, const struct row *row, enum rows_by by)
{
	char *name = name_of(row, by);
	struct entry *e;

	if (!name)
		return NULL;
	HASH_FIND_STR(*entries, name, e);
	if (e) {
		free(name);
		return e;
	}
	e = calloc(1, sizeof(*e));
	if (e) {
		e->name = name;
		e->pair.row = row;
		HASH_ADD_KEYPTR(hh, *entries, e->name, strlen(e->name), e);
	}
	if (!e || !e->hh.tbl) {
		free(e);
		free(name);
		return NULL;
	}
	return e;
}

static void free_entries(struct entry *entries)
{
	struct entry *e, *next;

	HASH_ITER (hh, entries, e, next) {
		HASH_DEL(entries, e);
		free(e->name);
		free(e);
	}
}

/* Add the rows of a heap, as a or as b. 0 or -ENOMEM. */
static int add_heap(struct entry **entries, struct row **rows, const struct heap *h,
		    const struct report_options *o, bool is_b)
{
	long n = rows__make(rows, h, o->by, o->metric, &o->filter);

	for (long i = 0; i < n; i++) {
		const struct amount *amount = rows__amount(&(*rows)[i].tally, o->metric);
		struct entry *e;

		/* Nothing of the metric on either side: no row, and no test to correct for. */
		if (amount->words <= 0)
			continue;
		e = entry_of(entries, &(*rows)[i], o->by);
		if (!e)
			return -ENOMEM;
		amount__add(is_b ? &e->pair.b : &e->pair.a, amount);
		if (o->metric != ROWS_ALLOC)
			amount__add(is_b ? &e->pair.missing_b : &e->pair.missing_a,
				    &(*rows)[i].tally.unknown);
	}
	return n < 0 ? -ENOMEM : 0;
}

/* ---- significance ---- */

double diff_pair__ratio(const struct diff_pair *p, const struct diff_exposure *exposure)
{
	if (p->a.words <= 0)
		return p->b.words > 0 ? INFINITY : NAN;
	return p->b.words / exposure->b / (p->a.words / exposure->a);
}

static void judge(struct diff_pair *p, const struct diff_exposure *exposure, double significance)
{
	p->difference = p->b.words / exposure->b - p->a.words / exposure->a;
	p->p = amount__missing_p(&p->a, &p->missing_a, exposure->a, exposure->rate_a, &p->b,
				 &p->missing_b, exposure->b, exposure->rate_b);
	p->p_adjusted = p->p;
	p->is_significant = p->p < significance;
}

static int by_p(const void *left, const void *right)
{
	const struct diff_pair *a = left, *b = right;

	return a->p < b->p ? -1 : a->p > b->p;
}

/*
 * Holm's procedure: whatever is true, the chance that any pair without a difference is
 * marked is at most the significance.
 */
static void adjust(struct diff_pairs *d, double significance)
{
	double least = 0;

	qsort(d->pairs, d->n, sizeof(*d->pairs), by_p);
	for (size_t i = 0; i < d->n; i++) {
		struct diff_pair *p = &d->pairs[i];

		p->p_adjusted = fmin(1, fmax(least, p->p * (double)(d->n - i)));
		p->is_significant = p->p_adjusted < significance;
		least = p->p_adjusted;
	}
}

static int by_weight(const void *left, const void *right, void *ctx)
{
	const struct diff_pair *a = left, *b = right;
	double x = fabs(a->difference), y = fabs(b->difference);
	const enum rows_by *by = ctx;
	char text_a[2304], text_b[2304];

	if (a->is_significant != b->is_significant)
		return a->is_significant ? -1 : 1;
	if (x == y) {
		x = a->a.words + a->b.words;
		y = b->a.words + b->b.words;
	}
	if (x != y)
		return x > y ? -1 : 1;
	return strcmp(rows__label(a->row, *by, text_a, sizeof(text_a)),
		      rows__label(b->row, *by, text_b, sizeof(text_b)));
}

/* ---- all of it ---- */

int diff_pairs__make(struct diff_pairs *d, const struct heap *a, const struct heap *b,
		     const struct report_options *o, const struct diff_exposure *exposure)
{
	struct entry *entries = NULL, *e;
	enum rows_by by = o->by;
	int err;

	memset(d, 0, sizeof(*d));
	err = add_heap(&entries, &d->rows_a, a, o, false);
	if (!err)
		err = add_heap(&entries, &d->rows_b, b, o, true);
	if (!err)
		d->pairs = calloc(HASH_COUNT(entries) + (size_t)1, sizeof(*d->pairs));
	if (!d->pairs) {
		free_entries(entries);
		return -ENOMEM;
	}
	for (e = entries; e; e = e->hh.next) {
		amount__add(&d->total.a, &e->pair.a);
		amount__add(&d->total.b, &e->pair.b);
		amount__add(&d->total.missing_a, &e->pair.missing_a);
		amount__add(&d->total.missing_b, &e->pair.missing_b);
		/* Lost samples may be of any pair. */
		amount__add(&e->pair.missing_a, heap__lost_samples(a));
		amount__add(&e->pair.missing_b, heap__lost_samples(b));
		judge(&e->pair, exposure, o->significance);
		d->pairs[d->n++] = e->pair;
	}
	free_entries(entries);
	amount__add(&d->total.missing_a, heap__lost_samples(a));
	amount__add(&d->total.missing_b, heap__lost_samples(b));
	judge(&d->total, exposure, o->significance);
	adjust(d, o->significance);
	qsort_r(d->pairs, d->n, sizeof(*d->pairs), by_weight, &by);
	return 0;
}

void diff_pairs__deinit(struct diff_pairs *d)
{
	free(d->pairs);
	rows__free(d->rows_a);
	rows__free(d->rows_b);
	memset(d, 0, sizeof(*d));
}
