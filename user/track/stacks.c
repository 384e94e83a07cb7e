/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of stacks; see stacks.h. */
#include "user/track/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/track/hash.h"

/* A list of frames. */
struct entry {
	struct stack stack;
	uint64_t *slots; /* key */
	UT_hash_handle hh;
};

/* What the kernel calls it. */
struct alias {
	uint64_t hash; /* key */
	struct entry *entry;
	UT_hash_handle hh;
};

/*
 * What entries and aliases may take. An ordinary stack takes 2 KiB with the tables around it, and
 * the kernel remembers 65,536 of them: a program that has more than this holds makes them up.
 */
#define MAX_BYTES ((size_t)256 << 20)

/* Of an entry or an alias, for the hash tables. */
#define TABLE_BYTES 64u

struct stack_table {
	struct symbolizer *symbolizer; /* borrowed */
	size_t bytes;                  /* taken */
	struct entry *by_frames;
	struct alias *by_hash;
	uint32_t last_id;
};

int stack_table__new(struct stack_table **out, struct symbolizer *symbolizer)
{
	struct stack_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->symbolizer = symbolizer;
	*out = t;
	return 0;
}

static void entry__free(struct entry *e)
{
	if (!e)
		return;
	free(e->slots);
	free(e->stack.frames);
	free(e);
}

void stack_table__free(struct stack_table *t)
{
	struct entry *e, *next_entry;
	struct alias *a, *next_alias;

	if (!t)
		return;
	HASH_ITER (hh, t->by_hash, a, next_alias) {
		HASH_DEL(t->by_hash, a);
		free(a);
	}
	HASH_ITER (hh, t->by_frames, e, next_entry) {
		HASH_DEL(t->by_frames, e);
		entry__free(e);
	}
	free(t);
}

/* A new entry with its names, not yet in the table. */
static int entry__new(struct stack_table *t, const struct hs_rec_stack *rec, struct entry **out)
{
	size_t bytes = rec->depth * sizeof(rec->frames[0]);
	struct entry *e = calloc(1, sizeof(*e));
	int n;

	if (!e)
		return -ENOMEM;
	e->slots = malloc(bytes);
	e->stack.frames = calloc(rec->depth, sizeof(e->stack.frames[0]));
	if (!e->slots || !e->stack.frames)
		goto fail;
	memcpy(e->slots, rec->frames, bytes);
	e->stack.depth = rec->depth;
	for (uint32_t i = 0; i < rec->depth; i++) {
		struct stack_frame *f = &e->stack.frames[i];

		f->slot = rec->frames[i];
		n = symbolizer__resolve(t->symbolizer, f->slot, &f->locations);
		if (n < 0)
			goto fail;
		f->n_locations = n;
	}
	*out = e;
	return 0;
fail:
	entry__free(e);
	return -ENOMEM;
}

/* The entry for these frames, made if there is none; NULL: there is no more room. */
static int entry_of(struct stack_table *t, const struct hs_rec_stack *rec, struct entry **out,
		    bool *is_new)
{
	size_t bytes = rec->depth * sizeof(rec->frames[0]);
	struct entry *e;
	int err;

	HASH_FIND(hh, t->by_frames, rec->frames, bytes, e);
	*out = e;
	if (e || t->bytes > MAX_BYTES)
		return 0;
	err = entry__new(t, rec, &e);
	if (err)
		return err;
	e->stack.id = t->last_id + 1;
	HASH_ADD_KEYPTR(hh, t->by_frames, e->slots, bytes, e);
	if (!e->hh.tbl) {
		entry__free(e);
		return -ENOMEM;
	}
	t->last_id++;
	t->bytes += sizeof(*e) + TABLE_BYTES + bytes + rec->depth * sizeof(e->stack.frames[0]);
	*out = e;
	*is_new = true;
	return 0;
}

/* From now on the kernel means e, which may be NULL, by this hash. */
static int call(struct stack_table *t, uint64_t hash, struct entry *e)
{
	struct alias *alias;

	HASH_FIND(hh, t->by_hash, &hash, sizeof(hash), alias);
	if (!alias && (!e || t->bytes > MAX_BYTES))
		return 0;
	if (!alias) {
		alias = calloc(1, sizeof(*alias));
		if (!alias)
			return -ENOMEM;
		alias->hash = hash;
		HASH_ADD(hh, t->by_hash, hash, sizeof(alias->hash), alias);
		if (!alias->hh.tbl) {
			free(alias);
			return -ENOMEM;
		}
		t->bytes += sizeof(*alias) + TABLE_BYTES;
	}
	alias->entry = e;
	return 0;
}

int stack_table__learn(struct stack_table *t, const struct hs_rec_stack *rec,
		       const struct stack **stack, bool *is_new)
{
	struct entry *e = NULL;
	int err;

	*is_new = false;
	*stack = NULL;
	err = entry_of(t, rec, &e, is_new);
	if (!err)
		err = call(t, rec->hash, e);
	if (err)
		return err;
	if (e)
		*stack = &e->stack;
	return 0;
}

const struct stack *stack_table__find(const struct stack_table *t, uint64_t hash)
{
	struct alias *alias;

	HASH_FIND(hh, t->by_hash, &hash, sizeof(hash), alias);
	return alias && alias->entry ? &alias->entry->stack : NULL;
}
