/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocation sites: words, living words and words of unknown fate, read off the
 * table that is printed; its order, its shares, its sums; blocks that were sampled at
 * different rates. The heap behind it keeps sites only.
 */
#include "tests/unit/records_make.h"

#include "user/track/sites.h"

/* A sample stands for 1000 words. */
#define RATE 0.001

static struct symbolizer *symbolizer;
static struct stack_table *stacks;
static struct heap *sites;

static const struct heap_options sites_only = { .sites_only = true };

static int setup(void **state)
{
	(void)state;
	return symbolizer__new_empty(&symbolizer) || stack_table__new(&stacks, symbolizer) ||
	       heap__new(&sites, &sites_only);
}

static int teardown(void **state)
{
	(void)state;
	heap__free(sites);
	stack_table__free(stacks);
	symbolizer__free(symbolizer);
	return 0;
}

/* A stack whose innermost location is as given, and whose outer one is `main`. */
static const struct stack *stack_at(uint64_t slot, const char *function, const char *file,
				    uint32_t line)
{
	static const struct hs_location outer = { .function = "main", .file = "m.ml", .line = 1 };
	const struct hs_location inner[] = {
		{ .function = function, .file = file, .line = line, .is_inlined = true },
		outer,
	};
	const uint64_t frames[] = { slot, 8 };
	const struct stack *stack;
	union record r;
	bool is_new;

	assert_int_equal(symbolizer__learn(symbolizer, slot, inner, 2), 0);
	assert_int_equal(symbolizer__learn(symbolizer, 8, &outer, 1), 0);
	make__stack(&r, slot, frames, 2);
	assert_int_equal(stack_table__learn(stacks, &r.stack, &stack, &is_new), 0);
	return stack;
}

static void tell(const union record *r, double rate, const struct stack *stack)
{
	const struct hs_event event = { .type = r->h.type, .h = &r->h };

	assert_int_equal(heap__event(sites, &event, stack, rate), 0);
}

static void alloc_at(double rate, uint64_t id, uint64_t n_samples, const struct stack *stack,
		     bool is_tracked)
{
	union record r;

	make__alloc(&r, id, stack ? 1 : 0);
	r.alloc.n_samples = n_samples;
	r.alloc.is_tracked = is_tracked;
	tell(&r, rate, stack);
}

/* A block is dead, or its fate is unknown. */
static void end(uint64_t id, bool is_unknown)
{
	union record r;

	make__block(&r, is_unknown ? HS_REC_UNKNOWN : HS_REC_DEALLOC, id);
	tell(&r, 0, NULL);
}

static double live(void)
{
	return heap__total(sites)->live.words;
}

static void alloc(uint64_t id, uint64_t n_samples, const struct stack *stack, bool is_tracked)
{
	alloc_at(RATE, id, n_samples, stack, is_tracked);
}

/* One line of the table. */
struct row {
	char words[32], live[32], share[32], site[128];
};

/* Print and take apart: rows[0] is the first site, the last one the sum. Returns how
 * many; *unknown: the words of the line below, "" without one. */
static size_t print(size_t n_max, struct row *rows, size_t room, char *unknown)
{
	char *text = NULL, *rest, *line;
	size_t size, n = 0;
	bool has_note = false;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_int_equal(sites__print(sites, f, n_max), 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(text[size - 1], '\n');
	rest = text;
	*unknown = '\0';
	assert_string_equal(strsep(&rest, "\n"), "     WORDS       LIVE   SHARE  ALLOCATION SITE");
	while ((line = strsep(&rest, "\n")) && *line) {
		if (!strcmp(line, "LIVE is of blocks allocated since attaching: older ones are not "
				  "known")) {
			assert_string_equal(rest, ""); /* the last line of each table */
			has_note = true;
			continue;
		}
		if (strstr(line, "words were not followed")) {
			assert_int_equal(sscanf(line, "%31s", unknown), 1);
			continue;
		}
		assert_string_equal(unknown, ""); /* it is the last line */
		assert_true(n < room);
		assert_int_equal(sscanf(line, "%31s %31s %31s %127[^\n]", rows[n].words,
					rows[n].live, rows[n].share, rows[n].site),
				 4);
		n++;
	}
	assert_true(has_note);
	free(text);
	return n;
}

static void expect_row(const struct row *row, const char *words, const char *live,
		       const char *share, const char *site)
{
	assert_string_equal(row->site, site);
	assert_string_equal(row->words, words);
	assert_string_equal(row->live, live);
	assert_string_equal(row->share, share);
}

static void prints_an_empty_table(void **state)
{
	struct row rows[4];
	char unknown[32];

	(void)state;
	assert_int_equal(print(10, rows, COUNT(rows), unknown), 1);
	expect_row(&rows[0], "0", "0", "0.0%", "all 0 sites");
	assert_string_equal(unknown, "");
	heap__free(NULL);
}

static void keeps_the_books(void **state)
{
	const struct stack *f = stack_at(16, "A.f", "a.ml", 10);
	const struct stack *g = stack_at(24, "A.g", "a.ml", 20);
	struct row rows[8];
	char unknown[32];

	(void)state;
	alloc(1, 1, g, true);
	alloc(2, 2, f, true);
	alloc(3, 3, f, true);
	alloc(4, 4, NULL, true);
	assert_int_equal(print(10, rows, COUNT(rows), unknown), 4);
	expect_row(&rows[0], "5.0k", "5.0k", "50.0%", "A.f  a.ml:10");
	expect_row(&rows[1], "4.0k", "4.0k", "40.0%", "(no OCaml frame)");
	expect_row(&rows[2], "1.0k", "1.0k", "10.0%", "A.g  a.ml:20");
	expect_row(&rows[3], "10.0k", "10.0k", "100.0%", "all 3 sites");
	assert_string_equal(unknown, "");

	/* Death takes away from the living only, and only once. */
	end(2, false);
	end(2, false);
	end(2, true);
	end(77, false);
	end(77, true);
	assert_int_equal(print(10, rows, COUNT(rows), unknown), 4);
	expect_row(&rows[0], "5.0k", "3.0k", "50.0%", "A.f  a.ml:10");
	expect_row(&rows[3], "10.0k", "8.0k", "100.0%", "all 3 sites");
	assert_string_equal(unknown, "");

	/* An unknown fate is neither. */
	end(4, true);
	assert_int_equal(print(10, rows, COUNT(rows), unknown), 4);
	expect_row(&rows[1], "4.0k", "0", "40.0%", "(no OCaml frame)");
	expect_row(&rows[3], "10.0k", "4.0k", "100.0%", "all 3 sites");
	assert_string_equal(unknown, "4.0k");

	/* So is that of a block which is not followed; its end, if one came, is not its. */
	alloc(5, 6, g, false);
	end(5, false);
	assert_int_equal(print(10, rows, COUNT(rows), unknown), 4);
	expect_row(&rows[0], "7.0k", "1.0k", "43.8%", "A.g  a.ml:20");
	expect_row(&rows[1], "5.0k", "3.0k", "31.2%", "A.f  a.ml:10");
	expect_row(&rows[3], "16.0k", "4.0k", "100.0%", "all 3 sites");
	assert_string_equal(unknown, "10.0k");

	end(1, false);
	end(3, false);
	assert_int_equal(print(10, rows, COUNT(rows), unknown), 4);
	for (int i = 0; i < 4; i++)
		assert_string_equal(rows[i].live, "0");
}

/* A site is a function at a line of a file, however it was called. */
static void tells_sites_apart(void **state)
{
	struct row rows[8];
	char unknown[32];

	(void)state;
	alloc(1, 1, stack_at(16, "A.f", "a.ml", 10), true);
	alloc(2, 1, stack_at(24, "A.f", "a.ml", 10), true); /* another place, the same names */
	alloc(3, 4, stack_at(32, "A.f", "a.ml", 11), true);
	alloc(4, 8, stack_at(40, "A.f", "b.ml", 10), true);
	alloc(5, 16, stack_at(48, "A.g", "a.ml", 10), true);
	alloc(6, 32, stack_at(56, "caml_f", NULL, 0), true);
	alloc(7, 64, stack_at(64, "A.h", NULL, 0), true);
	assert_int_equal(print(10, rows, COUNT(rows), unknown), 7);
	expect_row(&rows[0], "64.0k", "64.0k", "50.8%", "A.h");
	expect_row(&rows[1], "32.0k", "32.0k", "25.4%", "caml_f");
	expect_row(&rows[2], "16.0k", "16.0k", "12.7%", "A.g  a.ml:10");
	expect_row(&rows[3], "8.0k", "8.0k", "6.3%", "A.f  b.ml:10");
	expect_row(&rows[4], "4.0k", "4.0k", "3.2%", "A.f  a.ml:11");
	expect_row(&rows[5], "2.0k", "2.0k", "1.6%", "A.f  a.ml:10");
	expect_row(&rows[6], "126k", "126k", "100.0%", "all 6 sites");
}

static void prints_the_biggest(void **state)
{
	static struct row rows[64];
	char name[16], unknown[32];

	(void)state;
	/* 1 + 2 + … + 40 samples, in an order of its own. */
	for (uint64_t i = 0; i < 40; i++) {
		uint64_t n = i * 17 % 40 + 1;

		snprintf(name, sizeof(name), "A.f%d", (int)n);
		alloc(i + 1, n, stack_at(16 * i + 16, name, "a.ml", 1), true);
	}
	for (size_t n_max = 0; n_max <= 50; n_max += 5) {
		size_t n = print(n_max, rows, COUNT(rows), unknown),
		       shown = n_max < 40 ? n_max : 40;

		assert_int_equal(n, shown + 1);
		for (size_t i = 0; i < shown; i++) {
			snprintf(name, sizeof(name), "A.f%d  a.ml:1", 40 - (int)i);
			assert_string_equal(rows[i].site, name);
		}
		/* The sum is that of all sites, printed or not. */
		expect_row(&rows[n - 1], "820k", "820k", "100.0%", "all 40 sites");
	}
	/* Printing has left everything as it was. */
	end(1, false);
	alloc(100, 1000, stack_at(16, "A.f1", "a.ml", 1), true);
	print(1, rows, COUNT(rows), unknown);
	expect_row(&rows[0], "1.0M", "1.0M", "55.0%", "A.f1  a.ml:1");
}

static void prints_numbers_shortly(void **state)
{
	static const struct {
		uint64_t n_samples; /* at rate 1 */
		const char *text;
	} cases[] = {
		{ 1, "1" },
		{ 999, "999" },
		{ 1000, "1.0k" },
		{ 1949, "1.9k" },
		{ 99949, "99.9k" },
		{ 99950, "100k" },
		{ 999499, "999k" },
		{ 999500, "1.0M" },
		{ 123456789, "123M" },
		{ 45678901234, "45.7G" },
		{ 3000000000000, "3.0T" },
		{ 8000000000000000, "8.0P" },
		{ 8000000000000000000, "8000P" },
	};
	struct row rows[4];
	char unknown[32];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		heap__free(sites);
		assert_int_equal(heap__new(&sites, &sites_only), 0);
		alloc_at(1, 1, cases[i].n_samples, NULL, true);
		assert_int_equal(print(1, rows, COUNT(rows), unknown), 2);
		expect_row(&rows[0], cases[i].text, cases[i].text, "100.0%", "(no OCaml frame)");
	}
}

/* Each block counts as it was sampled, also when it dies after a change of rate. */
static void counts_at_each_rate(void **state)
{
	const struct stack *f = stack_at(16, "A.f", "a.ml", 10);
	const struct stack *g = stack_at(24, "A.g", "a.ml", 20);
	struct row rows[8];
	char unknown[32];

	(void)state;
	assert_true(live() == 0);
	alloc_at(0x1p-10, 1, 3, f, true);
	alloc_at(0x1p-4, 2, 3, f, true);
	alloc_at(1, 3, 5, g, true);
	alloc_at(0x1p-10, 4, 100, g, false);
	assert_true(live() == 3 * 1024 + 3 * 16 + 5);
	end(1, false);
	assert_true(live() == 3 * 16 + 5);
	end(2, true);
	assert_true(live() == 5);
	assert_int_equal(print(10, rows, COUNT(rows), unknown), 3);
	expect_row(&rows[0], "102k", "5", "97.0%", "A.g  a.ml:20");
	expect_row(&rows[1], "3.1k", "0", "3.0%", "A.f  a.ml:10");
	end(3, false);
	assert_true(live() == 0);
}

/* One that was lost is not an empty one. */
static void tells_lost_stacks_apart(void **state)
{
	struct row rows[4];
	char unknown[32];
	union record r;

	(void)state;
	alloc(1, 1, NULL, true);
	make__alloc(&r, 2, 5);
	r.alloc.n_samples = 3;
	tell(&r, RATE, NULL);
	assert_int_equal(print(10, rows, COUNT(rows), unknown), 3);
	expect_row(&rows[0], "3.0k", "3.0k", "75.0%", "(stack lost)");
	expect_row(&rows[1], "1.0k", "1.0k", "25.0%", "(no OCaml frame)");
}

/* However many stacks, domains, sources and sizes: a cell for each place. */
static void keeps_one_cell_for_each_place(void **state)
{
	static const struct hs_location at = { .function = "A.f", .file = "a.ml", .line = 1 };
	struct heap_cell *const *cells;
	union record r, s;

	(void)state;
	for (uint32_t i = 1; i <= 2000; i++) {
		const uint64_t frames[] = { i % 2 ? 16 : 24, 1000 + 8 * i };
		const struct stack *stack;
		bool is_new;

		if (i <= 2)
			assert_int_equal(symbolizer__learn(symbolizer, frames[0], &at, 1), 0);
		make__stack(&s, i, frames, 2);
		assert_int_equal(stack_table__learn(stacks, &s.stack, &stack, &is_new), 0);
		assert_true(is_new);
		make__alloc(&r, i, i);
		r.h.domain = i % 200;
		r.alloc.source = i % 4;
		r.alloc.size_words = i;
		tell(&r, 1, stack);
	}
	assert_int_equal(heap__cells(sites, &cells), 2);
	assert_true(heap__total(sites)->allocated.words == 2000);
}

/* Sums of fractions come out as nothing, and never below. */
static void lives_on_nothing(void **state)
{
	uint64_t seed = 1, id;

	(void)state;
	for (id = 1; id <= 1000; id++)
		alloc_at((double)(make__random(&seed) % 1000 + 1) / 1001, id, id, NULL, true);
	assert_true(live() > 1000 * 1001 / 2);
	while (--id)
		end(id, id % 3 == 0);
	assert_true(live() >= 0);
	assert_true(live() < 1e-3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(prints_an_empty_table, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_the_books, setup, teardown),
		cmocka_unit_test_setup_teardown(tells_sites_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(prints_the_biggest, setup, teardown),
		cmocka_unit_test_setup_teardown(prints_numbers_shortly, setup, teardown),
		cmocka_unit_test_setup_teardown(counts_at_each_rate, setup, teardown),
		cmocka_unit_test_setup_teardown(tells_lost_stacks_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_one_cell_for_each_place, setup, teardown),
		cmocka_unit_test_setup_teardown(lives_on_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
