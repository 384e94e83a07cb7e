/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipeline: threads are told before their events; each domain's rate is the one
 * that it told last, and weighs its blocks; what a sink answers is passed on.
 */
#include "tests/unit/records_make.h"
#include "tests/unit/heap_bytes.h"

#include "user/track/pipeline.h"

/* A sink that notes what it is told, as words. */
struct spy {
	struct sink base;
	char told[1024];
	int answer; /* of all functions */
};

static int note(struct sink *s, const char *format, ...)
{
	struct spy *spy = (struct spy *)s;
	size_t n = strlen(spy->told);
	va_list args;

	va_start(args, format);
	vsnprintf(spy->told + n, sizeof(spy->told) - n, format, args);
	va_end(args);
	return spy->answer;
}

static int spy__stack(struct sink *s, const struct hs_event *event, const struct stack *stack)
{
	assert_int_equal(event->type, HS_REC_STACK);
	return note(s, "stack%u ", stack->id);
}

static int spy__stack_again(struct sink *s, const struct hs_event *event, const struct stack *stack)
{
	assert_int_equal(event->type, HS_REC_STACK);
	return note(s, "again%u ", stack->id);
}

static int spy__event(struct sink *s, const struct hs_event *event, const struct stack *stack)
{
	if (stack)
		return note(s, "event%d/%u ", event->type, stack->id);
	return note(s, "event%d ", event->type);
}

static int spy__thread(struct sink *s, uint32_t tid, uint32_t domain, uint64_t time_ns)
{
	assert_int_equal(time_ns, 1700000000123456789u);
	return note(s, "thread%u:%u ", tid, domain);
}

static const struct sink_ops spy_ops = {
	.stack = spy__stack,
	.stack_again = spy__stack_again,
	.event = spy__event,
	.thread = spy__thread,
};

/* One that wants to hear less. */
static const struct sink_ops deaf_ops = { .stack = spy__stack, .event = spy__event };

static struct spy spy;
static struct symbolizer *symbolizer;
static struct pipeline pipeline;

#define RATE 0x1p-10

static int setup(void **state)
{
	(void)state;
	memset(&spy, 0, sizeof(spy));
	spy.base.ops = &spy_ops;
	return symbolizer__new_empty(&symbolizer) ||
	       pipeline__init(&pipeline, symbolizer, &spy.base, RATE, true);
}

static int teardown(void **state)
{
	(void)state;
	pipeline__deinit(&pipeline);
	symbolizer__free(symbolizer);
	return 0;
}

static int tell_from(union record *r, uint32_t tid, uint32_t domain)
{
	struct hs_event event;

	r->h.tid = tid;
	r->h.domain = domain;
	event = make__event(r);
	return pipeline__event(&pipeline, &event);
}

static void tell_alloc(uint32_t tid, uint32_t domain, uint64_t id, uint64_t n_samples)
{
	union record r;

	make__alloc(&r, id, 0);
	r.alloc.n_samples = n_samples;
	assert_int_equal(tell_from(&r, tid, domain), 0);
}

static void tell_block(uint32_t tid, uint32_t domain, enum hs_record_type type, uint64_t id)
{
	union record r;

	make__block(&r, type, id);
	assert_int_equal(tell_from(&r, tid, domain), 0);
}

static void tell_domain(uint32_t tid, uint32_t domain, enum hs_record_type type)
{
	union record r;

	make__domain(&r, type);
	assert_int_equal(tell_from(&r, tid, domain), 0);
}

/* The rate is 2^-tier. */
static void tell_rate(uint32_t domain, uint32_t tier)
{
	union record r;

	make__rate(&r, 1ull << 32, tier);
	assert_int_equal(tell_from(&r, 100 + domain, domain), 0);
}

static void expect_told(const char *expected)
{
	assert_string_equal(spy.told, expected);
	spy.told[0] = '\0';
}

static void tells_threads_before(void **state)
{
	static const uint64_t frames[] = { 8, 16 };
	union record r;

	(void)state;
	tell_alloc(10, 0, 1, 1);
	expect_told("thread10:0 event1 ");
	tell_alloc(10, 0, 2, 1);
	tell_block(11, 0, HS_REC_PROMOTE, 1); /* a collection in another thread */
	tell_alloc(10, 0, 3, 1);
	expect_told("event1 thread11:0 event3 event1 ");
	/* Stacks say nothing: they stand before their allocation anyway. */
	make__stack(&r, 100, frames, 2);
	assert_int_equal(tell_from(&r, 12, 1), 0);
	expect_told("stack1 ");
	assert_int_equal(tell_from(&r, 13, 1), 0);
	expect_told("again1 ");
	make__alloc(&r, 4, 100);
	assert_int_equal(tell_from(&r, 12, 1), 0);
	expect_told("thread12:1 event1/1 ");
	/* Each kind of event counts. */
	tell_domain(20, 2, HS_REC_DOMAIN_SPAWN);
	tell_block(21, 2, HS_REC_DEALLOC, 1);
	tell_block(22, 2, HS_REC_UNKNOWN, 2);
	tell_domain(23, 2, HS_REC_EXIT);
	tell_rate(3, 10);
	tell_domain(20, 2, HS_REC_DOMAIN_TERMINATE);
	expect_told("thread20:2 event6 thread21:2 event4 thread22:2 event5 thread23:2 event8 "
		    "thread103:3 event9 event7 ");
	/* The number of a thread that has ended, for a new domain; no thread at all. */
	tell_alloc(20, 4, 5, 1);
	tell_block(0, 0, HS_REC_DEALLOC, 5);
	expect_told("thread20:4 event1 event4 ");
	assert_int_equal(pipeline.n_allocs, 5);
}

static void asks_no_more_than_wanted(void **state)
{
	static const uint64_t frames[] = { 8 };
	union record r;

	(void)state;
	spy.base.ops = &deaf_ops;
	make__stack(&r, 100, frames, 1);
	assert_int_equal(tell_from(&r, 1, 0), 0);
	assert_int_equal(tell_from(&r, 1, 0), 0);
	tell_alloc(10, 0, 1, 1);
	tell_alloc(10, 1, 2, 1);
	expect_told("stack1 event1 event1 ");
}

static void passes_errors_on(void **state)
{
	static const uint64_t frames[] = { 8 };
	union record r;

	(void)state;
	spy.answer = -EPIPE;
	make__alloc(&r, 1, 0);
	assert_int_equal(tell_from(&r, 10, 0), -EPIPE);
	expect_told("thread10:0 "); /* and not the event */
	assert_int_equal(tell_from(&r, 10, 0), -EPIPE);
	expect_told("event1 ");
	make__stack(&r, 100, frames, 1);
	assert_int_equal(tell_from(&r, 10, 0), -EPIPE);
	assert_int_equal(tell_from(&r, 10, 0), -EPIPE);
	expect_told("stack1 again1 ");
}

static void knows_each_domains_rate(void **state)
{
	(void)state;
	assert_true(pipeline__rate_of(&pipeline, 0) == RATE);
	tell_rate(1, 4);
	assert_true(pipeline__rate_of(&pipeline, 1) == 0x1p-4);
	assert_true(pipeline__rate_of(&pipeline, 0) == RATE);
	assert_true(pipeline__rate_of(&pipeline, UINT32_MAX) == RATE);
	tell_rate(1, 20);
	tell_rate(UINT32_MAX, 0);
	assert_true(pipeline__rate_of(&pipeline, 1) == 0x1p-20);
	assert_true(pipeline__rate_of(&pipeline, UINT32_MAX) == 1);
	/* Another domain's end is not its. */
	tell_domain(1, 0, HS_REC_DOMAIN_TERMINATE);
	tell_domain(1, 1, HS_REC_DOMAIN_SPAWN);
	tell_domain(1, 1, HS_REC_EXIT);
	assert_true(pipeline__rate_of(&pipeline, 1) == 0x1p-20);
	tell_domain(1, 1, HS_REC_DOMAIN_TERMINATE);
	assert_true(pipeline__rate_of(&pipeline, 1) == RATE);
}

static double live(void)
{
	return heap__total(pipeline.sites)->live.words;
}

static void weighs_by_the_rate_in_force(void **state)
{
	(void)state;
	tell_alloc(10, 0, 1, 3);
	assert_true(live() == 3 * 1024);
	tell_rate(0, 2);
	tell_alloc(10, 0, 2, 3); /* 12 words */
	tell_alloc(11, 1, 3, 1); /* 1024 */
	assert_true(live() == 3 * 1024 + 12 + 1024);
	/* Adopted by a domain with another rate: it counts as it was sampled. */
	tell_block(10, 0, HS_REC_DEALLOC, 3);
	assert_true(live() == 3 * 1024 + 12);
	tell_block(10, 0, HS_REC_DEALLOC, 1);
	assert_true(live() == 12);
	tell_block(10, 0, HS_REC_UNKNOWN, 2);
	assert_true(live() == 0);
}

/* Domains come and go for days. */
static void forgets_the_dead(void **state)
{
	size_t early = 0;

	(void)state;
	spy.base.ops = &deaf_ops; /* so that no threads are remembered */
	for (uint32_t domain = 0; domain < 100000; domain++) {
		tell_rate(domain, domain % 25);
		if (domain >= 3)
			tell_domain(1, domain - 3, HS_REC_DOMAIN_TERMINATE);
		spy.told[0] = '\0';
		if (domain == 10000)
			early = heap_bytes();
	}
	assert_true(heap_bytes() < early + (1 << 20));
	assert_true(pipeline__rate_of(&pipeline, 99996) == RATE);
	assert_true(pipeline__rate_of(&pipeline, 99997) == 0x1p-22);
}

static void works_without_sites(void **state)
{
	(void)state;
	pipeline__deinit(&pipeline);
	assert_int_equal(pipeline__init(&pipeline, symbolizer, &spy.base, 0, false), 0);
	assert_null(pipeline.sites);
	tell_alloc(10, 0, 1, 1);
	tell_rate(0, 2);
	tell_block(10, 0, HS_REC_DEALLOC, 1);
	assert_true(pipeline__rate_of(&pipeline, 0) == 0.25);
	assert_true(pipeline__rate_of(&pipeline, 1) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tells_threads_before, setup, teardown),
		cmocka_unit_test_setup_teardown(asks_no_more_than_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(passes_errors_on, setup, teardown),
		cmocka_unit_test_setup_teardown(knows_each_domains_rate, setup, teardown),
		cmocka_unit_test_setup_teardown(weighs_by_the_rate_in_force, setup, teardown),
		cmocka_unit_test_setup_teardown(forgets_the_dead, setup, teardown),
		cmocka_unit_test_setup_teardown(works_without_sites, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
