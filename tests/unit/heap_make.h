/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sampled heap, and what is told to it, for the tests of what it says.
 *
 * In:   blocks of n words at rate 1, with their domains and times.
 * Out:  `heap`, which has taken them in.
 */
#ifndef TEST_HEAP_MAKE_H
#define TEST_HEAP_MAKE_H

#include "tests/unit/records_make.h"

#include "user/track/heap.h"

static struct heap *heap;

static inline void begin(const struct heap_options *options)
{
	heap__free(heap);
	heap = NULL;
	assert_int_equal(heap__new(&heap, options), 0);
}

static inline int teardown(void **state)
{
	(void)state;
	heap__free(heap);
	heap = NULL;
	return 0;
}

static inline void tell(const union record *r, double rate)
{
	struct hs_event event = make__event(r);

	assert_int_equal(heap__event(heap, &event, NULL, rate), 0);
}

/* n words at rate 1, of a domain, at a time. */
static inline void alloc_at(uint64_t id, uint64_t n, uint32_t domain, uint64_t time_ns,
			    enum hs_heap where)
{
	union record r;

	make__alloc(&r, id, 0);
	r.alloc.n_samples = n;
	r.alloc.size_words = n - 1;
	r.alloc.heap = where;
	r.h.domain = domain;
	r.h.time_ns = time_ns;
	tell(&r, 1);
}

static inline void block_at(enum hs_record_type type, uint64_t id, uint32_t domain,
			    uint64_t time_ns, enum hs_heap where)
{
	union record r;

	make__block(&r, type, id);
	r.block.heap = where;
	r.h.domain = domain;
	r.h.time_ns = time_ns;
	tell(&r, 1);
}

#endif /* TEST_HEAP_MAKE_H */
