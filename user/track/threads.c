/* SPDX-License-Identifier: BSD-2-Clause */
/* Which domain an OS thread runs for; see threads.h. */
#include "user/track/threads.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "user/track/hash.h"

struct thread_entry {
	uint32_t tid; /* key */
	uint32_t domain;
	UT_hash_handle hh;
};

/* So many domains end before their threads are looked for, since that is to look at all. */
#define ENDED_MAX 64

struct thread_table {
	struct thread_entry *threads;
	struct thread_entry *last; /* that was seen; most events come in runs */
	uint32_t ended[ENDED_MAX]; /* domains, of which threads may still be there */
	unsigned int n_ended;
};

int thread_table__new(struct thread_table **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static void forget(struct thread_table *t, struct thread_entry *e)
{
	if (t->last == e)
		t->last = NULL;
	HASH_DEL(t->threads, e);
	free(e);
}

static void empty(struct thread_table *t)
{
	struct thread_entry *e, *next;

	HASH_ITER (hh, t->threads, e, next)
		forget(t, e);
	t->n_ended = 0;
}

static bool has_ended(const struct thread_table *t, uint32_t domain)
{
	for (unsigned int i = 0; i < t->n_ended; i++)
		if (t->ended[i] == domain)
			return true;
	return false;
}

static void forget_ended(struct thread_table *t)
{
	struct thread_entry *e, *next;

	HASH_ITER (hh, t->threads, e, next)
		if (has_ended(t, e->domain))
			forget(t, e);
	t->n_ended = 0;
}

void thread_table__end_domain(struct thread_table *t, uint32_t domain)
{
	if (!t)
		return;
	t->ended[t->n_ended++] = domain;
	if (t->n_ended == ENDED_MAX)
		forget_ended(t);
}

void thread_table__free(struct thread_table *t)
{
	if (!t)
		return;
	empty(t);
	free(t);
}

static int add(struct thread_table *t, uint32_t tid, uint32_t domain)
{
	struct thread_entry *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->tid = tid;
	e->domain = domain;
	HASH_ADD(hh, t->threads, tid, sizeof(e->tid), e);
	if (!e->hh.tbl) {
		free(e);
		return -ENOMEM;
	}
	t->last = e;
	return 1;
}

int thread_table__see(struct thread_table *t, uint32_t tid, uint32_t domain)
{
	struct thread_entry *e = t->last;

	if (!tid)
		return 0;
	if (!e || e->tid != tid)
		HASH_FIND(hh, t->threads, &tid, sizeof(tid), e);
	if (!e) {
		if (HASH_COUNT(t->threads) >= THREADS_MAX)
			forget_ended(t);
		if (HASH_COUNT(t->threads) >= THREADS_MAX)
			empty(t);
		return add(t, tid, domain);
	}
	t->last = e;
	if (e->domain == domain)
		return 0;
	e->domain = domain;
	return 1;
}
