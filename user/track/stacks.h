/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The call stacks seen so far, with their names.
 *
 * In:   HS_REC_STACK events; user/symbolize.
 * Out:  struct stack, one for each distinct list of frames, numbered from 1 in
 *       the order of appearance, for user/sinks and user/track/sites.h.
 *
 * The kernel knows stacks by a hash that comes from the target. Two hashes may
 * stand for the same frames (cut to the same depth): they get one struct stack.
 */
#ifndef HEAPSONDE_STACKS_TABLE_H
#define HEAPSONDE_STACKS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/records.h"
#include "user/symbolize/symbolize.h"

/* Source locations of one frame; owned by the symbolizer. */
struct stack_frame {
	uint64_t slot;
	const struct hs_location *locations; /* innermost inlined function first */
	size_t n_locations;                  /* >= 1 */
};

struct stack {
	uint32_t id;
	uint32_t depth;
	struct stack_frame *frames; /* innermost first */
};

struct stack_table;

/* Errors: -ENOMEM. */
int stack_table__new(struct stack_table **out, struct symbolizer *symbolizer);

/* NULL is fine. The symbolizer is not freed. */
void stack_table__free(struct stack_table *t);

/*
 * Take in a stack record. *stack: its entry, owned by t; *is_new: these frames
 * were not known before. A target can make up stacks without end: beyond 256 MiB, or 2^19 stacks,
 * *stack is NULL, and the stack stays unknown. Errors: -ENOMEM.
 */
int stack_table__learn(struct stack_table *t, const struct hs_rec_stack *rec,
		       const struct stack **stack, bool *is_new);

/* The stack that the kernel calls hash, or NULL if its record was lost or found no room. */
const struct stack *stack_table__find(const struct stack_table *t, uint64_t hash);

#endif /* HEAPSONDE_STACKS_TABLE_H */
