/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocation sites as a table for people: what `record --top` prints.
 *
 * In:   a sampled heap (user/track/heap.h), which may be of sites only.
 * Out:  text, biggest site first.
 *
 * A site is the innermost location of a stack. A sample stands for 1/rate words,
 * headers included, at the rate that was in force in its domain.
 */
#ifndef HEAPSONDE_SITES_H
#define HEAPSONDE_SITES_H

#include <stddef.h>
#include <stdio.h>

#include "user/track/heap.h"

/* The n_max biggest sites by words allocated, and the sum of all, to f. 0 or -ENOMEM. */
int sites__print(const struct heap *h, FILE *f, size_t n_max);

#endif /* HEAPSONDE_SITES_H */
