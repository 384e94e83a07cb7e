/* SPDX-License-Identifier: BSD-2-Clause */
/* See ordered.h. */
#include "user/export/ordered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ids begin at 1: 0 is the empty stack. */
static uint32_t stack_id(const struct heap_cell *c)
{
	return c->stack ? c->stack->id : 0;
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_stack(const struct heap_cell *a, const struct heap_cell *b)
{
	int ret = compare(stack_id(a), stack_id(b));

	return ret ? ret : compare(a->is_stack_lost, b->is_stack_lost);
}

static int by_all(const void *left, const void *right)
{
	const struct heap_cell *a = *(const struct heap_cell *const *)left;
	const struct heap_cell *b = *(const struct heap_cell *const *)right;
	int ret = by_stack(a, b);

	if (!ret)
		ret = compare(a->domain, b->domain);
	return ret ? ret : compare(a->source, b->source);
}

long ordered__cells(const struct heap_cell ***out, const struct heap *h)
{
	struct heap_cell *const *cells;
	size_t n = heap__cells(h, &cells);

	/* One more, so that none at all is no error. */
	*out = malloc((n + 1) * sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		(*out)[i] = cells[i];
	qsort(*out, n, sizeof(**out), by_all);
	return (long)n;
}

size_t ordered__same_stack(const struct heap_cell *const *cells, size_t n, size_t from,
			   struct tally *sum)
{
	size_t i;

	memset(sum, 0, sizeof(*sum));
	for (i = from; i < n && !by_stack(cells[from], cells[i]); i++)
		tally__add(sum, &cells[i]->tally);
	return i;
}

const char *ordered__placeholder(const struct heap_cell *cell)
{
	if (cell->stack && cell->stack->depth)
		return NULL;
	return cell->is_stack_lost ? FRAME_LOST : FRAME_NONE;
}

const char *ordered__function(const struct hs_location *l)
{
	return l->function && l->function[0] ? l->function : FRAME_UNKNOWN;
}
