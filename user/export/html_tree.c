/* SPDX-License-Identifier: BSD-2-Clause */
/* The tree of callers; see html_tree.h. */
#include "user/export/html_tree.h"

#include <Judy.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const struct html_metric html_metrics[HTML_METRICS] = {
	{ "allocated", offsetof(struct tally, allocated) },
	{ "live", offsetof(struct tally, live) },
	{ "promoted", offsetof(struct tally, promoted) },
	{ "survivors", offsetof(struct tally, survivors) },
};

/* Room for one more. NULL: no memory. */
static void *vector__add(struct html_vector *v, size_t item_bytes)
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

void html_tree__deinit(struct html_tree *t)
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

/* ---- strings, frames, nodes: each once; the functions return an number or -ENOMEM ---- */

static long string_of(struct html_tree *t, const char *text)
{
	PPvoid_t id;
	const char **place;

	if (!text)
		return HTML_NO_STRING;
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

static long frame_of(struct html_tree *t, const char *function, const char *file, uint32_t line)
{
	long function_id = string_of(t, function), file_id = string_of(t, file);
	struct html_frame key = { (uint32_t)function_id, (uint32_t)file_id, line };
	struct html_frame *place;
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

static long frame_of_location(struct html_tree *t, const struct hs_location *l)
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
static long node_below(struct html_tree *t, long parent, long frame)
{
	Word_t key = (Word_t)parent << 32 | (Word_t)frame;
	PPvoid_t id = JudyLGet(t->node_ids, key, PJE0);
	struct html_node *place;

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
	*place = (struct html_node){ (uint32_t)parent, (uint32_t)frame };
	*id = (void *)t->nodes.n;
	return (long)t->nodes.n - 1;
}

/* ---- from cells to tables ---- */

static long node_of_stack(struct html_tree *t, const struct stack *stack)
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

static long node_of(struct html_tree *t, const struct heap_cell *cell)
{
	long frame;

	if (cell->stack)
		return node_of_stack(t, cell->stack);
	frame = frame_of(t, cell->is_stack_lost ? "(stack lost)" : "(no OCaml frame)", NULL, 0);
	return frame < 0 ? frame : node_below(t, 0, frame);
}

static void cell__add(struct html_cell *cell, const struct tally *tally)
{
	for (int i = 0; i < HTML_METRICS; i++)
		amount__add(&cell->amounts[i],
			    (const struct amount *)((const char *)tally + html_metrics[i].offset));
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
static int add_cell(struct html_tree *t, const struct heap_cell *cell,
		    const struct heap_cell *before)
{
	struct html_cell *place;
	long node;

	if (before && before->stack == cell->stack && before->domain == cell->domain &&
	    before->is_stack_lost == cell->is_stack_lost) {
		place = (struct html_cell *)t->cells.items + t->cells.n - 1;
	} else {
		node = node_of(t, cell);
		place = node < 0 ? NULL : vector__add(&t->cells, sizeof(*place));
		if (!place)
			return -ENOMEM;
		*place = (struct html_cell){ .node = (uint32_t)node, .domain = cell->domain };
	}
	cell__add(place, &cell->tally);
	return 0;
}

int html_tree__init(struct html_tree *t, const struct heap *heap)
{
	struct heap_cell *const *cells;
	size_t n = heap__cells(heap, &cells);
	const struct heap_cell **sorted = reallocarray(NULL, n + 1, sizeof(struct heap_cell *));
	struct html_node *root;
	int ret = 0;

	memset(t, 0, sizeof(*t));
	root = vector__add(&t->nodes, sizeof(*root));
	if (!sorted || !root) {
		free(sorted);
		return -ENOMEM;
	}
	*root = (struct html_node){ 0 };
	if (n)
		memcpy(sorted, cells, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_cells);
	for (size_t i = 0; i < n && !ret; i++)
		ret = add_cell(t, sorted[i], i ? sorted[i - 1] : NULL);
	free(sorted);
	return ret;
}
