/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cells of the sampled heap in an order that does not change from run to run, and
 * how their frames are called.
 *
 * In:   struct heap (user/track/heap.h).
 * Out:  for the formats that write stacks with numbers.
 */
#ifndef HEAPSONDE_ORDERED_H
#define HEAPSONDE_ORDERED_H

#include "user/track/heap.h"
#include "user/track/rows.h"

/*
 * The cells of h by stack (those without one first, then by id, which is the order of
 * first appearance), then domain, source. *out is the caller's (free()), the
 * cells are h's. Returns how many, or -ENOMEM.
 */
long ordered__cells(const struct heap_cell ***out, const struct heap *h);

/*
 * Of n sorted cells, those from `from` on that have the same stack: their tallies are
 * added up in *sum. Returns where they end.
 */
size_t ordered__same_stack(const struct heap_cell *const *cells, size_t n, size_t from,
			   struct tally *sum);

/* What stands for a cell's stack if it has none: FRAME_NONE or FRAME_LOST; else NULL. */
const char *ordered__placeholder(const struct heap_cell *cell);

/* The function's name, never NULL or empty. */
const char *ordered__function(const struct hs_location *l);

#endif /* HEAPSONDE_ORDERED_H */
