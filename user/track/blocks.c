/* SPDX-License-Identifier: BSD-2-Clause */
/* A table of blocks by id; see blocks.h. */
#include "user/track/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <Judy.h>

/* Entries live in chunks, so that they stay where they are while the table grows. */
#define CHUNK_ENTRIES 4096u

/* An entry that nobody uses: its first bytes say which one was given back before it. */
struct free_entry {
	struct free_entry *next;
};

struct block_table {
	Pvoid_t places; /* JudyL: id → the address of its entry */
	size_t entry_bytes;
	char **chunks;
	size_t n_chunks;
	size_t room_chunks;
	size_t n_used; /* entries ever taken from chunks */
	struct free_entry *free;
	size_t count;
};

int block_table__new(struct block_table **out, size_t entry_bytes)
{
	struct block_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	/* Entries hold numbers of 8 bytes at most, and a pointer when they are free. */
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
	free(t);
}

/* Room for one more chunk in the list of them. 0 or -ENOMEM. */
static int room_for_chunk(struct block_table *t)
{
	size_t more = t->room_chunks ? t->room_chunks * 2 : 64;
	char **grown;

	if (t->n_chunks < t->room_chunks)
		return 0;
	grown = realloc(t->chunks, more * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	t->chunks = grown;
	t->room_chunks = more;
	return 0;
}

/* An entry that nobody uses. NULL: no memory. */
static void *take_entry(struct block_table *t)
{
	struct free_entry *e = t->free;
	size_t in_chunk = t->n_used % CHUNK_ENTRIES;

	if (e) {
		t->free = e->next;
		return e;
	}
	if (!in_chunk) {
		if (room_for_chunk(t))
			return NULL;
		t->chunks[t->n_chunks] = malloc(CHUNK_ENTRIES * t->entry_bytes);
		if (!t->chunks[t->n_chunks])
			return NULL;
		t->n_chunks++;
	}
	t->n_used++;
	return t->chunks[t->n_chunks - 1] + in_chunk * t->entry_bytes;
}

void *block_table__add(struct block_table *t, uint64_t id, bool *is_new)
{
	PPvoid_t place = JudyLIns(&t->places, id, PJE0);
	void *e;

	if (place == PPJERR)
		return NULL;
	if (is_new)
		*is_new = !*place;
	if (*place)
		return *place;
	e = take_entry(t);
	if (!e) {
		JudyLDel(&t->places, id, PJE0);
		return NULL;
	}
	*place = e;
	t->count++;
	return memset(e, 0, t->entry_bytes);
}

void *block_table__find(const struct block_table *t, uint64_t id)
{
	PPvoid_t place = JudyLGet(t->places, id, PJE0);

	return place ? *place : NULL;
}

void block_table__remove(struct block_table *t, uint64_t id, void *entry)
{
	struct free_entry *e = entry;

	if (!e || JudyLDel(&t->places, id, PJE0) != 1)
		return;
	e->next = t->free;
	t->free = e;
	t->count--;
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
		ret = each(ctx, id, *place);
		place = JudyLNext(t->places, &id, PJE0);
	}
	return ret;
}
