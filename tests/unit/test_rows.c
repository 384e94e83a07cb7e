/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows: which cells make one, what they are called, their order, filters; and a function's
 * words with those of what it calls, each stack counted once.
 */
#include "tests/unit/records_make.h"

#include "user/track/rows.h"

static struct symbolizer *symbolizer;
static struct stack_table *stacks;
static struct heap *heap;
static uint64_t next_id;

static int setup(void **state)
{
	const struct heap_options sizes = { .want_sizes = true };
	(void)state;
	next_id = 1;
	return symbolizer__new_empty(&symbolizer) || stack_table__new(&stacks, symbolizer) ||
	       heap__new(&heap, &sizes);
}

static int teardown(void **state)
{
	(void)state;
	heap__free(heap);
	stack_table__free(stacks);
	symbolizer__free(symbolizer);
	return 0;
}

/* A stack of functions, innermost first; each is on the line of a.ml that lines has. */
static const struct stack *stack_of(size_t depth, const char *const *functions,
				    const uint32_t *lines)
{
	static uint64_t next_slot = 8;
	const struct stack *stack;
	uint64_t slots[8];
	union record r;
	bool is_new;

	for (size_t i = 0; i < depth; i++) {
		const struct hs_location l = { .function = functions[i],
					       .file = lines[i] ? "a.ml" : NULL,
					       .line = lines[i] };

		slots[i] = next_slot;
		next_slot += 8;
		assert_int_equal(symbolizer__learn(symbolizer, slots[i], &l, 1), 0);
	}
	make__stack(&r, next_slot, slots, (uint32_t)depth);
	assert_int_equal(stack_table__learn(stacks, &r.stack, &stack, &is_new), 0);
	return stack;
}

#define STACK(functions, ...)                                                                      \
	stack_of(COUNT(functions), functions, (const uint32_t[]){ __VA_ARGS__ })

/* n words (of one block of n - 1 fields) of a domain, at rate 1; returns the block's id. */
static uint64_t alloc_in(uint32_t domain, uint8_t source, uint64_t n, const struct stack *stack)
{
	struct hs_event event;
	union record r;

	make__alloc(&r, next_id, stack ? 1 : 0);
	r.h.domain = domain;
	r.alloc.source = source;
	r.alloc.size_words = n - 1;
	r.alloc.n_samples = n;
	event = make__event(&r);
	assert_int_equal(heap__event(heap, &event, stack, 1), 0);
	return next_id++;
}

static uint64_t alloc(uint64_t n, const struct stack *stack)
{
	return alloc_in(0, SONDE_SRC_NORMAL, n, stack);
}

static void block(enum hs_record_type type, uint64_t id)
{
	struct hs_event event;
	union record r;

	make__block(&r, type, id);
	event = make__event(&r);
	assert_int_equal(heap__event(heap, &event, NULL, 1), 0);
}

/* Rows as text, "label=words label=words". */
static void expect_by(enum rows_by by, enum rows_metric metric, const struct rows_filter *filter,
		      const char *expected)
{
	char text[1024] = "", label[256];
	struct row *rows;
	long n = rows__make(&rows, heap, by, metric, filter);

	assert_true(n >= 0);
	for (long i = 0; i < n; i++) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s%s=%g", i ? " | " : "",
			 rows__label(&rows[i], by, label, sizeof(label)),
			 rows__amount(&rows[i].tally, metric)->words);
		if (by != ROWS_BY_FUNCTION)
			assert_true(rows[i].inclusive.words ==
				    rows__amount(&rows[i].tally, metric)->words);
	}
	assert_string_equal(text, expected);
	rows__free(rows);
}

static void nothing_gives_no_rows(void **state)
{
	(void)state;
	for (int by = ROWS_BY_SITE; by <= ROWS_BY_SIZE; by++)
		expect_by((enum rows_by)by, ROWS_ALLOC, NULL, "");
	rows__free(NULL);
}

static void groups_in_each_way(void **state)
{
	static const char *const f_main[] = { "A.f", "A.main" }, *const f_g[] = { "A.f", "A.g" };
	const struct stack *one = STACK(f_main, 10, 1), *two = STACK(f_g, 10, 2),
			   *three = STACK(f_main, 11, 1);

	(void)state;
	alloc_in(0, SONDE_SRC_NORMAL, 3, one);
	alloc_in(1, SONDE_SRC_NORMAL, 40, one);
	alloc_in(1, SONDE_SRC_CUSTOM, 100, two);
	alloc_in(2, SONDE_SRC_MARSHAL, 33, three);
	alloc_in(2, SONDE_SRC_MARSHAL, 34, NULL);
	expect_by(ROWS_BY_SITE, ROWS_ALLOC, NULL,
		  "A.f  a.ml:10=143 | (no OCaml frame)=34 | A.f  a.ml:11=33");
	expect_by(ROWS_BY_STACK, ROWS_ALLOC, NULL,
		  "A.f  a.ml:10=100 | A.f  a.ml:10=43 | (no OCaml frame)=34 | A.f  a.ml:11=33");
	expect_by(ROWS_BY_DOMAIN, ROWS_ALLOC, NULL, "domain 1=140 | domain 2=67 | domain 0=3");
	expect_by(ROWS_BY_SOURCE, ROWS_ALLOC, NULL, "custom=100 | marshal=67 | normal=43");
	expect_by(ROWS_BY_SIZE, ROWS_ALLOC, NULL,
		  "65-128 words=100 | 33-64 words=74 | 32 words=33 | 2 words=3");
}

static void takes_the_metric_that_is_asked_for(void **state)
{
	static const char *const f[] = { "A.f" }, *const g[] = { "A.g" };
	uint64_t young, promoted, died;

	(void)state;
	young = alloc(2, STACK(f, 1));
	promoted = alloc(3, STACK(g, 2));
	died = alloc(5, STACK(g, 2));
	block(HS_REC_PROMOTE, promoted);
	block(HS_REC_PROMOTE, died);
	block(HS_REC_DEALLOC, died);
	(void)young;
	heap__settle(heap);
	/* A row is there though it has nothing of the metric. */
	expect_by(ROWS_BY_FUNCTION, ROWS_ALLOC, NULL, "A.g=8 | A.f=2");
	expect_by(ROWS_BY_FUNCTION, ROWS_LIVE, NULL, "A.g=3 | A.f=2");
	expect_by(ROWS_BY_FUNCTION, ROWS_PROMOTED, NULL, "A.g=8 | A.f=0");
	expect_by(ROWS_BY_FUNCTION, ROWS_SURVIVORS, NULL, "A.f=0 | A.g=0");
}

/* Words with callees, as "name=words". */
static double inclusive_of(const struct row *rows, long n, const char *name)
{
	for (long i = 0; i < n; i++)
		if (rows[i].function && !strcmp(rows[i].function, name))
			return rows[i].inclusive.words;
	return -1;
}

static void counts_a_stack_once_for_each_function(void **state)
{
	/* f calls itself, and g calls f and is called by it. */
	static const char *const deep[] = { "A.f", "A.f", "A.g", "A.f", "A.main" };
	static const char *const flat[] = { "A.g", "A.main" };
	struct row *rows;
	long n;

	(void)state;
	alloc(10, STACK(deep, 1, 2, 3, 4, 5));
	alloc_in(1, SONDE_SRC_NORMAL, 7, STACK(deep, 1, 2, 3, 4, 5));
	alloc(100, STACK(flat, 6, 7));
	alloc(1000, NULL);
	n = rows__make(&rows, heap, ROWS_BY_FUNCTION, ROWS_ALLOC, NULL);
	assert_int_equal(n, 4);
	assert_true(inclusive_of(rows, n, "A.f") == 17);
	assert_true(inclusive_of(rows, n, "A.g") == 117);
	assert_true(inclusive_of(rows, n, "A.main") == 117);
	/* No stack has no functions; its words are its own. */
	assert_null(rows[0].function);
	assert_true(rows[0].inclusive.words == 1000 && rows[0].tally.allocated.words == 1000);
	/* A function that allocates nothing itself comes last. */
	assert_string_equal(rows[3].function, "A.main");
	assert_true(rows[3].tally.allocated.words == 0);
	rows__free(rows);
}

static void filters(void **state)
{
	static const char *const a[] = { "A.inner", "B.outer" }, *const b[] = { "A.other" };
	struct rows_filter filter = ROWS_FILTER_ALL;

	(void)state;
	alloc_in(0, SONDE_SRC_NORMAL, 1, STACK(a, 1, 2));
	alloc_in(1, SONDE_SRC_MARSHAL, 2, STACK(a, 1, 2));
	alloc_in(1, SONDE_SRC_NORMAL, 4, STACK(b, 3));
	alloc_in(1, SONDE_SRC_NORMAL, 8, NULL);
	expect_by(ROWS_BY_FUNCTION, ROWS_ALLOC, &filter,
		  "(no OCaml frame)=8 | A.other=4 | A.inner=3 | B.outer=0");
	filter.function = "OUT";
	expect_by(ROWS_BY_SITE, ROWS_ALLOC, &filter, "A.inner  a.ml:1=3");
	filter.domain = 1;
	expect_by(ROWS_BY_SITE, ROWS_ALLOC, &filter, "A.inner  a.ml:1=2");
	filter.source = SONDE_SRC_NORMAL;
	expect_by(ROWS_BY_SITE, ROWS_ALLOC, &filter, "");
	filter.function = NULL;
	expect_by(ROWS_BY_SITE, ROWS_ALLOC, &filter, "(no OCaml frame)=8 | A.other  a.ml:3=4");
	filter = (struct rows_filter){ .domain = 0, .source = -1 };
	expect_by(ROWS_BY_DOMAIN, ROWS_ALLOC, &filter, "domain 0=1");
}

static void sorts_equals_by_label(void **state)
{
	static const char *const names[] = { "A.c", "A.a", "A.b", "A.d" };

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++)
		alloc(5, stack_of(1, &names[i], (const uint32_t[]){ 1 }));
	expect_by(ROWS_BY_SITE, ROWS_ALLOC, NULL,
		  "A.a  a.ml:1=5 | A.b  a.ml:1=5 | A.c  a.ml:1=5 | A.d  a.ml:1=5");
}

static void names_what_is_not_known(void **state)
{
	static const char *const unknown[] = { NULL }, *const bare[] = { "caml_main" };
	struct hs_event event;
	union record r;

	(void)state;
	alloc(2, STACK(unknown, 7));
	alloc(4, STACK(unknown, 0));
	alloc(8, STACK(bare, 0));
	make__alloc(&r, next_id++, 99); /* its stack was lost */
	event = make__event(&r);
	assert_int_equal(heap__event(heap, &event, NULL, 1), 0);
	expect_by(ROWS_BY_SITE, ROWS_ALLOC, NULL,
		  "caml_main=8 | (unknown)=4 | (unknown)  a.ml:7=2 | (stack lost)=1");
	expect_by(ROWS_BY_FUNCTION, ROWS_ALLOC, NULL, "caml_main=8 | (unknown)=6 | (stack lost)=1");
}

/* The rows by size. */
static void size_classes_meet(void **state)
{
	uint64_t low, high, next = 0;
	int n = 0;

	(void)state;
	for (int c = 0; c < HEAP_SIZE_CLASSES; c++, n++) {
		heap__size_class_range((uint8_t)c, &low, &high);
		assert_int_equal(low, next);
		assert_true(high >= low);
		assert_int_equal(heap__size_class(low), c);
		assert_int_equal(heap__size_class(high), c);
		if (high == UINT64_MAX)
			break;
		next = high + 1;
	}
	assert_true(high == UINT64_MAX);
	assert_int_equal(heap__size_class(INT64_MAX), heap__size_class(1ull << 62) + 1);
}

static void knows_its_words(void **state)
{
	enum rows_metric metric;
	enum rows_by by;

	(void)state;
	for (int i = ROWS_BY_SITE; i <= ROWS_BY_SIZE; i++) {
		assert_int_equal(rows__parse_by(rows__by_name((enum rows_by)i), &by), 0);
		assert_int_equal(by, i);
	}
	for (int i = ROWS_ALLOC; i <= ROWS_SURVIVORS; i++) {
		assert_int_equal(
			rows__parse_metric(rows__metric_name((enum rows_metric)i), &metric), 0);
		assert_int_equal(metric, i);
	}
	assert_int_equal(rows__parse_by("sites", &by), -EINVAL);
	assert_int_equal(rows__parse_metric("", &metric), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_gives_no_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(groups_in_each_way, setup, teardown),
		cmocka_unit_test_setup_teardown(takes_the_metric_that_is_asked_for, setup,
						teardown),
		cmocka_unit_test_setup_teardown(counts_a_stack_once_for_each_function, setup,
						teardown),
		cmocka_unit_test_setup_teardown(filters, setup, teardown),
		cmocka_unit_test_setup_teardown(sorts_equals_by_label, setup, teardown),
		cmocka_unit_test_setup_teardown(names_what_is_not_known, setup, teardown),
		cmocka_unit_test(size_classes_meet),
		cmocka_unit_test(knows_its_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
