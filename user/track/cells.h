/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cells of the sampled heap: one for each combination of stack, allocating domain,
 * source and (where wanted) size class; or, if only sites are wanted, for each innermost frame.
 *
 * In:   alloc events with their stacks.
 * Out:  the cell that each belongs to, for user/track/heap.c, which keeps its tally.
 */
#ifndef HEAPSONDE_CELLS_H
#define HEAPSONDE_CELLS_H

#include <stdbool.h>
#include <stddef.h>

#include "user/track/heap.h"

struct cell_table;

/* options: want_sizes and sites_only are looked at. Errors: -ENOMEM. */
int cell_table__new(struct cell_table **out, const struct heap_options *options);

/* NULL is fine. */
void cell_table__free(struct cell_table *t);

/* The cell of a block, owned by t. stack: NULL if empty or lost. NULL: no memory. */
struct heap_cell *cell_table__of(struct cell_table *t, const struct hs_rec_alloc *rec,
				 const struct stack *stack);

/* All cells, in the order of appearance; *out is valid until the next cell_table__of. */
size_t cell_table__all(const struct cell_table *t, struct heap_cell *const **out);

#endif /* HEAPSONDE_CELLS_H */
