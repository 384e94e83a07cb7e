/* SPDX-License-Identifier: BSD-2-Clause */
/* See columns.h. */
#include "user/top/columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "user/common/units.h"
#include "user/top/view.h"

#define VALUE_BYTES 32
/* Between the figures and the names. */
#define GAP 2

/* What the names keep: at least, so that more figures, so that all intervals are shown. */
#define SITE_LEAST 18
#define STACK_LEAST 40
#define LABEL_FOR_MORE 40
#define LABEL_FOR_INTERVALS 24

enum unit { UNIT_WORDS, UNIT_SHARE, UNIT_CYCLES };

static const struct {
	const char *title;
	int width; /* with the blank before it */
	enum unit unit;
} kinds[FIGURES] = {
	[FIGURE_ALLOC] = { "ALLOC/s", 8, UNIT_WORDS },
	[FIGURE_LIVE] = { "LIVE", 6, UNIT_WORDS },
	[FIGURE_PROMOTE] = { "PROM/s", 7, UNIT_WORDS },
	[FIGURE_SHARE] = { "SHARE", 6, UNIT_SHARE },
	[FIGURE_PROMOTED] = { "PROM%", 6, UNIT_SHARE },
	[FIGURE_YOUNG] = { "YOUNG%", 7, UNIT_SHARE },
	[FIGURE_AGE] = { "AGE", 5, UNIT_CYCLES },
	[FIGURE_TOTAL] = { "TOTAL", 6, UNIT_WORDS },
};

const char *columns__title(int figure)
{
	return figure >= 0 && figure < FIGURES ? kinds[figure].title : "name";
}

/* ---- texts ---- */

const char *columns__value(enum figure figure, double value, char *text, size_t size)
{
	if (isnan(value)) {
		snprintf(text, size, "-");
		return text;
	}
	switch (kinds[figure].unit) {
	case UNIT_WORDS:
		return units__words(value, text, size);
	case UNIT_SHARE:
		snprintf(text, size, value < 0.9995 ? "%.1f%%" : "%.0f%%", 100 * value);
		return text;
	default:
		if (value >= 999.5)
			return units__words(value, text, size);
		snprintf(text, size, value < 99.95 ? "%.1f" : "%.0f", value);
		return text;
	}
}

const char *columns__interval(enum figure figure, const struct interval *i, bool is_utf8,
			      char *text, size_t size)
{
	const char *sign = is_utf8 ? "\u00b1" : "+-";
	char high[VALUE_BYTES];
	double half;

	text[0] = '\0';
	if (isnan(i->value) || isnan(i->low) || isnan(i->high))
		return text;
	/* The wider side: intervals are not symmetric. */
	half = fmax(i->high - i->value, i->value - i->low);
	switch (kinds[figure].unit) {
	case UNIT_WORDS:
		if (i->value > 0)
			snprintf(text, size, "%s%.0f%%", sign, fmin(100 * half / i->value, 999));
		else if (i->high > 0)
			snprintf(text, size, "<%s", units__words(i->high, high, sizeof(high)));
		return text;
	case UNIT_SHARE:
		half *= 100;
		snprintf(text, size, half < 9.95 ? "%s%.1f" : "%s%.0f", sign, half);
		return text;
	default:
		snprintf(text, size, half < 9.95 ? "%s%.1f" : "%s%.0f", sign, fmin(half, 9999));
		return text;
	}
}

/* ---- which ---- */

/* What has been chosen so far. */
struct choice {
	bool figure[FIGURES], interval[FIGURES];
	int used, width, interval_width, label_least;
};

static bool take(struct choice *c, int n_columns, int label_least)
{
	if (c->used + n_columns + GAP + label_least > c->width)
		return false;
	c->used += n_columns;
	return true;
}

static void take_figure(struct choice *c, enum figure f, int label_least)
{
	if (!c->figure[f])
		c->figure[f] = take(c, kinds[f].width, label_least);
}

static void take_interval(struct choice *c, enum figure f, int label_least)
{
	if (c->figure[f] && !c->interval[f])
		c->interval[f] = take(c, c->interval_width, label_least);
}

static int at_least(int a, int b)
{
	return a > b ? a : b;
}

static void choose(struct choice *c, enum figure main, bool want_intervals)
{
	const int for_more = at_least(c->label_least, LABEL_FOR_MORE);
	const int for_intervals = at_least(c->label_least, LABEL_FOR_INTERVALS);
	/* By what they tell of a site; the other amounts after the shares. */
	const enum figure order[] = {
		main,
		FIGURE_SHARE,
		main == FIGURE_LIVE ? FIGURE_ALLOC : FIGURE_LIVE,
		FIGURE_PROMOTED,
		FIGURE_YOUNG,
		FIGURE_AGE,
	};
	const size_t n = sizeof(order) / sizeof(order[0]);

	/* The main figure alone, where there is hardly room. */
	take_figure(c, main, 4);
	for (size_t i = 0; i < n; i++) {
		take_figure(c, order[i], c->label_least);
		if (want_intervals || i == 2)
			take_interval(c, want_intervals ? order[i] : main, c->label_least);
	}
	for (int f = 0; f < FIGURES; f++)
		take_figure(c, (enum figure)f, for_more);
	for (size_t i = 0; i < n; i++)
		take_interval(c, order[i], for_intervals);
	for (int f = 0; f < FIGURES; f++)
		take_interval(c, (enum figure)f, for_intervals);
}

static void place(struct columns *c, const struct choice *choice, enum figure f, int *x)
{
	struct column *column = &c->at[c->n];

	if (!choice->figure[f])
		return;
	*x += kinds[f].width;
	*column = (struct column){ .figure = f, .end = *x };
	if (choice->interval[f]) {
		*x += choice->interval_width;
		column->interval_end = *x;
	}
	c->n++;
}

void columns__choose(struct columns *c, int width, enum rows_by by, enum rows_metric metric,
		     bool want_intervals, bool is_utf8)
{
	struct choice choice = { .width = width,
				 .interval_width = 7,
				 .label_least = by == ROWS_BY_STACK ? STACK_LEAST : SITE_LEAST };
	enum figure main = figures__of_metric(metric);
	int x = 0;

	choose(&choice, main, want_intervals);
	c->n = 0;
	c->is_utf8 = is_utf8;
	place(c, &choice, main, &x);
	for (int f = 0; f < FIGURES; f++)
		if (f != (int)main)
			place(c, &choice, (enum figure)f, &x);
	c->label = x ? x + GAP : 0;
}

/* ---- lines ---- */

/* How many columns a text takes that we made ourselves: one for each character. */
static int width_of(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void put_right(struct canvas *canvas, int y, int end, enum look look, const char *text)
{
	canvas__put(canvas, y, end - width_of(text), look, text);
}

void columns__titles(const struct columns *c, struct canvas *canvas, int y, int sort,
		     const char *label)
{
	canvas__paint(canvas, y, LOOK_TITLE);
	for (int i = 0; i < c->n; i++)
		put_right(canvas, y, c->at[i].end,
			  (int)c->at[i].figure == sort ? LOOK_SORTED : LOOK_TITLE,
			  kinds[c->at[i].figure].title);
	canvas__put(canvas, y, c->label, sort == VIEW_SORT_NAME ? LOOK_SORTED : LOOK_TITLE, label);
}

void columns__row(const struct columns *c, struct canvas *canvas, int y,
		  const struct figures *figures, const char *label, enum look look)
{
	char text[VALUE_BYTES];

	if (look == LOOK_SELECTED)
		canvas__paint(canvas, y, look);
	for (int i = 0; i < c->n; i++) {
		const struct column *column = &c->at[i];
		const struct interval *value = &figures->at[column->figure];

		put_right(canvas, y, column->end, look,
			  columns__value(column->figure, value->value, text, sizeof(text)));
		if (column->interval_end)
			put_right(canvas, y, column->interval_end, look,
				  columns__interval(column->figure, value, c->is_utf8, text,
						    sizeof(text)));
	}
	canvas__put(canvas, y, c->label, look, label);
}
