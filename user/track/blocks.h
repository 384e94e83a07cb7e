/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table of blocks by id, for millions of them.
 *
 * In:   ids, which need not be dense.
 * Out:  an entry of a fixed size for each, which stays where it is until removed.
 *
 * A Judy array maps ids to places in a slab: some 10 bytes beside each entry, whatever the
 * pattern of ids, where a chained hash table has 70. Each call walks down it once.
 */
#ifndef HEAPSONDE_BLOCKS_H
#define HEAPSONDE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block_table;

/* entry_bytes: of each entry, > 0. Errors: -ENOMEM. */
int block_table__new(struct block_table **out, size_t entry_bytes);

/* NULL is fine. */
void block_table__free(struct block_table *t);

/*
 * A zeroed entry for id; owned by t. If there is one already it is given as it is, and
 * *is_new is false (NULL: of no interest). NULL: no memory.
 */
void *block_table__add(struct block_table *t, uint64_t id, bool *is_new);

/* The entry, or NULL. */
void *block_table__find(const struct block_table *t, uint64_t id);

/* entry: that of id, as found. Nothing happens if it is NULL. */
void block_table__remove(struct block_table *t, uint64_t id, void *entry);

size_t block_table__count(const struct block_table *t);

/*
 * Call each(ctx, id, entry) in the order of ids; it must not add or remove. Stops at the
 * first non-zero return, and returns it.
 */
int block_table__each(const struct block_table *t, int (*each)(void *ctx, uint64_t id, void *entry),
		      void *ctx);

#endif /* HEAPSONDE_BLOCKS_H */
