/* SPDX-License-Identifier: BSD-2-Clause */
/* See ids.h. */
#include "user/export/ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->was_added = false)
#include <uthash.h>

struct entry {
	UT_hash_handle hh;
	int64_t id;
	bool was_added;
	char key[];
};

struct id_table {
	struct entry *entries;
};

int id_table__new(struct id_table **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void id_table__free(struct id_table *t)
{
	struct entry *e, *next;

	if (!t)
		return;
	HASH_ITER (hh, t->entries, e, next) {
		HASH_DEL(t->entries, e);
		free(e);
	}
	free(t);
}

int64_t id_table__of(struct id_table *t, const void *key, size_t bytes, bool *is_new)
{
	struct entry *e;

	HASH_FIND(hh, t->entries, key, bytes, e);
	*is_new = !e;
	if (e)
		return e->id;
	e = malloc(sizeof(*e) + bytes);
	if (!e)
		return -ENOMEM;
	memcpy(e->key, key, bytes);
	e->id = HASH_COUNT(t->entries);
	e->was_added = true;
	HASH_ADD_KEYPTR(hh, t->entries, e->key, bytes, e);
	if (!e->was_added) {
		free(e);
		return -ENOMEM;
	}
	return e->id;
}
