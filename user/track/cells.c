/* SPDX-License-Identifier: BSD-2-Clause */
/* The cells of the sampled heap; see cells.h. */
#include "user/track/cells.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/track/hash.h"

/*
 * In 8 bytes what tells cells apart: a table of sites has the address of the innermost
 * names, others the parts below.
 */
union cell_key {
	uint64_t site;
	struct {
		uint32_t stack;  /* its id */
		uint16_t domain; /* known_domain.number; DOMAIN_OTHERS */
		uint8_t source : 2;
		uint8_t is_lost : 1;
		uint8_t size_class;
	};
};
_Static_assert(sizeof(union cell_key) == sizeof(uint64_t), "all of it is the key");
_Static_assert(SONDE_SRC_COUNT <= 4, "two bits hold a source");

#define SITE_LOST UINT64_MAX

/* Some half a KiB each. A target can make them up without end: what comes beyond these is
 * taken together, as if its stacks were lost. */
#define CELLS_MAX (1u << 19)
#define SITES_MAX (1u << 18)
#define DOMAIN_OTHERS HEAP_DOMAINS_MAX

/* In the order in which an alloc touches it: a line of the cache for the look-up, the next
 * ones for the tally. */
#define CACHE_LINE 64
struct cell_entry {
	UT_hash_handle hh;
	union cell_key key;
	struct heap_cell cell;
};

/* A domain that has a name of its own in the cells. */
struct known_domain {
	uint32_t id;     /* key */
	uint16_t number; /* counted up from 0 */
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

/* Its number, or DOMAIN_OTHERS when there are too many, or memory is short. */
static uint16_t domain_of(struct cell_table *t, uint32_t id)
{
	struct known_domain *d;

	HASH_FIND(hh, t->domains, &id, sizeof(id), d);
	if (d)
		return d->number;
	if (HASH_COUNT(t->domains) >= HEAP_DOMAINS_MAX)
		return DOMAIN_OTHERS;
	d = calloc(1, sizeof(*d));
	if (!d)
		return DOMAIN_OTHERS;
	d->id = id;
	d->number = (uint16_t)HASH_COUNT(t->domains);
	HASH_ADD(hh, t->domains, id, sizeof(d->id), d);
	if (!d->hh.tbl) {
		free(d);
		return DOMAIN_OTHERS;
	}
	return d->number;
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

static struct cell_entry *new_entry(struct cell_table *t, const union cell_key *key,
				    const struct heap_cell *cell)
{
	struct cell_entry *e =
		aligned_alloc(CACHE_LINE, (sizeof(*e) + CACHE_LINE - 1) & ~(CACHE_LINE - 1ul));

	if (!e)
		return NULL;
	memset(e, 0, sizeof(*e));
	e->key = *key;
	e->cell = *cell;
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

static union cell_key key_of(struct cell_table *t, const struct hs_rec_alloc *rec,
			     const struct stack *stack)
{
	union cell_key key = { 0 };
	bool is_lost = !stack && rec->stack_hash;

	if (t->sites_only) {
		key.site = stack ? site_of(stack) : is_lost ? SITE_LOST : 0;
		return key;
	}
	key.stack = stack ? stack->id : 0;
	key.is_lost = is_lost;
	key.domain = domain_of(t, rec->h.domain);
	key.source = rec->source & 3u;
	if (t->want_sizes)
		key.size_class = heap__size_class(rec->size_words);
	return key;
}

static struct cell_entry *add_cell(struct cell_table *t, const union cell_key *key,
				   const struct hs_rec_alloc *rec, const struct stack *stack,
				   bool is_lost)
{
	struct heap_cell cell = { .stack = stack, .is_stack_lost = is_lost };

	if (!t->sites_only) {
		cell.domain = key->domain == DOMAIN_OTHERS ? HEAP_DOMAIN_OTHERS : rec->h.domain;
		cell.source = rec->source;
		cell.size_class = key->size_class;
	}
	return new_entry(t, key, &cell);
}

/* Where there are as many cells as there may be: the one for all that comes beyond. */
static void make_others(const struct cell_table *t, union cell_key *key)
{
	if (t->sites_only) {
		key->site = SITE_LOST;
		return;
	}
	key->stack = 0;
	key->is_lost = true;
	key->domain = DOMAIN_OTHERS;
}

static struct cell_entry *find(const struct cell_table *t, const union cell_key *key)
{
	struct cell_entry *e;

	HASH_FIND(hh, t->entries, key, sizeof(*key), e);
	return e;
}

struct heap_cell *cell_table__of(struct cell_table *t, const struct hs_rec_alloc *rec,
				 const struct stack *stack)
{
	union cell_key key = key_of(t, rec, stack);
	struct cell_entry *e = find(t, &key);
	bool is_lost = !stack && rec->stack_hash;

	if (!e && t->n_cells >= (t->sites_only ? SITES_MAX : CELLS_MAX)) {
		make_others(t, &key);
		is_lost = true;
		stack = NULL;
		e = find(t, &key);
	}
	if (!e)
		e = add_cell(t, &key, rec, stack, is_lost);
	return e ? &e->cell : NULL;
}

size_t cell_table__all(const struct cell_table *t, struct heap_cell *const **out)
{
	*out = t->cells;
	return t->n_cells;
}
