/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of user/export/ctf: whatever a capture says, the trace is one that readers
 * take. Traces are read by tests/lib/read-ctf.c, which shares nothing with the writer.
 */
#include "tests/unit/ctf_make.h"

#include <math.h>

/* ---- what is left out ---- */

static void test_nothing(void **state)
{
	(void)state;
	expect(lane__new(2), TRACE(2));
	expect(lane__new(3), TRACE(3));
}

static void test_fates(void **state)
{
	struct lane *l = lane__new(2);

	(void)state;
	block_at(l, HS_REC_PROMOTE, 9, 1); /* never allocated, as far as is known */
	block_at(l, HS_REC_DEALLOC, 9, 1);
	alloc_at(l, 1, 0, 10, 0);
	block_at(l, HS_REC_PROMOTE, 1, 20);
	block_at(l, HS_REC_PROMOTE, 1, 21);
	block_at(l, HS_REC_DEALLOC, 1, 30);
	block_at(l, HS_REC_DEALLOC, 1, 31);
	block_at(l, HS_REC_PROMOTE, 1, 32);
	alloc_at(l, 2, 77, 40, 0);
	alloc_at(l, 2, 77, 41, 0); /* the same one again */
	block_at(l, HS_REC_UNKNOWN, 2, 50);
	block_at(l, HS_REC_DEALLOC, 2, 51);
	expect(l, TRACE(2) "block\t1000010\t0\t5\t1\tminor\t1000020\t1000030" EMPTY
			   "block\t1000040\t0\t5\t1\tminor\t-\t-" LOST);
}

static void test_sources(void **state)
{
	static const uint8_t sources[] = { SONDE_SRC_MARSHAL, SONDE_SRC_CUSTOM, SONDE_SRC_MAP_FILE,
					   SONDE_SRC_NORMAL };
	struct lane *l = lane__new(2);
	static union record r;

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		make__alloc(&r, i + 1, 0);
		r.h.time_ns = i * 1000;
		r.alloc.source = sources[i];
		r.alloc.heap = i == 3 ? HS_HEAP_MAJOR : HS_HEAP_MINOR;
		r.alloc.size_words = i * 8;
		r.alloc.n_samples = i + 1;
		tell(l, &r);
		block_at(l, HS_REC_PROMOTE, i + 1, 10);
	}
	/* Only what is in the minor heap is promoted. */
	expect(l, TRACE(2) "block\t1000000\t0\t0\t1\tminor\t1000010\t-" EMPTY
			   "block\t1000001\t0\t8\t2\texternal\t-\t-" EMPTY
			   "block\t1000002\t0\t16\t3\texternal\t-\t-" EMPTY
			   "block\t1000003\t0\t24\t4\tmajor\t-\t-" EMPTY);
}

static void test_numbers_that_fit_nowhere(void **state)
{
	struct lane *l = lane__new(2);
	static union record r;

	(void)state;
	make__alloc(&r, INT64_MAX, 0);
	r.h.time_ns = INT64_MAX;
	r.alloc.size_words = INT64_MAX;
	r.alloc.n_samples = INT64_MAX;
	tell(l, &r);
	make__alloc(&r, 1, 0);
	r.h.time_ns = 0;
	r.alloc.size_words = UINT32_MAX;
	r.alloc.n_samples = UINT64_C(1) << 31;
	tell(l, &r);
	block_at(l, HS_REC_DEALLOC, INT64_MAX, 5); /* before it was allocated */
	expect(l, TRACE(2) "block\t1000000\t0\t4294967295\t2147483648\tminor\t-\t-" EMPTY
			   "block\t9223372037854775\t0\t4611686018427387903\t4611686018427387903\t"
			   "minor\t-\t9223372037854775" EMPTY);
}

/* ---- times ---- */

static void test_times_are_put_in_order(void **state)
{
	struct lane *l = lane__new(3);

	(void)state;
	alloc_at(l, 1, 0, 500, 4);
	alloc_at(l, 2, 0, 300, 5);
	block_at(l, HS_REC_DEALLOC, 2, 100); /* not before its allocation */
	alloc_at(l, 3, 0, 400, 70000);       /* more than the header can hold */
	alloc_at(l, 4, 0, UINT64_C(40000000), 4);
	alloc_at(l, 5, 0, UINT64_C(400000000000), 4);
	/* Numbers in the order of time, each stream's by the ten thousand. */
	expect(l, TRACE(3) "block\t1000300\t5\t5\t1\tminor\t-\t1000300" EMPTY
			   "block\t1000400\t65535\t5\t1\tminor\t-\t-" EMPTY
			   "block\t1000500\t4\t5\t1\tminor\t-\t-" EMPTY
			   "block\t41000000\t4\t5\t1\tminor\t-\t-" EMPTY
			   "block\t400001000000\t4\t5\t1\tminor\t-\t-" EMPTY);
}

static void test_what_comes_too_late_is_told_as_of_now(void **state)
{
	struct lane *l = lane__new(2);
	const char *first;
	char *text;

	(void)state;
	/* Twice as many as are held back. */
	for (uint64_t i = 1; i <= 262144; i++)
		alloc_at(l, i, 0, 1000 + i, 0);
	alloc_at(l, 300000, 0, 1, 0);
	text = text_of(l);
	/* The last one written before was the 131073th. */
	first = strstr(text, "block\t1132073\t");
	assert_non_null(first);
	assert_ptr_equal(strstr(strchr(first, '\n'), "block\t1132073\t"), strchr(first, '\n') + 1);
	free(text);
	lane__free(l);
}

static void test_all_domains_at_once(void **state)
{
	struct lane *l = lane__new(3);
	uint64_t n = 0;
	char *text;

	(void)state;
	/* More streams than are remembered, each of them twice; the second time with what it
	 * has forgotten. */
	for (uint64_t round = 0; round < 2; round++) {
		for (uint32_t domain = 0; domain < 600; domain++)
			n++, alloc_at(l, n, 0, n, domain);
	}
	text = text_of(l);
	for (const char *at = text; (at = strstr(at, "\nblock\t")); at++)
		n--;
	assert_int_equal(n, 0);
	free(text);
	lane__free(l);
}

/* ---- rates ---- */

static void rate_of_domain(struct lane *l, uint32_t domain, uint32_t tier)
{
	static union record r;

	make__rate(&r, UINT64_C(1) << 32, tier);
	r.h.domain = domain;
	tell(l, &r);
}

static void test_rates(void **state)
{
	enum { BLOCKS = 40000 };
	struct lane *l = lane__new(2);
	static union record r;
	uint64_t sum = 0, n, n_left = 0;
	char *text;

	(void)state;
	/* 2^-4 in domain 1: a sample counts for four of the trace's 2^-2. */
	rate_of_domain(l, 1, 4);
	alloc_at(l, 1, 0, 1, 1);
	alloc_at(l, 2, 0, 2, 2);
	/* Its rate is forgotten with it. */
	make__domain(&r, HS_REC_DOMAIN_TERMINATE);
	r.h.domain = 1;
	tell(l, &r);
	alloc_at(l, 3, 0, 3, 1);
	expect(l, TRACE(2) "block\t1000001\t0\t5\t4\tminor\t-\t-" EMPTY
			   "block\t1000002\t0\t5\t1\tminor\t-\t-" EMPTY
			   "block\t1000003\t0\t5\t1\tminor\t-\t-" EMPTY);
	/* At rate 1 a sample counts for a quarter, so three of four blocks are left out. */
	l = lane__new(2);
	rate_of_domain(l, 0, 0);
	for (uint64_t i = 1; i <= BLOCKS; i++) {
		alloc_at(l, i, 0, i, 0);
		block_at(l, HS_REC_DEALLOC, i, BLOCKS + i);
	}
	text = text_of(l);
	for (char *at = text; (at = strstr(at, "\t5\t")); at++) {
		assert_int_equal(sscanf(at, "\t5\t%" SCNu64, &n), 1);
		sum += n;
		n_left++;
	}
	assert_int_equal(sum, n_left);
	/* The draw is by the block's number, so this is the same in each run. */
	assert_true(fabs((double)sum - BLOCKS / 4.0) < 6 * sqrt(BLOCKS * 3.0 / 16));
	free(text);
	lane__free(l);
}

/* ---- errors ---- */

static void test_a_full_disk(void **state)
{
	struct lane *l = lane__new(2);
	struct rlimit limit = { 40000, 40000 };
	struct stat st;
	pid_t pid;
	int status;

	(void)state;
	for (uint64_t i = 1; i <= 30000; i++)
		alloc_at(l, i, 0, i, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(l->sink->ops->flush(l->sink) == -EFBIG ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* Two packets, the second one whole. */
	assert_int_equal(fstat(l->fd, &st), 0);
	assert_in_range(st.st_size, 32000, 32768 + 200);
	lane__free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_fates),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_numbers_that_fit_nowhere),
		cmocka_unit_test(test_times_are_put_in_order),
		cmocka_unit_test(test_what_comes_too_late_is_told_as_of_now),
		cmocka_unit_test(test_all_domains_at_once),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_a_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
