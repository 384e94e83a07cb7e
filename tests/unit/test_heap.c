/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampled heap: the fate of each block, ages in major cycles told domain by domain, times
 * that are left out, what a damaged or cut capture may say, words over time.
 */
#include "tests/unit/heap_make.h"

#include <math.h>

static int setup(void **state)
{
	(void)state;
	begin(NULL);
	return 0;
}

static void alloc(uint64_t id, uint64_t n)
{
	alloc_at(id, n, 0, 1000, HS_HEAP_MINOR);
}

static void block(enum hs_record_type type, uint64_t id, enum hs_heap where)
{
	block_at(type, id, 0, 2000, where);
}

/* Of a domain that says that n cycles have ended. */
static void domain_event(enum hs_record_type type, uint32_t domain, uint64_t n)
{
	union record r;

	make__domain(&r, type);
	r.h.domain = domain;
	r.domain.counts.major_collections = n;
	tell(&r, 1);
}

static void cycle(uint32_t domain, uint64_t n)
{
	domain_event(HS_REC_MAJOR_CYCLE, domain, n);
}

static const struct tally *total(void)
{
	heap__settle(heap);
	return heap__total(heap);
}

static void begins_empty(void **state)
{
	const struct tally *t = total();
	struct heap_cell *const *cells;

	(void)state;
	assert_int_equal(heap__cells(heap, &cells), 0);
	assert_true(t->allocated.words == 0 && t->live.words == 0 && t->n_allocs == 0);
	assert_int_equal(heap__first_ns(heap), 0);
	assert_int_equal(heap__cycles(heap), 0);
	assert_null(heap__timeline(heap));
	heap__free(NULL);
}

static void follows_each_fate(void **state)
{
	const struct tally *t;

	(void)state;
	alloc(1, 1);                             /* lives, young */
	alloc(2, 2);                             /* dies young */
	alloc(3, 4);                             /* is promoted and lives */
	alloc(4, 8);                             /* is promoted and dies */
	alloc_at(5, 16, 0, 1000, HS_HEAP_MAJOR); /* lives in the major heap */
	alloc_at(6, 32, 0, 1000, HS_HEAP_MAJOR); /* dies there */
	alloc(7, 64);                            /* its fate becomes unknown */
	block(HS_REC_PROMOTE, 3, HS_HEAP_MAJOR);
	block(HS_REC_PROMOTE, 4, HS_HEAP_MAJOR);
	block(HS_REC_DEALLOC, 2, HS_HEAP_MINOR);
	block(HS_REC_DEALLOC, 4, HS_HEAP_MAJOR);
	block(HS_REC_DEALLOC, 6, HS_HEAP_MAJOR);
	block(HS_REC_UNKNOWN, 7, HS_HEAP_MINOR);
	t = total();
	assert_true(t->allocated.words == 127);
	assert_true(t->minor.words == 1 + 2 + 4 + 8 + 64);
	assert_true(t->live.words == 1 + 4 + 16);
	assert_true(t->promoted.words == 4 + 8);
	assert_true(t->dead_young.words == 2);
	assert_true(t->dead_old.words == 8 + 32);
	assert_true(t->unknown.words == 64);
	assert_int_equal(t->n_allocs, 7);
	assert_int_equal(t->n_live, 3);
	assert_int_equal(heap__first_ns(heap), 1000);
	assert_int_equal(heap__last_ns(heap), 2000);
}

static void passes_over_what_cannot_be(void **state)
{
	const struct tally *t;
	union record r;

	(void)state;
	/* Blocks that were allocated before, or that are lost. */
	block(HS_REC_PROMOTE, 77, HS_HEAP_MAJOR);
	block(HS_REC_DEALLOC, INT64_MAX, HS_HEAP_MAJOR);
	block(HS_REC_UNKNOWN, 78, HS_HEAP_MINOR);
	alloc(1, 5);
	alloc(1, 500); /* twice */
	block(HS_REC_PROMOTE, 1, HS_HEAP_MAJOR);
	block(HS_REC_PROMOTE, 1, HS_HEAP_MAJOR);
	block(HS_REC_DEALLOC, 1, HS_HEAP_MAJOR);
	block(HS_REC_DEALLOC, 1, HS_HEAP_MAJOR);
	block(HS_REC_UNKNOWN, 1, HS_HEAP_MAJOR);
	/* One that is not followed; what is told of it is not its own. */
	make__alloc(&r, INT64_MAX, 0);
	r.alloc.is_tracked = 0;
	r.alloc.n_samples = INT64_MAX;
	r.alloc.size_words = INT64_MAX;
	tell(&r, 0x1p-56);
	block(HS_REC_DEALLOC, INT64_MAX, HS_HEAP_MAJOR);
	t = total();
	assert_true(t->promoted.words == 5 && t->dead_old.words == 5);
	assert_true(t->live.words == 0 && t->n_live == 0 && t->dead_young.words == 0);
	assert_true(isfinite(t->unknown.words) && t->unknown.words == 0x1p119);
	assert_true(isfinite(t->allocated.variance));
}

static void weighs_each_block_by_its_rate(void **state)
{
	const struct tally *t;
	union record r;

	(void)state;
	for (uint64_t id = 1; id <= 3; id++) {
		make__alloc(&r, id, 0);
		r.alloc.n_samples = id;
		r.alloc.size_words = 7;
		tell(&r, id == 3 ? 0.25 : 0.5);
	}
	block(HS_REC_DEALLOC, 2, HS_HEAP_MINOR);
	t = total();
	assert_true(t->allocated.words == 2 + 4 + 12);
	assert_true(t->allocated.variance == 2 * 1 + 4 * 1 + 12 * 3);
	assert_true(t->allocated.blocks == 18.0 / 8);
	assert_true(t->live.words == 14 && t->dead_young.words == 4);
	assert_true(heap__rate(heap) == 0.25);
}

static void ages_count_cycles(void **state)
{
	struct interval age;
	const struct tally *t;

	(void)state;
	begin(&(struct heap_options){ .survived = 2 });
	alloc_at(1, 10, 0, 1000, HS_HEAP_MAJOR);
	cycle(0, 1);
	alloc_at(2, 30, 0, 1100, HS_HEAP_MAJOR);
	alloc(3, 1000); /* stays young: has no age */
	cycle(0, 2);
	t = total();
	assert_true(t->survivors.words == 10 && t->old_live.words == 10);
	assert_int_equal(t->oldest_live_ns, 1000);
	cycle(0, 3);
	block(HS_REC_DEALLOC, 1, HS_HEAP_MAJOR);
	cycle(0, 4);
	t = total();
	/* The first has died at 3 cycles, the second is 3 cycles old. */
	assert_true(t->survivors.words == 40 && t->old_live.words == 30);
	assert_true(t->dead_survivors.words == 10);
	assert_int_equal(t->oldest_live_ns, 1100);
	assert_int_equal(heap__cycles(heap), 4);
	age = ages__mean(&t->ages, heap__cycles(heap), NULL);
	assert_true(age.value == 3 && age.low == 3 && age.high == 3);
	/* Settling again changes nothing. */
	assert_true(total()->survivors.words == 40);
}

/* A process that has been running: its counts are far on, and differ from domain to domain. */
static void ages_do_not_depend_on_when_it_began(void **state)
{
	const struct tally *t;

	(void)state;
	begin(&(struct heap_options){ .survived = 2 });
	alloc_at(1, 10, 0, 1000, HS_HEAP_MAJOR);
	alloc_at(2, 20, 1, 1000, HS_HEAP_MAJOR);
	cycle(1, 7);
	assert_int_equal(heap__cycles(heap), 1);
	/* The same cycle, as told by a domain that has seen 500 more. */
	cycle(0, 507);
	assert_int_equal(heap__cycles(heap), 1);
	assert_true(total()->survivors.words == 0);
	/* One domain has ended the next one, the other has not yet told its deaths: of its
	 * blocks one has died at an age of 1. */
	cycle(0, 508);
	block_at(HS_REC_DEALLOC, 2, 1, 2000, HS_HEAP_MAJOR);
	cycle(1, 8);
	t = total();
	assert_int_equal(heap__cycles(heap), 2);
	assert_true(t->survivors.words == 10 && t->dead_survivors.words == 0);
	assert_true(t->ages.dead_cycles == 20);
	/* A younger domain, and one that ends; and a count from nowhere. */
	domain_event(HS_REC_DOMAIN_SPAWN, 2, 0);
	cycle(2, 1);
	assert_int_equal(heap__cycles(heap), 3);
	cycle(0, 509);
	cycle(1, 9);
	assert_int_equal(heap__cycles(heap), 3);
	domain_event(HS_REC_DOMAIN_TERMINATE, 0, 509);
	cycle(1, 10);
	cycle(9, INT64_MAX);
	cycle(1, INT64_MAX);
	assert_int_equal(heap__cycles(heap), 4);
	/* Counts may jump: records were lost. They do not go back. */
	cycle(1, 15);
	cycle(1, 3);
	assert_int_equal(heap__cycles(heap), 9);
}

/* A capture of before: cycles are told at the end of a domain only, and give no ages. */
static void counts_of_old_captures_are_no_ages(void **state)
{
	(void)state;
	alloc_at(1, 10, 0, 1000, HS_HEAP_MAJOR);
	domain_event(HS_REC_EXIT, 0, 500);
	assert_int_equal(heap__cycles(heap), 0);
	assert_true(total()->survivors.words == 0);
}

static void leaves_out_what_is_not_asked_for(void **state)
{
	const struct tally *t;

	(void)state;
	begin(&(struct heap_options){ .since_ns = 2000, .until_ns = 3000, .want_timeline = true });
	alloc_at(1, 1, 0, 1999, HS_HEAP_MINOR);
	alloc_at(2, 2, 0, 2000, HS_HEAP_MINOR);
	alloc_at(3, 4, 0, 3000, HS_HEAP_MINOR);
	alloc_at(4, 8, 0, 3001, HS_HEAP_MINOR);
	block_at(HS_REC_PROMOTE, 1, 0, 2500, HS_HEAP_MAJOR);
	block_at(HS_REC_PROMOTE, 2, 0, 3000, HS_HEAP_MAJOR);
	block_at(HS_REC_DEALLOC, 2, 0, 3001, HS_HEAP_MAJOR);
	block_at(HS_REC_DEALLOC, 3, 0, 3001, HS_HEAP_MINOR);
	t = total();
	assert_true(t->allocated.words == 6 && t->live.words == 6);
	assert_true(t->promoted.words == 2 && t->dead_old.words == 0);
}

static void keeps_words_over_time(void **state)
{
	struct timeline_step *steps;
	uint64_t begin_ns, step_ns, ms = 1000000;
	long n;

	(void)state;
	begin(&(struct heap_options){ .want_timeline = true });
	alloc_at(1, 10, 0, 1000 * ms, HS_HEAP_MINOR);
	alloc_at(2, 5, 0, 1012 * ms, HS_HEAP_MINOR);
	block_at(HS_REC_PROMOTE, 1, 0, 1013 * ms, HS_HEAP_MAJOR);
	block_at(HS_REC_DEALLOC, 2, 0, 1025 * ms, HS_HEAP_MINOR);
	alloc_at(3, 1, 0, 900 * ms, HS_HEAP_MINOR); /* late: counts as at the beginning */
	n = timeline__steps(heap__timeline(heap), &steps, &begin_ns, &step_ns);
	assert_int_equal(n, 3);
	assert_int_equal(begin_ns, 1000 * ms);
	assert_int_equal(step_ns, 10 * ms);
	assert_true(steps[0].allocated_words == 11 && steps[0].live_words == 11);
	assert_true(steps[1].allocated_words == 5 && steps[1].live_words == 16);
	assert_true(steps[1].promoted_words == 10);
	assert_true(steps[2].allocated_words == 0 && steps[2].live_words == 11);
	free(steps);
	/* However far apart, the number of steps is bounded, and nothing is lost. */
	alloc_at(4, 100, 0, INT64_MAX, HS_HEAP_MINOR);
	n = timeline__steps(heap__timeline(heap), &steps, &begin_ns, &step_ns);
	assert_in_range(n, 2, TIMELINE_STEPS_MAX);
	assert_true(steps[0].allocated_words == 16 && steps[n - 1].live_words == 111);
	free(steps);
}

static void many_domains_share_a_cell(void **state)
{
	struct heap_cell *const *cells;
	size_t n, others = 0;

	(void)state;
	for (uint32_t d = 0; d < HEAP_DOMAINS_MAX + 100; d++)
		alloc_at(d + 1, 3, d, 1000, HS_HEAP_MINOR);
	n = heap__cells(heap, &cells);
	assert_int_equal(n, HEAP_DOMAINS_MAX + 1);
	for (size_t i = 0; i < n; i++)
		if (cells[i]->domain == HEAP_DOMAIN_OTHERS) {
			others++;
			assert_true(cells[i]->tally.allocated.words == 300);
		}
	assert_int_equal(others, 1);
	assert_true(total()->allocated.words == 3 * (HEAP_DOMAINS_MAX + 100));
}

/* Sums of fractions come out as nothing when all has died. */
static void lives_on_nothing(void **state)
{
	uint64_t seed = 1, id;
	union record r;

	(void)state;
	for (id = 1; id <= 1000; id++) {
		make__alloc(&r, id, 0);
		r.alloc.n_samples = id;
		tell(&r, (double)(make__random(&seed) % 1000 + 1) / 1001);
	}
	while (--id)
		block(HS_REC_DEALLOC, id, HS_HEAP_MINOR);
	assert_true(total()->live.words == 0 && total()->live.variance == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(begins_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(follows_each_fate, setup, teardown),
		cmocka_unit_test_setup_teardown(passes_over_what_cannot_be, setup, teardown),
		cmocka_unit_test_setup_teardown(weighs_each_block_by_its_rate, setup, teardown),
		cmocka_unit_test_setup_teardown(ages_count_cycles, setup, teardown),
		cmocka_unit_test_setup_teardown(ages_do_not_depend_on_when_it_began, setup,
						teardown),
		cmocka_unit_test_setup_teardown(counts_of_old_captures_are_no_ages, setup,
						teardown),
		cmocka_unit_test_setup_teardown(leaves_out_what_is_not_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_words_over_time, setup, teardown),
		cmocka_unit_test_setup_teardown(many_domains_share_a_cell, setup, teardown),
		cmocka_unit_test_setup_teardown(lives_on_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
