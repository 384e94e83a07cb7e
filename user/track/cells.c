/* SPDX-License-Identifier: BSD-2-Clause */
/* The cells of the sampled heap; see cells.h. */
#include "user/track/cells.h"

#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct cell_key {
	uint64_t stack; /* its id, or the address of its innermost names; 0: empty; STACK_LOST */
	uint32_t domain;
	uint16_t source;
	uint16_t size_class;
};

#define STACK_LOST UINT64_MAX

struct cell_entry {
	struct cell_key key;
	struct heap_cell cell;
	UT_hash_handle hh;
};

/* A domain that has a name of its own in the cells. */
struct known_domain {
	uint32_t id; /* key */
	UT_hash_handle hh;
};

struct cell_table {
	bool sites_only;
	bool want_sizes;
	struct cell_entry *entries;
	struct known_domain *domains;
	struct heap_cell **cells; /* all of them, in the order of appearance */
	size_t n_cells;
	size_t room_cells;
};

int cell_table__new(struct cell_table **out, const struct heap_options *options)
{
	struct cell_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->sites_only = options->sites_only;
	t->want_sizes = options->want_sizes;
	*out = t;
	return 0;
}

void cell_table__free(struct cell_table *t)
{
	struct cell_entry *e, *next_entry;
	struct known_domain *d, *next_domain;

	if (!t)
		return;
	HASH_ITER (hh, t->entries, e, next_entry) {
		HASH_DEL(t->entries, e);
		free(e);
	}
	HASH_ITER (hh, t->domains, d, next_domain) {
		HASH_DEL(t->domains, d);
		free(d);
	}
	free(t->cells);
	free(t);
}

/* The domain's own id, or HEAP_DOMAIN_OTHERS when there are too many, or memory is short. */
static uint32_t domain_of(struct cell_table *t, uint32_t id)
{
	struct known_domain *d;

	HASH_FIND(hh, t->domains, &id, sizeof(id), d);
	if (d)
		return id;
	if (HASH_COUNT(t->domains) >= HEAP_DOMAINS_MAX)
		return HEAP_DOMAIN_OTHERS;
	d = calloc(1, sizeof(*d));
	if (!d)
		return HEAP_DOMAIN_OTHERS;
	d->id = id;
	HASH_ADD(hh, t->domains, id, sizeof(d->id), d);
	if (!d->hh.tbl) {
		free(d);
		return HEAP_DOMAIN_OTHERS;
	}
	return id;
}

static int list_cell(struct cell_table *t, struct heap_cell *cell)
{
	if (t->n_cells == t->room_cells) {
		size_t more = t->room_cells ? 2 * t->room_cells : 256;
		struct heap_cell **grown = realloc(t->cells, more * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->cells = grown;
		t->room_cells = more;
	}
	t->cells[t->n_cells++] = cell;
	return 0;
}

static struct cell_entry *new_entry(struct cell_table *t, const struct cell_key *key,
				    const struct stack *stack)
{
	struct cell_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->key = *key;
	e->cell.stack = stack;
	e->cell.is_stack_lost = key->stack == STACK_LOST;
	e->cell.domain = key->domain;
	e->cell.source = (uint8_t)key->source;
	e->cell.size_class = (uint8_t)key->size_class;
	HASH_ADD(hh, t->entries, key, sizeof(e->key), e);
	if (!e->hh.tbl) {
		free(e);
		return NULL;
	}
	if (list_cell(t, &e->cell)) {
		HASH_DEL(t->entries, e);
		free(e);
		return NULL;
	}
	return e;
}

/* By its names, not its address: they may be found later, and then are others. */
static uint64_t site_of(const struct stack *stack)
{
	return (uintptr_t)stack->frames[0].locations;
}

struct heap_cell *cell_table__of(struct cell_table *t, const struct hs_rec_alloc *rec,
				 const struct stack *stack)
{
	struct cell_key key = { .stack = rec->stack_hash ? STACK_LOST : 0 };
	struct cell_entry *e;

	if (stack)
		key.stack = t->sites_only ? site_of(stack) : stack->id;
	if (!t->sites_only) {
		key.domain = domain_of(t, rec->h.domain);
		key.source = rec->source;
		if (t->want_sizes)
			key.size_class = heap__size_class(rec->size_words);
	}
	HASH_FIND(hh, t->entries, &key, sizeof(key), e);
	if (!e)
		e = new_entry(t, &key, stack);
	return e ? &e->cell : NULL;
}

size_t cell_table__all(const struct cell_table *t, struct heap_cell *const **out)
{
	*out = t->cells;
	return t->n_cells;
}
