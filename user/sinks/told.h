/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which stacks one output has been told of.
 *
 * In:   ids of struct stack; hashes, for outputs that know stacks by those.
 * Out:  whether a stack has to be told before it is referred to.
 *
 * Zero it before use.
 */
#ifndef HEAPSONDE_TOLD_H
#define HEAPSONDE_TOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct told_hash;

struct told {
	uint64_t *bits; /* by stack id */
	size_t n_words; /* of bits */
	struct told_hash *hashes;
};

void told__deinit(struct told *t);

/* Has the stack been told? */
bool told__has(const struct told *t, uint32_t id);

/* Remember that it has been. Errors: -ENOMEM. */
int told__add(struct told *t, uint32_t id);

/* Does hash stand for this stack, as far as has been told? */
bool told__has_hash(const struct told *t, uint64_t hash, uint32_t id);

/* From now on it does. Errors: -ENOMEM. */
int told__add_hash(struct told *t, uint64_t hash, uint32_t id);

#endif /* HEAPSONDE_TOLD_H */
