/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of top: each from a view to a view; any keys in any order keep selection and
 * filters within bounds.
 */
#include "tests/unit/records_make.h"

#include "user/top/view.h"

static const struct view_bounds table = { .n_rows = 100, .page = 10 };

static struct view new_view(void)
{
	struct view v;

	view__init(&v, ROWS_BY_SITE, ROWS_ALLOC);
	return v;
}

static void press(struct view *v, const char *keys)
{
	for (; *keys; keys++)
		view__key(v, &table, *keys == '\n' ? VIEW_KEY_ENTER : *keys);
}

static void test_moving(void **state)
{
	struct view v = new_view();

	(void)state;
	view__key(&v, &table, VIEW_KEY_UP);
	assert_int_equal(v.selected, 0);
	press(&v, "jj");
	assert_int_equal(v.selected, 2);
	view__key(&v, &table, VIEW_KEY_PAGE_DOWN);
	assert_int_equal(v.selected, 12);
	assert_int_equal(v.top, 3);
	view__key(&v, &table, VIEW_KEY_END);
	assert_int_equal(v.selected, 99);
	assert_int_equal(v.top, 90);
	view__key(&v, &table, VIEW_KEY_DOWN);
	assert_int_equal(v.selected, 99);
	view__key(&v, &table, VIEW_KEY_PAGE_UP);
	assert_int_equal(v.selected, 89);
	assert_int_equal(v.top, 89);
	view__key(&v, &table, VIEW_KEY_HOME);
	assert_int_equal(v.selected, 0);
	assert_int_equal(v.top, 0);
	/* No rows, no room: nothing happens. */
	for (int key = VIEW_KEY_UP; key <= VIEW_KEY_BACKTAB; key++) {
		view__key(&v, &(struct view_bounds){ 0 }, key);
		assert_int_equal(v.selected, 0);
		assert_int_equal(v.top, 0);
		assert_false(v.is_open);
	}
}

static void test_sorting(void **state)
{
	struct view v = new_view();

	(void)state;
	assert_int_equal(v.sort, FIGURE_ALLOC);
	for (int sort = 0; sort <= VIEW_SORT_NAME; sort++) {
		const char keys[] = { view__sort_key(sort), '\0' };
		bool was = v.sort == sort;

		press(&v, "j");
		press(&v, keys);
		assert_int_equal(v.sort, sort);
		assert_int_equal(v.is_reversed, was);
		assert_int_equal(v.selected, 0);
		press(&v, keys);
		assert_int_equal(v.is_reversed, !was);
		press(&v, "r");
		assert_int_equal(v.is_reversed, was);
		/* No two have the same key. */
		for (int other = 0; other < sort; other++)
			assert_int_not_equal(view__sort_key(other), view__sort_key(sort));
	}
	assert_int_equal(view__sort_key(-1), 0);
	assert_int_equal(view__sort_key(FIGURES + 1), 0);
}

static void test_metric(void **state)
{
	static const enum rows_metric order[] = { ROWS_LIVE, ROWS_PROMOTED, ROWS_ALLOC };
	static const int sorts[] = { FIGURE_LIVE, FIGURE_PROMOTE, FIGURE_ALLOC };
	struct view v = new_view();

	(void)state;
	for (int i = 0; i < 3; i++) {
		press(&v, i == 1 ? "m" : "\t");
		assert_int_equal(v.metric, order[i]);
		assert_int_equal(v.sort, sorts[i]);
	}
	view__key(&v, &table, VIEW_KEY_BACKTAB);
	assert_int_equal(v.metric, ROWS_PROMOTED);
	press(&v, "x");
	assert_int_equal(v.by, ROWS_BY_STACK);
	press(&v, "x");
	assert_int_equal(v.by, ROWS_BY_SITE);
}

static void test_filter(void **state)
{
	struct view v = new_view();
	struct rows_filter f;

	(void)state;
	assert_false(view__is_filtered(&v));
	/* While something is typed, no letter is a key. */
	press(&v, "/qjx");
	assert_int_equal(v.prompt, PROMPT_FUNCTION);
	assert_string_equal(v.input, "qjx");
	assert_false(v.wants_quit);
	view__key(&v, &table, VIEW_KEY_BACKSPACE);
	view__key(&v, &table, 0xe9);
	view__key(&v, &table, 0x20ac);
	assert_string_equal(v.input, "qj\u00e9\u20ac");
	view__key(&v, &table, VIEW_KEY_BACKSPACE);
	view__key(&v, &table, 0x1f600);
	view__key(&v, &table, 0x85);
	press(&v, "\n");
	assert_string_equal(v.function, "qj\u00e9");
	assert_int_equal(v.prompt, PROMPT_NONE);
	f = view__filter(&v);
	assert_ptr_equal(f.function, v.function);
	press(&v, "/x");
	view__key(&v, &table, VIEW_KEY_ESCAPE);
	assert_string_equal(v.function, "qj\u00e9");
	press(&v, "d12\n");
	assert_int_equal(v.domain, 12);
	press(&v, "d4294967295\n");
	assert_int_equal(v.domain, 12);
	assert_non_null(v.remark);
	press(&v, "d-1\n");
	assert_int_equal(v.domain, 12);
	press(&v, "d 1\n");
	assert_int_equal(v.domain, 12);
	for (int source = SONDE_SRC_NORMAL; source <= SONDE_SRC_MAP_FILE; source++) {
		press(&v, "s");
		assert_int_equal(v.source, source);
	}
	f = view__filter(&v);
	assert_int_equal(f.domain, 12);
	assert_int_equal(f.source, SONDE_SRC_MAP_FILE);
	assert_true(view__is_filtered(&v));
	press(&v, "s");
	assert_int_equal(v.source, -1);
	press(&v, "d\n");
	assert_int_equal(v.domain, -1);
	press(&v, "c");
	assert_false(view__is_filtered(&v));
	assert_null(view__filter(&v).function);
}

static void test_long_input(void **state)
{
	struct view v = new_view();

	(void)state;
	press(&v, "/");
	for (int i = 0; i < 1000; i++)
		view__key(&v, &table, i % 3 ? 'a' : 0x20ac);
	assert_true(strlen(v.input) < sizeof(v.input));
	press(&v, "\n");
	assert_true(strlen(v.function) < sizeof(v.function));
	press(&v, "/abc");
	view__key(&v, &table, 'U' - '@');
	assert_string_equal(v.input, "");
	view__key(&v, &table, VIEW_KEY_BACKSPACE);
	assert_string_equal(v.input, "");
}

static void test_open(void **state)
{
	const struct view_bounds open = { .n_rows = 100, .n_lines = 25, .page = 10 };
	struct view v = new_view();

	(void)state;
	press(&v, "jjj\n");
	assert_true(v.is_open);
	assert_int_equal(v.selected, 3);
	view__key(&v, &open, VIEW_KEY_DOWN);
	assert_int_equal(v.first, 1);
	view__key(&v, &open, VIEW_KEY_END);
	assert_int_equal(v.first, 15);
	/* Another order leaves it open. */
	view__key(&v, &open, 'l');
	assert_int_equal(v.selected, 3);
	assert_true(v.is_open);
	view__key(&v, &open, '?');
	assert_true(v.is_help);
	assert_int_equal(v.first, 0);
	view__key(&v, &open, 'q');
	assert_false(v.is_help);
	assert_true(v.is_open);
	view__key(&v, &open, VIEW_KEY_ESCAPE);
	assert_false(v.is_open);
	assert_int_equal(v.selected, 3);
	view__key(&v, &table, VIEW_KEY_ESCAPE);
	assert_false(v.wants_quit);
	press(&v, "q");
	assert_true(v.wants_quit);
}

static void test_wishes(void **state)
{
	struct view v = new_view();

	(void)state;
	press(&v, "+++-");
	assert_int_equal(v.rate_steps, 2);
	press(&v, " ");
	assert_true(v.is_paused);
	press(&v, " ");
	assert_false(v.is_paused);
	press(&v, "i");
	assert_true(v.want_intervals);
	press(&v, "z");
	assert_true(v.wants_restart);
	press(&v, "!");
	assert_non_null(v.remark);
	press(&v, "j");
	assert_null(v.remark);
}

/* Any keys, with bounds that change meanwhile. */
static void test_any(void **state)
{
	struct view v = new_view();
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		const struct view_bounds b = { .n_rows = make__random(&seed) % 5,
					       .n_lines = make__random(&seed) % 5,
					       .page = make__random(&seed) % 4 };
		uint64_t r = make__random(&seed);
		int key = r % 3 == 0   ? VIEW_KEY_UP + (int)(r / 3 % 10)
			  : r % 3 == 1 ? ' ' + (int)(r / 3 % 96)
				       : (int)(r / 3 % 0x120000);

		view__key(&v, &b, key);
		assert_true(v.selected < (b.n_rows ? b.n_rows : 1));
		assert_true(v.top <= v.selected);
		assert_true(!b.page || v.selected < v.top + b.page);
		assert_true(v.first < (b.n_lines ? b.n_lines : 1));
		assert_true(v.sort >= 0 && v.sort <= VIEW_SORT_NAME);
		assert_true(v.source >= -1 && v.source <= SONDE_SRC_MAP_FILE);
		assert_true(v.domain >= -1 && v.domain < UINT32_MAX);
		assert_non_null(memchr(v.function, '\0', sizeof(v.function)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moving),     cmocka_unit_test(test_sorting),
		cmocka_unit_test(test_metric),     cmocka_unit_test(test_filter),
		cmocka_unit_test(test_long_input), cmocka_unit_test(test_open),
		cmocka_unit_test(test_wishes),     cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
