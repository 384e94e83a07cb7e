/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The columns of `heapsonde top`: which of them a width has room for, and what stands
 * in them.
 *
 * In:   a width, figures.
 * Out:  lines on a canvas.
 */
#ifndef HEAPSONDE_COLUMNS_H
#define HEAPSONDE_COLUMNS_H

#include <stdbool.h>

#include "user/top/canvas.h"
#include "user/top/figures.h"

struct column {
	enum figure figure;
	int end;          /* the column behind the value */
	int interval_end; /* that behind its interval; 0: is not shown */
};

struct columns {
	struct column at[FIGURES];
	int n;
	int label; /* where the names begin; they go to the edge */
	bool is_utf8;
};

/*
 * Choose for a width. The figure of the metric comes first, then what matters most. by:
 * stacks have longer names than sites. want_intervals: rather fewer figures, each with its
 * interval.
 */
void columns__choose(struct columns *c, int width, enum rows_by by, enum rows_metric metric,
		     bool want_intervals, bool is_utf8);

/* The titles. sort: enum figure, or VIEW_SORT_NAME; label: the title of the names. */
void columns__titles(const struct columns *c, struct canvas *canvas, int y, int sort,
		     const char *label);

/* A row. */
void columns__row(const struct columns *c, struct canvas *canvas, int y,
		  const struct figures *figures, const char *label, enum look look);

/* A title; static string. */
const char *columns__title(int figure);

/* A value as people read it: "12.3M", "15.1%", "0.4"; "-" if it is not known. */
const char *columns__value(enum figure figure, double value, char *text, size_t size);

/*
 * Its interval, in the width of a column: "±4%" of the value, or "<3.7M" where nothing
 * was seen; of shares in points ("±1.2"), of ages in cycles. "" if it is not known.
 */
const char *columns__interval(enum figure figure, const struct interval *i, bool is_utf8,
			      char *text, size_t size);

#endif /* HEAPSONDE_COLUMNS_H */
