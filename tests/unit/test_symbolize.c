/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * user/symbolize on frame tables made by hand, good and bad, in this process's own
 * memory. Real programs: test_symbolize_ocaml.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/symbolize_frames.h"
#include "tests/unit/symbolize_target.h"
#include "user/symbolize/symbolize.h"

struct fixture {
	struct symbolizer *s;
	uint8_t *t;
	uint64_t base;
};

static int setup(void **state)
{
	static struct fixture f;
	struct hs_error err;

	f.t = table__new(TABLE_BYTES);
	f.base = (uint64_t)(uintptr_t)f.t;
	*state = &f;
	return !f.t || symbolizer__by_hand(&f.s, getpid(), &layout8, &err);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	symbolizer__free(f->s);
	table__free(f->t);
	return 0;
}

static void assert_location(const struct hs_location *l, const char *function, const char *file,
			    uint32_t line, uint32_t start, uint32_t end, bool is_inlined)
{
	assert_non_null(l->function);
	assert_string_equal(l->function, function);
	assert_non_null(l->file);
	assert_string_equal(l->file, file);
	assert_int_equal(l->line, line);
	assert_int_equal(l->start_char, start);
	assert_int_equal(l->end_offset, end);
	assert_int_equal(l->is_inlined, is_inlined);
}

static void assert_unknown(struct symbolizer *s, uint64_t slot)
{
	const struct hs_location *l = NULL;

	assert_int_equal(symbolizer__resolve(s, slot, &l), 1);
	assert_null(l->function);
	assert_null(l->file);
	assert_int_equal(l->line | l->start_char | l->end_char | l->is_inlined, 0);
}

/* A frame at 0 whose innermost entry is to be put at 512, with strings beyond. */
static void put_plain_frame(uint8_t *t)
{
	put_distance(t, put_frame(t, 0, 0, 17, 3), 512);
	put_record(t, 1024, 2048, "Mod.f");
	strcpy((char *)t + 2048, "mod.ml");
}

static void test_forms(void **state)
{
	struct fixture *f = *state;
	const struct hs_location *l, *again;

	put_plain_frame(f->t);
	put_short(f->t, 512, 1024, 2 | 1, 4095, 63, 127, 511);
	put_long(f->t, 520, 1200, 1, 0x7FFFF, 65535, 0x3FFFFFFF, 2048, "Mod.g");
	put_long(f->t, 528, 1300, 0, 0, 0, -1, 2048, "");
	assert_int_equal(symbolizer__resolve(f->s, f->base, &l), 3);
	assert_location(&l[0], "Mod.f", "mod.ml", 4095, 63, 638, true);
	assert_location(&l[1], "Mod.g", "mod.ml", 0x7FFFF, 65535, 0x3FFFFFFF, true);
	assert_null(l[2].function); /* as Printexc.Slot.name gives None */
	assert_int_equal(l[2].end_offset, 0);
	assert_false(l[2].is_inlined);
	/* The same from the debuginfo entry. */
	assert_int_equal(symbolizer__resolve(f->s, f->base + 520 + 2, &l), 2);
	assert_location(&l[0], "Mod.g", "mod.ml", 0x7FFFF, 65535, 0x3FFFFFFF, true);
	/* Remembered, whatever becomes of the memory. */
	memset(f->t, 0, TABLE_BYTES);
	assert_int_equal(symbolizer__resolve(f->s, f->base + 520 + 2, &again), 2);
	assert_ptr_equal(l, again);
}

static void test_allocations(void **state)
{
	struct fixture *f = *state;
	const struct hs_location *l;
	size_t at = 64 + 12 + 2; /* behind a descriptor at 64 with a live slot */

	put_plain_frame(f->t);
	put_short(f->t, 512, 1024, 0, 1, 2, 3, 0);
	put_frame(f->t, 64, 0, 16 | 3, 1);
	memcpy(f->t + at, "\3\1\1\1", 4);
	at = (at + 4 + 3) & ~(size_t)3;
	put(f->t, at, 0, 4);
	put_distance(f->t, at + 4, 512);
	put_distance(f->t, at + 8, 4096); /* the first that is there counts */
	assert_int_equal(symbolizer__resolve(f->s, f->base + 64, &l), 1);
	assert_location(l, "Mod.f", "mod.ml", 1, 2, 3, false);

	put_frame(f->t, 128, 0, 16 | 3, 0);
	memcpy(f->t + 128 + 12, "\2\1\1", 3); /* two, neither known */
	assert_unknown(f->s, f->base + 128);
	put_frame(f->t, 192, 0, 16 | 3, 0); /* none at all */
	assert_unknown(f->s, f->base + 192);
}

static void test_relative_return_address(void **state)
{
	struct fixture *f = *state;
	const struct hs_location *l;
	struct symbolizer *s;

	assert_int_equal(symbolizer__by_hand(&s, getpid(), &layout4, NULL), 0);
	put(f->t, 4, 17, 2);
	put(f->t, 6, 1, 2);
	put_distance(f->t, 12, 512);
	put_short(f->t, 512, 1024, 0, 1, 2, 3, 0);
	put_record(f->t, 1024, 2048, "Mod.f");
	assert_int_equal(symbolizer__resolve(s, f->base, &l), 1);
	assert_location(l, "Mod.f", "", 1, 2, 3, false);
	symbolizer__free(s);
}

/* Without debug information the function's symbol is the name. */
static void test_symbol(void **state)
{
	struct fixture *f = *state;
	const struct hs_location *l;

	put_frame(f->t, 0, (uint64_t)(uintptr_t)&symbolizer__resolve + 1, 16, 0);
	assert_int_equal(symbolizer__resolve(f->s, f->base, &l), 1);
	assert_string_equal(l->function, "symbolizer__resolve");
	assert_null(l->file);
	put_frame(f->t, 64, 1, 16, 0);
	assert_unknown(f->s, f->base + 64);
	put_frame(f->t, 128, 0, 16, 0);
	assert_unknown(f->s, f->base + 128);
}

/* The same when the return address is relative: the table must be near the code. */
static void test_symbol_relative(void **state)
{
	uint64_t code = (uint64_t)(uintptr_t)&symbolizer__resolve;
	const struct hs_location *l;
	struct symbolizer *s;
	uint8_t *t = MAP_FAILED;

	(void)state;
	for (uint64_t away = 64 << 20; away < 1 << 30 && t == MAP_FAILED; away += 64 << 20)
		t = mmap((void *)(uintptr_t)((code & ~UINT64_C(4095)) + away), 8192,
			 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			 -1, 0);
	assert_ptr_not_equal(t, MAP_FAILED);
	assert_int_equal(symbolizer__by_hand(&s, getpid(), &layout4, NULL), 0);
	put(t, 0, code + 1 - (uint64_t)(uintptr_t)t, 4);
	put(t, 4, 16, 2);
	assert_int_equal(symbolizer__resolve(s, (uint64_t)(uintptr_t)t, &l), 1);
	assert_string_equal(l->function, "symbolizer__resolve");
	symbolizer__free(s);
	munmap(t, 8192);
}

static void test_malformed(void **state)
{
	/* In a file, where it is certain for ever. */
	static const uint64_t return_to_c[2] = { 0, 0xFFFF };
	struct fixture *f = *state;
	const struct hs_location *l;
	size_t end = TABLE_BYTES;

	assert_unknown(f->s, 0);
	assert_unknown(f->s, 2);
	assert_unknown(f->s, 16);
	assert_unknown(f->s, UINT64_MAX);
	assert_unknown(f->s, UINT64_MAX - 3);
	assert_unknown(f->s, UINT64_MAX - 1);
	assert_unknown(f->s, INT64_MAX - 3);
	assert_unknown(f->s, f->base + end);     /* in the guard page */
	assert_unknown(f->s, f->base + end - 8); /* descriptor cut off */
	assert_unknown(f->s, f->base + 1);       /* misaligned */
	assert_unknown(f->s, f->base + 3);

	for (int i = 0; i < 2; i++)
		assert_unknown(f->s, (uint64_t)(uintptr_t)return_to_c);
	put_frame(f->t, 0, 0, 0xFFFF, 0); /* return to C */
	assert_unknown(f->s, f->base);
	put_frame(f->t, 8192, 0, 17, 0xFFFF); /* live slots beyond the end */
	assert_unknown(f->s, f->base + 8192);
	put(f->t, put_frame(f->t, 64, 0, 17, 0), 0xFFFFFFFC, 4); /* far away */
	assert_unknown(f->s, f->base + 64);
	put(f->t, put_frame(f->t, 128, 0, 17, 0), 401, 4); /* misaligned entry */
	assert_unknown(f->s, f->base + 128);
	put_distance(f->t, put_frame(f->t, 192, 0, 17, 0), end - 4); /* entry cut off */
	assert_unknown(f->s, f->base + 192);

	/* Record beyond the end; file name before the start; name that does not end. */
	put(f->t, 512, 0x3FFFFFC, 8);
	assert_unknown(f->s, f->base + 512 + 2);
	put_short(f->t, 520, 1024, 0, 1, 2, 3, 0);
	put_record(f->t, 1024, 2048, "Mod.f");
	put(f->t, 1024, 0x80000000, 4);
	assert_unknown(f->s, f->base + 520 + 2);
	memset(f->t + end - 100, 'a', 100);
	put_short(f->t, 528, end - 104, 0, 1, 2, 3, 0);
	assert_unknown(f->s, f->base + 528 + 2);
	/* A bad entry ends the chain, and what came before is shown. */
	put_short(f->t, 536, 1100, 1, 1, 2, 3, 0);
	put_record(f->t, 1100, 2048, "Mod.f");
	put(f->t, 544, 0x3FFFFFC | 1, 8);
	assert_int_equal(symbolizer__resolve(f->s, f->base + 536 + 2, &l), 1);
	assert_location(l, "Mod.f", "", 1, 2, 3, false);
}

static void test_limits(void **state)
{
	struct fixture *f = *state;
	const struct hs_location *l;
	int n;

	/* A chain without end, and one that memory ends. */
	put_record(f->t, 32768, 40960, "");
	for (size_t at = 0; at < 4096; at += 8)
		put_short(f->t, at, 32768, 1, 1, 2, 3, 0);
	n = symbolizer__resolve(f->s, f->base + 2, &l);
	assert_int_equal(n, 64);
	assert_true(l[n - 2].is_inlined);
	assert_false(l[n - 1].is_inlined);

	/* A long name, cut off in the middle of a character. */
	put_short(f->t, 8192, 16384, 0, 1, 2, 3, 0);
	put_distance(f->t, 16384, 40960);
	memset(f->t + 16388, 'x', 5000);
	memcpy(f->t + 16388 + 1023, "\xC3\xA9", 2);
	strcpy((char *)f->t + 40960, "bad\x1b[31m\xff\xc2\x9b\xe2\x82\xac");
	assert_int_equal(symbolizer__resolve(f->s, f->base + 8192 + 2, &l), 1);
	assert_int_equal(strlen(l->function), 1023 + 3);
	assert_string_equal(l->function + 1022, "x\xEF\xBF\xBD");
	assert_string_equal(l->file, "bad\xEF\xBF\xBD[31m\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
				     "\xe2\x82\xac");
}

/* Of the processor's time: others may be at work. */
static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* 100,000 slots that are something, as many that are nothing: well under 2 s. */
static void test_fast(void **state)
{
	struct fixture *f = *state;
	const struct hs_location *l;
	size_t n = 100000;
	uint8_t *t = table__new(n * 32 + 4096);
	uint64_t base = (uint64_t)(uintptr_t)t, start = now_ms();

	assert_non_null(t);
	for (size_t i = 0; i < n; i++) {
		put_distance(t, put_frame(t, i * 32, 0, 17, 1), i * 32 + 24);
		put_short(t, i * 32 + 24, n * 32, 0, i % 4096, 0, 0, 0);
	}
	put_record(t, n * 32, n * 32 + 1000, "Mod.f");
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(symbolizer__resolve(f->s, base + i * 32, &l), 1);
		assert_int_equal(l->line, i % 4096);
	}
	for (size_t i = 0; i < n; i++)
		assert_unknown(f->s, 0x1000000000 + i * 4096);
	start = now_ms() - start;
	print_message("200,000 slots in %d ms\n", (int)start);
	assert_true(start < 10000); /* sanitizers are slow */
	table__free(t);
}

/* Nothing but noise: whatever comes out, no crash and no endless loop. */
static void test_noise(void **state)
{
	struct fixture *f = *state;
	const struct hs_location *l;

	srandom(1);
	for (unsigned int round = 0; round < 4; round++) {
		/* Sparse noise finds its way deeper than dense noise. */
		for (size_t i = 0; i < TABLE_BYTES; i++)
			f->t[i] = random() >> 8 & 3 & round ? 0 : (uint8_t)(random() >> 16);
		for (unsigned int i = 0; i < 20000; i++) {
			uint64_t at = (uint64_t)random() % TABLE_BYTES;
			int n = symbolizer__resolve(f->s, f->base + at, &l);

			assert_in_range(n, 1, 64);
		}
	}
}

static void test_new_fails(void **state)
{
	static const struct frame_layout bad[] = {
		{ 0, 8, 10, 12 },
		{ 16, 16, 18, 20 },
		{ 8, 4, 10, 12 },
		{ 8, 8, 0xFFFF, 12 },
	};
	struct hs_error err = { "" };
	struct symbolizer *s;
	struct target t;
	pid_t child;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(symbolizer__by_hand(&s, getpid(), &bad[i], &err), -EINVAL);
	assert_null(s);
	/* A target whose memory may not be read. */
	t = target__by_hand(getpid(), &layout8);
	close(t.mem_fd);
	t.mem_fd = -1;
	assert_int_equal(symbolizer__new(&s, &t, &err), -EACCES);
	assert_null(s);
	assert_non_null(strstr(err.text, "root"));
	target__close_by_hand(&t);
	/* One that ended after it was opened. */
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	t = target__by_hand(child, &layout8);
	kill(child, SIGKILL);
	waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	assert_int_equal(symbolizer__new(&s, &t, &err), -ESRCH); /* zombie */
	waitpid(child, NULL, 0);
	assert_int_equal(symbolizer__new(&s, &t, &err), -ESRCH);
	assert_null(s);
	target__close_by_hand(&t);
}

#define WITH_TABLE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TABLE(test_forms),
		WITH_TABLE(test_allocations),
		WITH_TABLE(test_relative_return_address),
		WITH_TABLE(test_symbol),
		cmocka_unit_test(test_symbol_relative),
		WITH_TABLE(test_malformed),
		WITH_TABLE(test_limits),
		WITH_TABLE(test_fast),
		WITH_TABLE(test_noise),
		cmocka_unit_test(test_new_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
