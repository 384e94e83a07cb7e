/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocation sites; see sites.h. */
#include "user/track/sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "user/common/units.h"

/* Names are interned by the symbolizer: equal strings are equal pointers. */
struct site_key {
	const char *function;
	const char *file;
	uint64_t line;
};

struct site_entry {
	struct site_key key;
	struct site site;
	UT_hash_handle hh;
};

/* A block that may still live. */
struct live_block {
	uint64_t id; /* key */
	struct site_entry *entry;
	double words;
	UT_hash_handle hh;
};

struct site_table {
	struct site_entry *sites;
	struct live_block *blocks;
};

int site_table__new(struct site_table **out)
{
	struct site_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*out = t;
	return 0;
}

void site_table__free(struct site_table *t)
{
	struct site_entry *e, *next_entry;
	struct live_block *b, *next_block;

	if (!t)
		return;
	HASH_ITER (hh, t->blocks, b, next_block) {
		HASH_DEL(t->blocks, b);
		free(b);
	}
	HASH_ITER (hh, t->sites, e, next_entry) {
		HASH_DEL(t->sites, e);
		free(e);
	}
	free(t);
}

static struct site_entry *entry_of(struct site_table *t, const struct stack *stack)
{
	const struct hs_location *l = stack ? &stack->frames[0].locations[0] : NULL;
	struct site_key key;
	struct site_entry *e;

	memset(&key, 0, sizeof(key));
	if (l) {
		key.function = l->function;
		key.file = l->file;
		key.line = l->line;
	}
	HASH_FIND(hh, t->sites, &key, sizeof(key), e);
	if (e)
		return e;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->key = key;
	e->site.function = key.function;
	e->site.file = key.file;
	e->site.line = (uint32_t)key.line;
	HASH_ADD(hh, t->sites, key, sizeof(key), e);
	if (!e->hh.tbl) {
		free(e);
		return NULL;
	}
	return e;
}

int site_table__alloc(struct site_table *t, const struct hs_rec_alloc *rec, double rate,
		      const struct stack *stack)
{
	struct site_entry *e = entry_of(t, stack);
	double words = (double)rec->n_samples / rate;
	struct live_block *b;

	if (!e)
		return -ENOMEM;
	e->site.words += words;
	e->site.n_blocks++;
	if (!rec->is_tracked) {
		e->site.unknown_words += words;
		return 0;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->id = rec->id;
	b->entry = e;
	b->words = words;
	HASH_ADD(hh, t->blocks, id, sizeof(b->id), b);
	if (!b->hh.tbl) {
		free(b);
		return -ENOMEM;
	}
	e->site.live_words += words;
	return 0;
}

void site_table__end(struct site_table *t, uint64_t id, bool is_unknown)
{
	struct live_block *b;

	HASH_FIND(hh, t->blocks, &id, sizeof(id), b);
	if (!b)
		return;
	b->entry->site.live_words -= b->words;
	if (is_unknown)
		b->entry->site.unknown_words += b->words;
	HASH_DEL(t->blocks, b);
	free(b);
}

double site_table__live_words(const struct site_table *t)
{
	double words = 0;

	for (const struct site_entry *e = t->sites; e; e = e->hh.next)
		words += e->site.live_words;
	/* Sums of fractions: what has been taken away again leaves a trace. */
	return words > 0 ? words : 0;
}

static int by_words(struct site_entry *a, struct site_entry *b)
{
	return a->site.words < b->site.words ? 1 : a->site.words > b->site.words ? -1 : 0;
}

int site_table__print(const struct site_table *t, FILE *f, size_t n_max)
{
	/* Sorting relinks the table and changes nothing else. */
	struct site_table *table = (struct site_table *)t;
	double total = 0, live = 0, unknown = 0;
	char allocated[32], alive[32];
	struct site_entry *e;
	size_t n = 0;

	HASH_SORT(table->sites, by_words);
	for (e = table->sites; e; e = e->hh.next) {
		total += e->site.words;
		live += e->site.live_words;
		unknown += e->site.unknown_words;
	}
	fprintf(f, "%10s %10s %7s  %s\n", "WORDS", "LIVE", "SHARE", "ALLOCATION SITE");
	for (e = table->sites; e && n < n_max; e = e->hh.next, n++) {
		fprintf(f, "%10s %10s %6.1f%%  %s", units__words(e->site.words, allocated, 32),
			units__words(e->site.live_words, alive, 32),
			total > 0 ? 100.0 * e->site.words / total : 0.0,
			e->site.function ? e->site.function
			: e->site.file   ? "?"
					 : "(no OCaml frame)");
		if (e->site.file)
			fprintf(f, "  %s:%u", e->site.file, e->site.line);
		fputc('\n', f);
	}
	fprintf(f, "%10s %10s %6.1f%%  all %u sites\n", units__words(total, allocated, 32),
		units__words(live, alive, 32), total > 0 ? 100.0 : 0.0, HASH_COUNT(table->sites));
	if (unknown > 0)
		fprintf(f, "%10s words were not followed and count as neither live nor dead\n",
			units__words(unknown, allocated, 32));
	return 0;
}
