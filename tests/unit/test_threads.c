/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads and their domains: what is new is told, what is known is not; a number
 * that the kernel uses again for another domain's thread is news; the table does not
 * grow without end.
 */
#include "tests/unit/records_make.h"
#include "tests/unit/heap_bytes.h"

#include "user/track/threads.h"

static struct thread_table *table;

static int setup(void **state)
{
	(void)state;
	return thread_table__new(&table);
}

static int teardown(void **state)
{
	(void)state;
	thread_table__free(table);
	return 0;
}

static void tells_news_only(void **state)
{
	(void)state;
	assert_int_equal(thread_table__see(table, 10, 0), 1);
	assert_int_equal(thread_table__see(table, 10, 0), 0);
	assert_int_equal(thread_table__see(table, 11, 1), 1);
	/* Two threads of one domain. */
	assert_int_equal(thread_table__see(table, 12, 0), 1);
	assert_int_equal(thread_table__see(table, 10, 0), 0);
	assert_int_equal(thread_table__see(table, 11, 1), 0);
	assert_int_equal(thread_table__see(table, 12, 0), 0);
	assert_int_equal(thread_table__see(table, UINT32_MAX, UINT32_MAX), 1);
	assert_int_equal(thread_table__see(table, UINT32_MAX, UINT32_MAX), 0);
	thread_table__free(NULL);
}

static void tells_reuse(void **state)
{
	(void)state;
	assert_int_equal(thread_table__see(table, 10, 1), 1);
	assert_int_equal(thread_table__see(table, 11, 2), 1);
	/* Thread 10 is gone, and the new thread 10 runs for domain 7. */
	assert_int_equal(thread_table__see(table, 10, 7), 1);
	assert_int_equal(thread_table__see(table, 10, 7), 0);
	assert_int_equal(thread_table__see(table, 11, 2), 0);
	assert_int_equal(thread_table__see(table, 10, 7), 0);
	/* Back again is news again. */
	assert_int_equal(thread_table__see(table, 10, 1), 1);
}

static void passes_over_no_thread(void **state)
{
	(void)state;
	assert_int_equal(thread_table__see(table, 0, 0), 0);
	assert_int_equal(thread_table__see(table, 0, 5), 0);
	assert_int_equal(thread_table__see(table, 1, 0), 1);
	assert_int_equal(thread_table__see(table, 0, 0), 0);
	assert_int_equal(thread_table__see(table, 1, 0), 0);
}

static void is_bounded(void **state)
{
	size_t full;

	(void)state;
	for (uint32_t tid = 1; tid <= THREADS_MAX; tid++)
		assert_int_equal(thread_table__see(table, tid, tid % 7), 1);
	for (uint32_t tid = 1; tid <= THREADS_MAX; tid++)
		assert_int_equal(thread_table__see(table, tid, tid % 7), 0);
	full = heap_bytes();
	/* One too many: all are told again, the one that was seen last among them. */
	assert_int_equal(thread_table__see(table, THREADS_MAX + 1, 1), 1);
	assert_int_equal(thread_table__see(table, THREADS_MAX, THREADS_MAX % 7), 1);
	assert_int_equal(thread_table__see(table, 1, 1), 1);
	assert_int_equal(thread_table__see(table, 1, 1), 0);
	assert_int_equal(thread_table__see(table, THREADS_MAX + 1, 1), 0);
	for (uint32_t tid = 1; tid <= 5 * THREADS_MAX; tid++)
		thread_table__see(table, tid, 1);
	assert_true(heap_bytes() <= full + (1 << 20));
}

static void forgets_the_threads_of_domains_that_end(void **state)
{
	size_t used = 0;

	(void)state;
	/* A thousand domains at a time, of three threads each; no thread comes twice. */
	for (uint32_t domain = 1; domain <= 45000; domain++) {
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(thread_table__see(table, 4 * domain + i, domain), 1);
		if (domain > 1000)
			thread_table__end_domain(table, domain - 1000);
		if (domain == 5000)
			used = heap_bytes();
	}
	/* They would take 9.6 MB. A table has more buckets now and then. */
	assert_in_range(heap_bytes(), 0, used + (2 << 20));
	/* Those of the others are known. */
	for (uint32_t domain = 44001; domain <= 45000; domain++)
		assert_int_equal(thread_table__see(table, 4 * domain, domain), 0);
	thread_table__end_domain(NULL, 1);
}

static void ends_of_domains_leave_other_threads_alone(void **state)
{
	(void)state;
	assert_int_equal(thread_table__see(table, 1, 0), 1);
	assert_int_equal(thread_table__see(table, 2, 7), 1);
	/* It has gone over to a domain that lives. */
	assert_int_equal(thread_table__see(table, 3, 7), 1);
	assert_int_equal(thread_table__see(table, 3, 8), 1);
	for (int i = 0; i < 1000; i++)
		thread_table__end_domain(table, 7);
	assert_int_equal(thread_table__see(table, 1, 0), 0);
	assert_int_equal(thread_table__see(table, 3, 8), 0);
	assert_int_equal(thread_table__see(table, 2, 9), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tells_news_only, setup, teardown),
		cmocka_unit_test_setup_teardown(tells_reuse, setup, teardown),
		cmocka_unit_test_setup_teardown(passes_over_no_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(forgets_the_threads_of_domains_that_end, setup,
						teardown),
		cmocka_unit_test_setup_teardown(ends_of_domains_leave_other_threads_alone, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
