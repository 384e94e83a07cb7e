/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What losses do to the sampled heap: what may be missing is in no lower end and in every
 * upper end, and no block whose end may have been lost is shown as living.
 */
#include "tests/unit/heap_make.h"

#include <math.h>

#include "user/sinks/json.h"
#include "user/track/losses.h"
#include "user/track/timeline.h"

static int setup(void **state)
{
	(void)state;
	begin(&(struct heap_options){ .want_timeline = true });
	return 0;
}

/* n words at rate 1. */
static void alloc(uint64_t id, uint64_t n, enum hs_heap where)
{
	alloc_at(id, n, 0, 1000 + id, where);
}

static void block(enum hs_record_type type, uint64_t id, enum hs_heap where)
{
	block_at(type, id, 0, 5000 + id, where);
}

static void cycle(uint64_t n)
{
	union record r;

	make__domain(&r, HS_REC_MAJOR_CYCLE);
	r.domain.counts.major_collections = n;
	r.h.time_ns = 3000 + n;
	tell(&r, 1);
}

static const struct tally *total(void)
{
	heap__settle(heap);
	return heap__total(heap);
}

static void told_at(double rate, json_t *loss)
{
	assert_non_null(loss);
	losses__told(heap, loss, rate);
	json_decref(loss);
}

static void tell_loss(json_t *loss)
{
	told_at(0.5, loss);
}

static void told(const char *cause, uint64_t n)
{
	tell_loss(json__loss(0, cause, n, 100, 200));
}

static void told_output(uint64_t n, uint64_t samples, uint64_t lives)
{
	json_t *o = json__loss(UINT32_MAX, "output_full", n, 100, 200);

	json_object_set_new(o, "samples", json_integer((json_int_t)samples));
	json_object_set_new(o, "lives", json_integer((json_int_t)lives));
	tell_loss(o);
}

static void summed_up(const char *cause)
{
	json_t *o =
		json_pack("{s:s, s:i, s:{s:i}}", "type", "summary", "time", 9000, "lost", cause, 3);

	losses__summed_up(heap, o);
	json_decref(o);
}

/* Every cause, and what it does. */
static void causes_have_their_effects(void **state)
{
	static const struct {
		const char *cause;
		double lost_words;
		bool is_unmeasured, is_doubt;
	} causes[] = {
		{ "ring_full", 14, false, false },
		{ "domains_full_samples", 14, false, false },
		{ "read_failed", 0, true, false },
		{ "gc_read_failed", 0, false, true },
		{ "missed_hits", 0, true, true },
		{ "malformed", 0, true, true },
		{ "never heard of it", 0, true, true },
		{ "blocks_full", 0, false, false },
		{ "fate_unknown", 0, false, false },
		{ "events_dropped", 0, false, false },
		{ "domains_full", 0, false, false },
		{ "stack_ring_full", 0, false, false },
		{ "stack_read_failed", 0, false, false },
		/* A record of before, which does not say what it was. */
		{ "output_full", 0, false, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		begin(NULL);
		alloc(1, 10, HS_HEAP_MINOR);
		told(causes[i].cause, 7);
		print_message("%s\n", causes[i].cause);
		assert_true(heap__lost_samples(heap)->words == causes[i].lost_words);
		assert_int_equal(heap__is_unmeasured(heap), causes[i].is_unmeasured);
		assert_true(total()->live.words == (causes[i].is_doubt ? 0 : 10));
		assert_true(total()->unknown.words == (causes[i].is_doubt ? 10 : 0));
	}
}

static void outputs_say_what_they_left_out(void **state)
{
	(void)state;
	alloc(1, 10, HS_HEAP_MINOR);
	told_output(5, 9, 0);
	assert_true(heap__lost_samples(heap)->words == 18);
	assert_true(total()->live.words == 10);
	told_output(5, 1, 4);
	assert_true(heap__lost_samples(heap)->words == 20);
	assert_true(total()->live.words == 0 && total()->unknown.words == 10);
	assert_false(heap__is_unmeasured(heap));
}

/* Sums of causes that have loss records are not counted again. */
static void summaries_tell_the_rest(void **state)
{
	static const char *const told_before[] = { "ring_full", "output_full",
						   "output_full_samples", "output_full_lives",
						   "stack_unknown" };

	(void)state;
	alloc(1, 10, HS_HEAP_MINOR);
	for (size_t i = 0; i < sizeof(told_before) / sizeof(told_before[0]); i++)
		summed_up(told_before[i]);
	assert_true(heap__lost_samples(heap)->words == 0 && !heap__is_unmeasured(heap));
	assert_true(total()->live.words == 10);
	summed_up("malformed");
	assert_true(heap__is_unmeasured(heap) && total()->live.words == 0);
}

static double live_at_the_end(void)
{
	uint64_t begin_ns, step_ns;
	struct timeline_step *steps;
	long n = timeline__steps(heap__timeline(heap), &steps, &begin_ns, &step_ns);
	double live = n > 0 ? steps[n - 1].live_words : -1;

	free(steps);
	return live;
}

/* Whatever a block was, and whatever comes of it: in doubt it is not alive, then it is dead. */
static void doubtful_blocks_do_not_live(void **state)
{
	const struct tally *t;

	(void)state;
	alloc(1, 10, HS_HEAP_MINOR);
	alloc(2, 20, HS_HEAP_MAJOR);
	alloc(3, 40, HS_HEAP_MINOR);
	block(HS_REC_PROMOTE, 3, HS_HEAP_MINOR);
	cycle(1);
	cycle(2);
	cycle(3);
	assert_true(total()->live.words == 70 && total()->old_live.words == 60);
	assert_true(live_at_the_end() == 70);
	told("gc_read_failed", 1);
	t = total();
	assert_true(t->live.words == 0 && t->n_live == 0 && t->unknown.words == 70);
	assert_true(t->old_live.words == 0 && t->survivors.words == 0);
	assert_true(isnan(ages__mean(&t->ages, 3, NULL).value));
	assert_true(live_at_the_end() == 0);
	/* A second time changes nothing. */
	told("gc_read_failed", 1);
	assert_true(total()->unknown.words == 70);
	/* What comes after the loss is known. */
	alloc(4, 80, HS_HEAP_MINOR);
	assert_true(total()->live.words == 80 && live_at_the_end() == 80);
	/* Deaths that are told are known, and when. */
	block(HS_REC_DEALLOC, 1, HS_HEAP_MINOR);
	block(HS_REC_DEALLOC, 2, HS_HEAP_MAJOR);
	t = total();
	assert_true(t->dead_young.words == 10 && t->dead_old.words == 20);
	assert_true(t->unknown.words == 40 && t->live.words == 80);
	assert_true(t->dead_survivors.words == 20);
	assert_true(ages__mean(&t->ages, 3, NULL).value == 3);
	assert_true(live_at_the_end() == 80);
	/* One that is given up stays unknown. */
	block(HS_REC_UNKNOWN, 3, HS_HEAP_MAJOR);
	assert_true(total()->unknown.words == 40);
	/* In every case the blocks add up. */
	t = total();
	assert_true(t->live.words + t->dead_young.words + t->dead_old.words + t->unknown.words ==
		    t->allocated.words);
}

/* Promoted in doubt: it was alive then, which says nothing of now. */
static void promotions_end_no_doubt(void **state)
{
	const struct tally *t;

	(void)state;
	alloc(1, 10, HS_HEAP_MINOR);
	told("gc_read_failed", 1);
	block(HS_REC_PROMOTE, 1, HS_HEAP_MINOR);
	t = total();
	assert_true(t->promoted.words == 10 && t->live.words == 0 && t->unknown.words == 10);
	block(HS_REC_DEALLOC, 1, HS_HEAP_MAJOR);
	t = total();
	assert_true(t->unknown.words == 0 && t->dead_old.words == 10);
	assert_true(ages__mean(&t->ages, 0, NULL).value == 0);
	assert_true(t->ages.variance == 0);
}

/* Upper ends hold what was lost, and of fates what is unknown as well. */
static void intervals_are_wider(void **state)
{
	struct amount missing;
	const struct tally *t;
	struct interval i;

	(void)state;
	alloc(1, 10, HS_HEAP_MINOR);
	alloc(2, 20, HS_HEAP_MINOR);
	block(HS_REC_UNKNOWN, 2, HS_HEAP_MINOR);
	told_at(1, json__loss(0, "ring_full", 5, 0, 1));
	t = total();
	missing = heap__missing(heap__lost_samples(heap), t, false);
	i = amount__interval(&t->allocated, &missing, 1);
	assert_true(i.value == 30 && i.low == 30 && i.high == 35);
	missing = heap__missing(heap__lost_samples(heap), t, true);
	i = amount__interval(&t->live, &missing, 1);
	assert_true(i.value == 10 && i.low == 10 && i.high == 35);
}

/* Ages: at worst what is missing is all new, or all as old as can be. */
static void ages_are_wider(void **state)
{
	const struct amount missing = amount__of(30, 0, 1);
	struct interval age;

	(void)state;
	alloc(1, 10, HS_HEAP_MAJOR);
	cycle(1);
	cycle(2);
	cycle(3);
	block(HS_REC_DEALLOC, 1, HS_HEAP_MAJOR);
	cycle(4);
	cycle(5);
	age = ages__mean(&total()->ages, 5, &missing);
	assert_true(age.value == 3 && age.low == 3 * 10.0 / 40);
	assert_true(age.high == (3.0 * 10 + 5.0 * 30) / 40);
}

/* A heap as of a time before the loss lacks nothing. */
static void times_are_heeded(void **state)
{
	(void)state;
	begin(&(struct heap_options){ .until_ns = 2000 });
	alloc(1, 10, HS_HEAP_MINOR);
	tell_loss(json__loss(0, "ring_full", 5, 2001, 2500));
	tell_loss(json__loss(0, "gc_read_failed", 5, 2001, 2500));
	tell_loss(json__loss(0, "read_failed", 5, 2001, 2500));
	assert_true(heap__lost_samples(heap)->words == 0 && !heap__is_unmeasured(heap));
	assert_true(total()->live.words == 10);
	tell_loss(json__loss(0, "ring_full", 5, 1999, 2500));
	tell_loss(json__loss(0, "gc_read_failed", 5, 1999, 2500));
	assert_true(heap__lost_samples(heap)->words == 10);
	assert_true(total()->live.words == 0);
	/* Blocks before `since` are left out, and so is what was lost then. */
	begin(&(struct heap_options){ .since_ns = 2000 });
	tell_loss(json__loss(0, "ring_full", 5, 1000, 1999));
	assert_true(heap__lost_samples(heap)->words == 0);
	tell_loss(json__loss(0, "ring_full", 5, 1000, 2000));
	assert_true(heap__lost_samples(heap)->words == 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(causes_have_their_effects, setup, teardown),
		cmocka_unit_test_setup_teardown(outputs_say_what_they_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(summaries_tell_the_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(doubtful_blocks_do_not_live, setup, teardown),
		cmocka_unit_test_setup_teardown(promotions_end_no_doubt, setup, teardown),
		cmocka_unit_test_setup_teardown(intervals_are_wider, setup, teardown),
		cmocka_unit_test_setup_teardown(ages_are_wider, setup, teardown),
		cmocka_unit_test_setup_teardown(times_are_heeded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
