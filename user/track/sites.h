/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocation sites: where the words come from, and which of them still live.
 *
 * In:   alloc, dealloc and unknown events with their stacks.
 * Out:  a table, biggest site first.
 *
 * A site is the innermost location of a stack. A sample stands for 1/rate words,
 * so a block's weight is n_samples / rate words, headers included, at the rate that
 * was in force in its domain.
 */
#ifndef HEAPSONDE_SITES_H
#define HEAPSONDE_SITES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "user/decode/decode.h"
#include "user/track/stacks.h"

struct site {
	const char *function; /* owned by the symbolizer; NULL: unknown */
	const char *file;     /* NULL: unknown */
	uint32_t line;
	double words;         /* allocated since attaching, estimated */
	double live_words;    /* of these, not yet known to be dead */
	double unknown_words; /* of these, fate unknown: neither live nor dead */
	uint64_t n_blocks;    /* sampled blocks */
};

struct site_table;

/* Errors: -ENOMEM. */
int site_table__new(struct site_table **out);

/* NULL is fine. */
void site_table__free(struct site_table *t);

/*
 * A sampled block. rate: the λ that it was sampled at, samples per word, > 0.
 * stack: NULL if empty or lost. Errors: -ENOMEM.
 */
int site_table__alloc(struct site_table *t, const struct hs_rec_alloc *rec, double rate,
		      const struct stack *stack);

/* A block is dead (or, if is_unknown, its fate is). Unknown ids are passed over. */
void site_table__end(struct site_table *t, uint64_t id, bool is_unknown);

/* Words that live, over all sites, estimated; never negative. */
double site_table__live_words(const struct site_table *t);

/*
 * The n_max biggest sites by words allocated, to f, as a table for people.
 * 0 or -ENOMEM.
 */
int site_table__print(const struct site_table *t, FILE *f, size_t n_max);

#endif /* HEAPSONDE_SITES_H */
