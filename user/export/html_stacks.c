/* SPDX-License-Identifier: BSD-2-Clause */
/* The tree of callers; see html_stacks.h. */
#include "user/export/html_stacks.h"

#include <Judy.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "user/export/html_json.h"

#define N_METRICS 4

/* What the page can show: their names there, and where they stand in a tally. */
static const struct {
	const char *name;
	size_t offset;
} metrics[N_METRICS] = {
	{ "allocated", offsetof(struct tally, allocated) },
	{ "live", offsetof(struct tally, live) },
	{ "promoted", offsetof(struct tally, promoted) },
	{ "survivors", offsetof(struct tally, survivors) },
};

/* Indices of strings, from 0; a name that is not known is NO_STRING. */
#define NO_STRING UINT32_MAX

struct page_frame {
	uint32_t function;
	uint32_t file;
	uint32_t line;
};

struct page_node {
	uint32_t parent;
	uint32_t frame;
};

struct page_cell {
	uint32_t node;
	uint32_t domain;
	struct amount amounts[N_METRICS];
};

/* An array that grows. */
struct vector {
	void *items;
	size_t n;
	size_t room;
};

struct tables {
	struct vector strings; /* const char *, the symbolizer's */
	struct vector frames;  /* struct page_frame */
	struct vector nodes;   /* struct page_node; 0 is above all stacks */
	struct vector cells;   /* struct page_cell */
	Pvoid_t string_ids;    /* JudyHS, by text: index + 1 */
	Pvoid_t frame_ids;     /* JudyHS, by struct page_frame: index + 1 */
	Pvoid_t location_ids;  /* JudyL, by the address of a location: frame's index + 1 */
	Pvoid_t node_ids;      /* JudyL, by parent << 32 | frame: index + 1 */
	bool is_cut;           /* there were too many nodes */
};

/* Room for one more. NULL: no memory. */
static void *vector__add(struct vector *v, size_t item_bytes)
{
	if (v->n == v->room) {
		size_t room = v->room ? 2 * v->room : 256;
		void *items = reallocarray(v->items, room, item_bytes);

		if (!items || room >= UINT32_MAX) {
			v->items = items ? items : v->items;
			return NULL;
		}
		v->items = items;
		v->room = room;
	}
	return (char *)v->items + item_bytes * v->n++;
}

static void tables__deinit(struct tables *t)
{
	JudyHSFreeArray(&t->string_ids, PJE0);
	JudyHSFreeArray(&t->frame_ids, PJE0);
	JudyLFreeArray(&t->location_ids, PJE0);
	JudyLFreeArray(&t->node_ids, PJE0);
	free(t->strings.items);
	free(t->frames.items);
	free(t->nodes.items);
	free(t->cells.items);
}

/* ---- strings, frames, nodes: each once; the functions return an index or -ENOMEM ---- */

static long string_of(struct tables *t, const char *text)
{
	PPvoid_t id;
	const char **place;

	if (!text)
		return NO_STRING;
	/* One byte more: JudyHS has no room for what is empty. */
	id = JudyHSIns(&t->string_ids, (void *)text, strlen(text) + 1, PJE0);
	if (!id || id == PPJERR)
		return -ENOMEM;
	if (!*id) {
		place = vector__add(&t->strings, sizeof(*place));
		if (!place)
			return -ENOMEM;
		*place = text;
		*id = (void *)t->strings.n;
	}
	return (long)(Word_t)*id - 1;
}

static long frame_of(struct tables *t, const char *function, const char *file, uint32_t line)
{
	long function_id = string_of(t, function), file_id = string_of(t, file);
	struct page_frame key = { (uint32_t)function_id, (uint32_t)file_id, line };
	struct page_frame *place;
	PPvoid_t id;

	if (function_id < 0 || file_id < 0)
		return -ENOMEM;
	id = JudyHSIns(&t->frame_ids, &key, sizeof(key), PJE0);
	if (!id || id == PPJERR)
		return -ENOMEM;
	if (!*id) {
		place = vector__add(&t->frames, sizeof(*place));
		if (!place)
			return -ENOMEM;
		*place = key;
		*id = (void *)t->frames.n;
	}
	return (long)(Word_t)*id - 1;
}

static long frame_of_location(struct tables *t, const struct hs_location *l)
{
	PPvoid_t id = JudyLIns(&t->location_ids, (Word_t)l, PJE0);
	long frame;

	if (!id || id == PPJERR)
		return -ENOMEM;
	if (!*id) {
		frame = frame_of(t, l->function, l->file, l->line);
		if (frame < 0)
			return frame;
		*id = (void *)(frame + 1);
	}
	return (long)(Word_t)*id - 1;
}

/* The node of a frame below parent; parent itself if there may be no more nodes. */
static long node_below(struct tables *t, long parent, long frame)
{
	Word_t key = (Word_t)parent << 32 | (Word_t)frame;
	PPvoid_t id = JudyLGet(t->node_ids, key, PJE0);
	struct page_node *place;

	if (id)
		return (long)(Word_t)*id - 1;
	if (t->nodes.n >= HTML_NODES_MAX) {
		t->is_cut = true;
		return parent;
	}
	id = JudyLIns(&t->node_ids, key, PJE0);
	place = vector__add(&t->nodes, sizeof(*place));
	if (!id || id == PPJERR || !place)
		return -ENOMEM;
	*place = (struct page_node){ (uint32_t)parent, (uint32_t)frame };
	*id = (void *)t->nodes.n;
	return (long)t->nodes.n - 1;
}

/* ---- from cells to tables ---- */

static long node_of_stack(struct tables *t, const struct stack *stack)
{
	long node = 0;

	for (size_t i = stack->depth; i-- && node >= 0;) {
		const struct stack_frame *frame = &stack->frames[i];

		for (size_t j = frame->n_locations; j-- && node >= 0;) {
			long id = frame_of_location(t, &frame->locations[j]);

			node = id < 0 ? id : node_below(t, node, id);
		}
	}
	return node;
}

static long node_of(struct tables *t, const struct heap_cell *cell)
{
	long frame;

	if (cell->stack)
		return node_of_stack(t, cell->stack);
	frame = frame_of(t, cell->is_stack_lost ? "(stack lost)" : "(no OCaml frame)", NULL, 0);
	return frame < 0 ? frame : node_below(t, 0, frame);
}

static void cell__add(struct page_cell *cell, const struct tally *tally)
{
	for (int i = 0; i < N_METRICS; i++)
		amount__add(&cell->amounts[i],
			    (const struct amount *)((const char *)tally + metrics[i].offset));
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Sources and sizes too, because sums of fractions depend on the order. */
static int compare_cells(const void *a, const void *b)
{
	const struct heap_cell *x = *(struct heap_cell *const *)a;
	const struct heap_cell *y = *(struct heap_cell *const *)b;
	int c = compare(x->stack ? x->stack->id : 0, y->stack ? y->stack->id : 0);

	c = c ? c : compare(x->is_stack_lost, y->is_stack_lost);
	c = c ? c : compare(x->domain, y->domain);
	c = c ? c : compare(x->source, y->source);
	return c ? c : compare(x->size_class, y->size_class);
}

/* One page_cell for all neighbours with the same node and domain. */
static int add_cell(struct tables *t, const struct heap_cell *cell, const struct heap_cell *before)
{
	struct page_cell *place;
	long node;

	if (before && before->stack == cell->stack && before->domain == cell->domain &&
	    before->is_stack_lost == cell->is_stack_lost) {
		place = (struct page_cell *)t->cells.items + t->cells.n - 1;
	} else {
		node = node_of(t, cell);
		place = node < 0 ? NULL : vector__add(&t->cells, sizeof(*place));
		if (!place)
			return -ENOMEM;
		*place = (struct page_cell){ .node = (uint32_t)node, .domain = cell->domain };
	}
	cell__add(place, &cell->tally);
	return 0;
}

static int tables__fill(struct tables *t, const struct heap *heap)
{
	struct heap_cell *const *cells;
	size_t n = heap__cells(heap, &cells);
	const struct heap_cell **sorted = reallocarray(NULL, n + 1, sizeof(struct heap_cell *));
	struct page_node *root = vector__add(&t->nodes, sizeof(*root));
	int ret = 0;

	if (!sorted || !root) {
		free(sorted);
		return -ENOMEM;
	}
	*root = (struct page_node){ 0 };
	if (n)
		memcpy(sorted, cells, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_cells);
	for (size_t i = 0; i < n && !ret; i++)
		ret = add_cell(t, sorted[i], i ? sorted[i - 1] : NULL);
	free(sorted);
	return ret;
}

/* ---- from tables to JSON ---- */

static int write_strings(FILE *f, const struct tables *t)
{
	const char *const *strings = t->strings.items;
	int ret = 0;

	fputs(",\"strings\":[", f);
	for (size_t i = 0; i < t->strings.n && !ret; i++) {
		if (i)
			fputs(",\n", f);
		ret = html_json__text(f, strings[i]);
	}
	putc(']', f);
	return ret;
}

static void put_index(FILE *f, uint32_t index)
{
	if (index == NO_STRING)
		fputs("-1", f);
	else
		fprintf(f, "%u", index);
}

static void write_frames(FILE *f, const struct tables *t)
{
	const struct page_frame *frames = t->frames.items;

	fputs(",\"frames\":[", f);
	for (size_t i = 0; i < t->frames.n; i++) {
		if (i)
			putc(',', f);
		put_index(f, frames[i].function);
		putc(',', f);
		put_index(f, frames[i].file);
		fprintf(f, ",%u", frames[i].line);
	}
	putc(']', f);
}

/* Parents as distances: most are 1. */
static void write_nodes(FILE *f, const struct tables *t)
{
	const struct page_node *nodes = t->nodes.items;

	fprintf(f, ",\"nodes\":{\"is_cut\":%s,\"up\":[0", t->is_cut ? "true" : "false");
	for (size_t i = 1; i < t->nodes.n; i++)
		fprintf(f, ",%zu", i - nodes[i].parent);
	fputs("],\"frame\":[-1", f);
	for (size_t i = 1; i < t->nodes.n; i++)
		fprintf(f, ",%u", nodes[i].frame);
	fputs("]}", f);
}

/*
 * variance / words, where it is the same everywhere, as it is when the rate never
 * changed; else NAN. Then the page needs no variances.
 */
static double common_ratio(const struct page_cell *cells, size_t n)
{
	double ratio = NAN;

	for (size_t i = 0; i < n; i++) {
		for (int m = 0; m < N_METRICS; m++) {
			const struct amount *a = &cells[i].amounts[m];

			if (a->words <= 0)
				continue;
			if (isnan(ratio))
				ratio = a->variance / a->words;
			if (fabs(a->variance - ratio * a->words) > 1e-6 * ratio * a->words)
				return NAN;
		}
	}
	return isnan(ratio) ? 0 : ratio;
}

static void write_metric(FILE *f, const struct page_cell *cells, size_t n, int m, bool variance)
{
	static const struct page_cell none;
	const struct amount *first = n ? &cells[0].amounts[m] : &none.amounts[m];

	fprintf(f, ",\"%s\":{\"unit\":\"words\"", metrics[m].name);
	html_json__column(f, "words", &first->words, sizeof(*cells), n, 9);
	html_json__column(f, "blocks", &first->blocks, sizeof(*cells), n, 6);
	if (variance)
		html_json__column(f, "variance", &first->variance, sizeof(*cells), n, 4);
	putc('}', f);
}

static void write_cells(FILE *f, const struct tables *t)
{
	const struct page_cell *cells = t->cells.items;
	size_t n = t->cells.n;
	double ratio = common_ratio(cells, n);

	fputs(",\"cells\":{\"variance_ratio\":", f);
	if (isnan(ratio))
		fputs("null", f);
	else
		html_json__number(f, ratio, 9);
	fputs(",\"node\":[", f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%u", i ? "," : "", cells[i].node);
	fputs("],\"domain\":[", f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%lld", i ? "," : "",
			cells[i].domain == HEAP_DOMAIN_OTHERS ? -1LL : cells[i].domain);
	putc(']', f);
	for (int m = 0; m < N_METRICS; m++)
		write_metric(f, cells, n, m, isnan(ratio));
	putc('}', f);
}

int html_stacks__write(FILE *f, const struct heap *heap)
{
	struct tables t = { 0 };
	int ret = tables__fill(&t, heap);

	if (!ret)
		ret = write_strings(f, &t);
	if (!ret) {
		write_frames(f, &t);
		write_nodes(f, &t);
		write_cells(f, &t);
	}
	tables__deinit(&t);
	return ret;
}
