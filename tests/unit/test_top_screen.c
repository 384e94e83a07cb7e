/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The picture of top: numbers, columns and whole screens at every size; names that hold
 * anything.
 */
#include "tests/unit/records_make.h"

#include <locale.h>
#include <math.h>

#include "user/top/columns.h"
#include "user/top/label.h"
#include "user/top/screen.h"
#include "user/common/units.h"

static const char *value(enum figure f, double v)
{
	static char text[32];

	return columns__value(f, v, text, sizeof(text));
}

static void test_values(void **state)
{
	(void)state;
	assert_string_equal(value(FIGURE_ALLOC, 0), "0");
	assert_string_equal(value(FIGURE_LIVE, 12345678), "12.3M");
	assert_string_equal(value(FIGURE_TOTAL, NAN), "-");
	assert_string_equal(value(FIGURE_SHARE, 0.1514), "15.1%");
	assert_string_equal(value(FIGURE_SHARE, 1), "100%");
	assert_string_equal(value(FIGURE_SHARE, 0.9996), "100%");
	assert_string_equal(value(FIGURE_YOUNG, NAN), "-");
	assert_string_equal(value(FIGURE_AGE, 0.26), "0.3");
	assert_string_equal(value(FIGURE_AGE, 99.96), "100");
	assert_string_equal(value(FIGURE_AGE, 12345), "12.3k");
}

static const char *interval(enum figure f, double v, double low, double high, bool is_utf8)
{
	static char text[32];
	const struct interval i = { v, low, high };

	return columns__interval(f, &i, is_utf8, text, sizeof(text));
}

static void test_intervals(void **state)
{
	(void)state;
	assert_string_equal(interval(FIGURE_ALLOC, 100, 97, 104, true), "\u00b14%");
	assert_string_equal(interval(FIGURE_ALLOC, 100, 92, 104, false), "+-8%");
	assert_string_equal(interval(FIGURE_ALLOC, 100, 100, 100, true), "\u00b10%");
	assert_string_equal(interval(FIGURE_LIVE, 0, 0, 3.7e6, true), "<3.7M");
	assert_string_equal(interval(FIGURE_LIVE, 0, 0, 0, true), "");
	assert_string_equal(interval(FIGURE_LIVE, 1, 0, 1e9, true), "\u00b1999%");
	assert_string_equal(interval(FIGURE_SHARE, 0.5, 0.488, 0.512, true), "\u00b11.2");
	assert_string_equal(interval(FIGURE_YOUNG, 0, 0, 0.66, true), "\u00b166");
	assert_string_equal(interval(FIGURE_AGE, NAN, 0, 0, true), "");
	assert_string_equal(interval(FIGURE_AGE, 2, 1.5, 2.2, true), "\u00b10.5");
}

static void test_rate(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(units__rate(0x1p-20, text), "2^-20");
	assert_string_equal(units__rate(1, text), "1");
	assert_string_equal(units__rate(0.001, text), "0.001");
}

/* Three digits at most, and no exponent, however fast the machine is. */
static void test_per_second(void **state)
{
	static const struct {
		double events;
		const char *text;
	} cases[] = {
		{ 0, "0.00" },        { 0.2514, "0.25" }, { 8.187, "8.19" },  { 9.994, "9.99" },
		{ 9.9951, "10.0" },   { 86.9, "86.9" },   { 99.94, "99.9" },  { 99.96, "100" },
		{ 999.4, "999" },     { 1100, "1.1k" },   { 54321, "54.3k" }, { 2.5e6, "2.5M" },
		{ 123456e3, "123M" },
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(units__per_second(cases[i].events, text, sizeof(text)),
				    cases[i].text);
}

/* The widest that there are. */
static struct figures wide_figures(void)
{
	static const struct interval words = { 999e12, 1, 1e18 }, share = { 0.999, 0, 1 };
	static const struct interval cycles = { 99.9, 0, 1e9 };
	struct figures f;

	for (int i = 0; i < FIGURES; i++)
		f.at[i] = i == FIGURE_AGE                                                  ? cycles
			  : i == FIGURE_SHARE || i == FIGURE_PROMOTED || i == FIGURE_YOUNG ? share
											   : words;
	return f;
}

/* No figure touches the one before, and the name begins where it should. */
static void check_row(const struct columns *c, const char *row)
{
	for (int i = 0; i < c->n; i++) {
		char text[32];

		columns__value(c->at[i].figure, wide_figures().at[c->at[i].figure].value, text,
			       sizeof(text));
		assert_int_equal(strncmp(row + c->at[i].end - strlen(text), text, strlen(text)), 0);
		/* The first one may begin at the edge. */
		if (i)
			assert_int_equal(row[c->at[i].end - (int)strlen(text) - 1], ' ');
	}
}

static void test_columns(void **state)
{
	static const enum rows_metric metrics[] = { ROWS_ALLOC, ROWS_LIVE, ROWS_PROMOTED };
	const struct figures f = wide_figures();
	struct canvas canvas = { 0 };
	struct columns c;
	char text[2048];

	(void)state;
	for (int width = 1; width <= 300; width++)
		for (int variant = 0; variant < 6; variant++) {
			enum rows_metric metric = metrics[variant / 2];
			int before = 0;

			assert_int_equal(canvas__resize(&canvas, 2, width, false), 0);
			columns__choose(&c, width,
					metric == ROWS_LIVE ? ROWS_BY_STACK : ROWS_BY_SITE, metric,
					variant % 2, false);
			assert_true(c.label < width);
			for (int i = 0; i < c.n; i++) {
				assert_true(c.at[i].end > before);
				before = c.at[i].interval_end ? c.at[i].interval_end : c.at[i].end;
			}
			assert_true(c.n == 0 || c.label > before);
			assert_true(c.n > 0 || width < 14);
			if (c.n)
				assert_int_equal(c.at[0].figure, figures__of_metric(metric));
			columns__titles(&c, &canvas, 0, figures__of_metric(metric), "SITE");
			columns__row(&c, &canvas, 1, &f, "Name", LOOK_PLAIN);
			canvas__text(&canvas, 1, text, sizeof(text));
			check_row(&c, text);
			assert_int_equal(strncmp(text + c.label, "Name", (size_t)(width - c.label)),
					 0);
		}
	/* What is promised of 80 columns, and of wide terminals. */
	columns__choose(&c, 80, ROWS_BY_SITE, ROWS_ALLOC, false, true);
	assert_int_equal(c.n, 6);
	assert_true(c.at[0].interval_end > 0);
	assert_true(c.label <= 80 - 24);
	columns__choose(&c, 140, ROWS_BY_SITE, ROWS_ALLOC, false, true);
	assert_int_equal(c.n, FIGURES);
	for (int i = 0; i < c.n; i++)
		assert_true(c.at[i].interval_end > 0);
	/* Of stacks rather the callers. */
	columns__choose(&c, 80, ROWS_BY_STACK, ROWS_ALLOC, false, true);
	assert_true(c.label <= 40 && c.n >= 4 && c.at[0].interval_end > 0);
	canvas__deinit(&canvas);
}

/* ---- names that do not fit ---- */

static const char *fitted(const struct row *r, enum rows_by by, int cols, bool is_utf8)
{
	static char text[256];

	return label__fitted(r, by, cols, is_utf8, text, sizeof(text));
}

static void test_labels(void **state)
{
	const struct hs_location locations[] = {
		{ .function = "Mod.f", .file = "mod.ml", .line = 7 },
		{ .function = "Mod.g", .file = "mod.ml", .line = 9 }
	};
	struct stack_frame frames[] = { { .locations = &locations[0], .n_locations = 1 },
					{ .locations = &locations[1], .n_locations = 1 } };
	const struct stack stack = { .depth = 2, .frames = frames };
	struct row r = { .function = "Stdlib__Buffer.create", .file = "buffer.ml", .line = 43 };

	(void)state;
	assert_string_equal(fitted(&r, ROWS_BY_SITE, 35, true),
			    "Stdlib__Buffer.create  buffer.ml:43");
	assert_string_equal(fitted(&r, ROWS_BY_SITE, 25, true), "Stdlib__Buffer.create\u2026:43");
	assert_string_equal(fitted(&r, ROWS_BY_SITE, 25, false), "Stdlib__Buffer.creat..:43");
	/* Narrower than that there is no point. */
	assert_string_equal(fitted(&r, ROWS_BY_SITE, 7, true),
			    "Stdlib__Buffer.create  buffer.ml:43");
	/* By columns, not by bytes, and no half of a character. */
	r.function = "\u4e2d\u6587\u4e2d\u6587\u4e2d\u6587";
	assert_string_equal(fitted(&r, ROWS_BY_SITE, 13, true),
			    "\u4e2d\u6587\u4e2d\u6587\u2026:43");
	r = (struct row){ 0 };
	assert_string_equal(fitted(&r, ROWS_BY_SITE, 5, true), "(no OCaml frame)");
	/* Callers before the file. */
	r = (struct row){ .function = "Mod.f", .file = "mod.ml", .line = 7, .stack = &stack };
	assert_string_equal(fitted(&r, ROWS_BY_STACK, 23, true), "Mod.f  mod.ml:7 < Mod.g");
	assert_string_equal(fitted(&r, ROWS_BY_STACK, 22, true), "Mod.f:7 < Mod.g");
	/* Two sites of one function never look alike where there is room to tell. */
	for (int cols = 12; cols < 60; cols++) {
		char text[256];

		r = (struct row){ .function = "CamlinternalFormat.make_int_padding_precision.(fun)",
				  .file = "camlinternalFormat.ml",
				  .line = 1693 };
		snprintf(text, sizeof(text), "%s", fitted(&r, ROWS_BY_SITE, cols, true));
		r.line = 1695;
		assert_string_not_equal(text, fitted(&r, ROWS_BY_SITE, cols, true));
	}
}

/* ---- canvas ---- */

static const char *shown(const char *text, bool is_utf8, int width)
{
	static struct canvas c;
	static char out[256];

	assert_int_equal(canvas__resize(&c, 1, width, is_utf8), 0);
	canvas__put(&c, 0, 0, LOOK_PLAIN, text);
	return canvas__text(&c, 0, out, sizeof(out));
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(shown("a\x1b[31mb\n", true, 20), "a?[31mb?");
	assert_string_equal(shown("caf\u00e9 \u4e2d\u6587", true, 20), "caf\u00e9 \u4e2d\u6587");
	assert_string_equal(shown("caf\u00e9", false, 20), "caf?");
	/* A wide character does not fit the last column. */
	assert_string_equal(shown("a\u4e2d\u6587", true, 4), "a\u4e2d");
	assert_string_equal(shown("\xc2\x85\xc2\x9bx", true, 20), "??x");
	assert_string_equal(shown("\xff\xc0\x80\xed\xa0\x80\xf5", true, 20), "???????");
	assert_string_equal(shown("\xe4\xb8", true, 20), "??");
	assert_string_equal(shown("", true, 1), "");
	assert_string_equal(shown("abc", true, 1), "a");
}

static void test_canvas_edges(void **state)
{
	struct canvas c = { 0 };
	char text[64];

	(void)state;
	assert_int_equal(canvas__resize(&c, 0, -3, true), 0);
	assert_int_equal(c.rows, 1);
	assert_int_equal(c.cols, 1);
	assert_int_equal(canvas__resize(&c, 1 << 30, 1 << 30, true), 0);
	assert_int_equal(c.rows, CANVAS_ROWS_MAX);
	assert_int_equal(canvas__resize(&c, 2, 10, true), 0);
	canvas__put(&c, -1, 0, LOOK_PLAIN, "x");
	canvas__put(&c, 2, 0, LOOK_PLAIN, "x");
	assert_int_equal(canvas__put(&c, 1, -2, LOOK_PLAIN, "abcd"), 2);
	assert_int_equal(canvas__printf(&c, 0, 8, LOOK_PLAIN, "%d", 12345), 13);
	canvas__paint(&c, 7, LOOK_TITLE);
	assert_string_equal(canvas__text(&c, 1, text, sizeof(text)), "cd");
	assert_string_equal(canvas__text(&c, 0, text, sizeof(text)), "        12");
	assert_string_equal(canvas__text(&c, 9, text, sizeof(text)), "");
	canvas__deinit(&c);
}

/* ---- whole screens ---- */

static void test_screens(void **state)
{
	struct model_row rows[40] = { 0 };
	struct model model = { .rows = { .at = rows, .n = COUNT(rows) } };
	struct canvas canvas = { 0 };
	struct lines lines = { 0 };
	struct facts facts;
	struct view view;
	struct screen s = { .facts = &facts, .model = &model, .view = &view, .lines = &lines };
	char text[4096];

	(void)state;
	facts__init(&facts);
	snprintf(facts.command, sizeof(facts.command), "%s", "a\x1b]0;title\x07 b");
	facts.pid = 4711;
	facts.rate = 0x1p-16;
	facts.losses[0] = (struct facts_loss){ "ring_full", 12 };
	facts.n_losses = 1;
	view__init(&view, ROWS_BY_SITE, ROWS_LIVE);
	for (size_t i = 0; i < COUNT(rows); i++) {
		rows[i].row.function = "Mod.f";
		rows[i].figures = wide_figures();
	}
	model.rows.all = wide_figures();
	assert_int_equal(lines__help(&lines), 0);
	for (int height = 1; height <= 40; height++)
		for (int width = 1; width <= 160; width += 1 + width / 20)
			for (int kind = 0; kind < 3; kind++) {
				struct view_bounds b;

				view.is_help = kind == 1;
				view.prompt = kind == 2 ? PROMPT_FUNCTION : PROMPT_NONE;
				assert_int_equal(canvas__resize(&canvas, height, width, false), 0);
				b = screen__bounds(&s, height);
				assert_true(b.page <= (size_t)height);
				/* At least one row of the table, however small. */
				assert_true(b.page >= 1);
				view.selected = COUNT(rows) - 1;
				view__settle(&view, &b);
				screen__draw(&s, &canvas);
				for (int y = 0; y < height; y++)
					for (const char *p =
						     canvas__text(&canvas, y, text, sizeof(text));
					     *p; p++)
						assert_true(*p >= ' ' && *p < 0x7f);
			}
	/* 20 × 5: the title, the columns, two rows, the keys. */
	view.is_help = false;
	view.prompt = PROMPT_NONE;
	assert_int_equal(canvas__resize(&canvas, 5, 20, false), 0);
	assert_int_equal(screen__bounds(&s, 5).page, 2);
	screen__draw(&s, &canvas);
	assert_string_equal(canvas__text(&canvas, 0, text, sizeof(text)), "heapsonde top  PID 4");
	assert_non_null(strstr(canvas__text(&canvas, 1, text, sizeof(text)), "LIVE"));
	/* What was lost is said, and in its own colour. */
	assert_int_equal(canvas__resize(&canvas, 24, 80, false), 0);
	screen__draw(&s, &canvas);
	assert_string_equal(canvas__text(&canvas, 2, text, sizeof(text)), "lost: ring_full 12");
	assert_int_equal(canvas.cells[2 * 80].look, LOOK_ALERT);
	lines__clear(&lines);
	canvas__deinit(&canvas);
	facts__deinit(&facts);
}

/* The help fits 80 columns. */
static void test_help(void **state)
{
	struct lines l = { 0 };

	(void)state;
	assert_int_equal(lines__help(&l), 0);
	for (size_t i = 0; i < l.n; i++)
		assert_true(strlen(l.at[i]) <= 80);
	lines__clear(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),  cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_rate),    cmocka_unit_test(test_per_second),
		cmocka_unit_test(test_columns), cmocka_unit_test(test_labels),
		cmocka_unit_test(test_names),   cmocka_unit_test(test_canvas_edges),
		cmocka_unit_test(test_screens), cmocka_unit_test(test_help),
	};

	/* Widths of characters; in every Debian. */
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
