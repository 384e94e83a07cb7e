/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting major cycles; see cycles.h. */
#include "user/track/cycles.h"

#include <errno.h>
#include <stdlib.h>

#include "user/track/hash.h"

/* OCaml allows 4096 domains at once; a capture may claim more. */
#define DOMAINS_MAX 4096

struct counting {
	uint32_t domain; /* key */
	uint32_t n;      /* cycles, in the common count, when it last spoke */
	int64_t ahead;   /* of its own count before the common one */
	UT_hash_handle hh;
};

struct cycle_count {
	struct counting *domains;
	uint32_t n;
};

int cycle_count__new(struct cycle_count **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void cycle_count__free(struct cycle_count *c)
{
	struct counting *d, *next;

	if (!c)
		return;
	HASH_ITER (hh, c->domains, d, next) {
		HASH_DEL(c->domains, d);
		free(d);
	}
	free(c);
}

static struct counting *find(const struct cycle_count *c, uint32_t domain)
{
	struct counting *d;

	HASH_FIND(hh, c->domains, &domain, sizeof(domain), d);
	return d;
}

static void learn(struct cycle_count *c, uint32_t domain, uint64_t n_own, bool is_end)
{
	struct counting *d;

	/* Domains that find no room, or no memory, are dated by the common count. */
	if (HASH_COUNT(c->domains) >= DOMAINS_MAX)
		return;
	d = calloc(1, sizeof(*d));
	if (!d)
		return;
	if (is_end && !c->n && !c->domains)
		c->n = 1;
	d->domain = domain;
	d->n = c->n;
	d->ahead = (int64_t)n_own - (int64_t)c->n;
	HASH_ADD(hh, c->domains, domain, sizeof(d->domain), d);
	if (!d->hh.tbl)
		free(d);
}

void cycle_count__told(struct cycle_count *c, uint32_t domain, uint64_t n_own, bool is_end)
{
	struct counting *d = find(c, domain);
	int64_t n;

	/* No process lives that long, and what follows cannot overflow. */
	if (n_own > INT64_MAX / 2)
		return;
	if (!d) {
		learn(c, domain, n_own, is_end);
		return;
	}
	n = (int64_t)n_own - d->ahead;
	if (n <= d->n || n > UINT32_MAX)
		return;
	d->n = (uint32_t)n;
	if (d->n > c->n)
		c->n = d->n;
}

void cycle_count__forget(struct cycle_count *c, uint32_t domain)
{
	struct counting *d = find(c, domain);

	if (!d)
		return;
	HASH_DEL(c->domains, d);
	free(d);
}

bool cycle_count__knows(const struct cycle_count *c, uint32_t domain)
{
	return find(c, domain) != NULL;
}

uint32_t cycle_count__all(const struct cycle_count *c)
{
	return c->n;
}

uint32_t cycle_count__of(const struct cycle_count *c, uint32_t domain)
{
	const struct counting *d = find(c, domain);

	return d ? d->n : c->n;
}
