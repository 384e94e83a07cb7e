/* SPDX-License-Identifier: BSD-2-Clause */
/* Which stacks one output has been told of; see told.h. */
#include "user/sinks/told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct told_hash {
	uint64_t hash; /* key */
	uint32_t id;
	UT_hash_handle hh;
};

void told__deinit(struct told *t)
{
	struct told_hash *h, *next;

	HASH_ITER (hh, t->hashes, h, next) {
		HASH_DEL(t->hashes, h);
		free(h);
	}
	free(t->bits);
	memset(t, 0, sizeof(*t));
}

bool told__has(const struct told *t, uint32_t id)
{
	return id / 64 < t->n_words && t->bits[id / 64] >> (id % 64) & 1;
}

int told__add(struct told *t, uint32_t id)
{
	if (id / 64 >= t->n_words) {
		/* Ids are counted up, so twice as many is not too many. */
		size_t n = 2 * ((size_t)id / 64 + 1);
		uint64_t *grown = realloc(t->bits, n * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		memset(grown + t->n_words, 0, (n - t->n_words) * sizeof(*grown));
		t->bits = grown;
		t->n_words = n;
	}
	t->bits[id / 64] |= 1ull << (id % 64);
	return 0;
}

static struct told_hash *find(const struct told *t, uint64_t hash)
{
	struct told_hash *h;

	HASH_FIND(hh, t->hashes, &hash, sizeof(hash), h);
	return h;
}

bool told__has_hash(const struct told *t, uint64_t hash, uint32_t id)
{
	const struct told_hash *h = find(t, hash);

	return h && h->id == id;
}

int told__add_hash(struct told *t, uint64_t hash, uint32_t id)
{
	struct told_hash *h = find(t, hash);

	if (!h) {
		h = calloc(1, sizeof(*h));
		if (!h)
			return -ENOMEM;
		h->hash = hash;
		HASH_ADD(hh, t->hashes, hash, sizeof(h->hash), h);
		if (!h->hh.tbl) {
			free(h);
			return -ENOMEM;
		}
	}
	h->id = id;
	return 0;
}
