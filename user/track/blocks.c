/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of blocks by id; see blocks.h. */
#include "user/track/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <Judy.h>

/* Entries live in chunks, so that they stay where they are while the table grows. */
#define CHUNK_ENTRIES 4096u

struct block_table {
	Pvoid_t places; /* JudyL: id → 1 + the number of its entry */
	size_t entry_bytes;
	char **chunks;
	size_t n_chunks;
	size_t room_chunks;
	size_t n_used; /* entries ever taken from chunks */
	size_t *free;  /* numbers of entries that were given back */
	size_t n_free;
	size_t room_free;
	size_t count;
};

int block_table__new(struct block_table **out, size_t entry_bytes)
{
	struct block_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	/* Entries hold numbers of 8 bytes at most. */
	t->entry_bytes = (entry_bytes + 7) & ~(size_t)7;
	*out = t;
	return 0;
}

void block_table__free(struct block_table *t)
{
	if (!t)
		return;
	JudyLFreeArray(&t->places, PJE0);
	for (size_t i = 0; i < t->n_chunks; i++)
		free(t->chunks[i]);
	free(t->chunks);
	free(t->free);
	free(t);
}

static void *entry(const struct block_table *t, size_t number)
{
	return t->chunks[number / CHUNK_ENTRIES] + number % CHUNK_ENTRIES * t->entry_bytes;
}

/* Make an array of n elements of `size` bytes hold at least one more. 0 or -ENOMEM. */
static int room_for_one(void **array, size_t size, size_t n, size_t *room)
{
	size_t more = *room ? *room * 2 : 64;
	void *grown;

	if (n < *room)
		return 0;
	grown = realloc(*array, more * size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*room = more;
	return 0;
}

/* An entry that nobody uses. 0 or -ENOMEM. */
static int take_entry(struct block_table *t, size_t *number)
{
	if (t->n_free) {
		*number = t->free[--t->n_free];
		return 0;
	}
	if (t->n_used == t->n_chunks * CHUNK_ENTRIES) {
		if (room_for_one((void **)&t->chunks, sizeof(*t->chunks), t->n_chunks,
				 &t->room_chunks))
			return -ENOMEM;
		t->chunks[t->n_chunks] = malloc(CHUNK_ENTRIES * t->entry_bytes);
		if (!t->chunks[t->n_chunks])
			return -ENOMEM;
		t->n_chunks++;
	}
	*number = t->n_used++;
	return 0;
}

void *block_table__add(struct block_table *t, uint64_t id)
{
	PPvoid_t place = JudyLIns(&t->places, id, PJE0);
	size_t number;
	void *e;

	if (place == PPJERR)
		return NULL;
	if (*place)
		return entry(t, (size_t)*place - 1);
	/* Room to give it back is made now: removing cannot fail. */
	if (room_for_one((void **)&t->free, sizeof(*t->free), t->count + t->n_free,
			 &t->room_free) ||
	    take_entry(t, &number)) {
		JudyLDel(&t->places, id, PJE0);
		return NULL;
	}
	*place = (void *)(number + 1);
	t->count++;
	e = entry(t, number);
	memset(e, 0, t->entry_bytes);
	return e;
}

void *block_table__find(const struct block_table *t, uint64_t id)
{
	PPvoid_t place = JudyLGet(t->places, id, PJE0);

	return place && *place ? entry(t, (size_t)*place - 1) : NULL;
}

void block_table__remove(struct block_table *t, uint64_t id)
{
	PPvoid_t place = JudyLGet(t->places, id, PJE0);

	if (!place || !*place)
		return;
	t->free[t->n_free++] = (size_t)*place - 1;
	t->count--;
	JudyLDel(&t->places, id, PJE0);
}

size_t block_table__count(const struct block_table *t)
{
	return t->count;
}

int block_table__each(const struct block_table *t, int (*each)(void *ctx, uint64_t id, void *entry),
		      void *ctx)
{
	Word_t id = 0;
	PPvoid_t place = JudyLFirst(t->places, &id, PJE0);
	int ret = 0;

	while (place && place != PPJERR && !ret) {
		ret = each(ctx, id, entry(t, (size_t)*place - 1));
		place = JudyLNext(t->places, &id, PJE0);
	}
	return ret;
}
