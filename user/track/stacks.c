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
 * What stacks may take. An ordinary one takes 2 KiB with the tables around it, and
 * the kernel remembers 65,536 of them: a program that has more than this holds makes them up.
 */
#define MAX_BYTES ((size_t)256 << 20)

/* Of stacks, and of what they are called by: uthash takes 128 MiB for so many keys. */
#define MAX_KEYS (1u << 19)

/*
 * Names that one stack may have, and all together, in bytes. Ordinary ones have 4 KiB; but a target
 * can make up frames that are 64 inlined ones each, with names of a KiB, and each byte of these
 * takes six in JSON. Beyond that frames are not looked up, and have no names.
 */
#define TEXT_MAX_BYTES ((size_t)256 << 10)
#define ALL_TEXT_MAX_BYTES ((size_t)1 << 30)

struct stack_table {
	struct symbolizer *symbolizer; /* borrowed */
	size_t bytes;                  /* taken, without those of uthash */
	size_t text_bytes;             /* of the names of all stacks */
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

static size_t text_bytes(const struct stack_frame *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_locations; i++) {
		const struct hs_location *l = &f->locations[i];

		n += (l->function ? strlen(l->function) : 0) + (l->file ? strlen(l->file) : 0);
	}
	return n;
}

/* Look up the names of a stack, as far as it may have some. 0 or -ENOMEM. */
static int name_frames(struct stack_table *t, struct stack *stack, const __u64 *slots)
{
	size_t text = 0;

	for (uint32_t i = 0; i < stack->depth; i++) {
		struct stack_frame *f = &stack->frames[i];
		int n = 1;

		f->slot = slots[i];
		f->locations = symbolizer__unknown();
		if (text < TEXT_MAX_BYTES && t->text_bytes + text < ALL_TEXT_MAX_BYTES)
			n = symbolizer__resolve(t->symbolizer, f->slot, &f->locations);
		if (n < 0)
			return n;
		f->n_locations = (size_t)n;
		text += text_bytes(f);
	}
	t->text_bytes += text;
	return 0;
}

/* A new entry with its names, not yet in the table. */
static int entry__new(struct stack_table *t, const struct hs_rec_stack *rec, struct entry **out)
{
	size_t bytes = rec->depth * sizeof(rec->frames[0]);
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->slots = malloc(bytes);
	e->stack.frames = calloc(rec->depth, sizeof(e->stack.frames[0]));
	if (!e->slots || !e->stack.frames)
		goto fail;
	memcpy(e->slots, rec->frames, bytes);
	e->stack.depth = rec->depth;
	if (name_frames(t, &e->stack, rec->frames))
		goto fail;
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
	if (e || t->bytes > MAX_BYTES || HASH_COUNT(t->by_frames) >= MAX_KEYS)
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
	t->bytes += sizeof(*e) + bytes + rec->depth * sizeof(e->stack.frames[0]);
	*out = e;
	*is_new = true;
	return 0;
}

/* From now on the kernel means e, which may be NULL, by this hash. */
static int call(struct stack_table *t, uint64_t hash, struct entry *e)
{
	struct alias *alias;

	HASH_FIND(hh, t->by_hash, &hash, sizeof(hash), alias);
	if (!alias && (!e || HASH_COUNT(t->by_hash) >= MAX_KEYS))
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
