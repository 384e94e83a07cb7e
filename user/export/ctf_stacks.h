/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codes for the frames of call stacks.
 *
 * In:   the stacks that a sink is told of (user/track/stacks.h).
 * Out:  for each a list of location codes, outermost frame first; for each code the
 *       positions that it stands for.
 *
 * Codes count up from 1, one for each frame and its names: a frame whose names were found
 * out later gets another code, because a code must keep its meaning. Addresses would not
 * do: readers keep 63 bits of a code.
 */
#ifndef HEAPSONDE_CTF_STACKS_H
#define HEAPSONDE_CTF_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "user/track/stacks.h"

struct ctf_stack {
	uint32_t n;       /* frames, >= 1 */
	uint32_t codes[]; /* outermost first */
};

struct ctf_stacks;

/* Errors: -ENOMEM. */
int ctf_stacks__new(struct ctf_stacks **out);

/* NULL is fine. */
void ctf_stacks__free(struct ctf_stacks *t);

/* Take in a stack; its names must outlive t. Errors: -ENOMEM. */
int ctf_stacks__learn(struct ctf_stacks *t, const struct stack *stack);

/*
 * Of a stack that has been taken in; NULL: one frame that says that the stack was empty
 * or, with is_lost, that it was lost. Owned by t, which never moves it.
 */
const struct ctf_stack *ctf_stacks__find(const struct ctf_stacks *t, const struct stack *stack,
					 bool is_lost);

/*
 * What a code that occurs in a stack means: *locations, innermost first, owned by the
 * symbolizer. Returns their number, >= 1.
 */
size_t ctf_stacks__locations(const struct ctf_stacks *t, uint32_t code,
			     const struct hs_location **locations);

#endif /* HEAPSONDE_CTF_STACKS_H */
