/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the user of `heapsonde top` wants to see, and how his keys change it.
 *
 * In:   keys, one by one; how much there is to be seen.
 * Out:  struct view, which model.c and screen.c go by; wishes for run.c.
 *
 * No terminal and no clock in here: the same keys always give the same view.
 */
#ifndef HEAPSONDE_VIEW_H
#define HEAPSONDE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/top/figures.h"
#include "user/track/rows.h"

/* Keys that are no characters; above all code points. */
enum view_key {
	VIEW_KEY_UP = 0x200000,
	VIEW_KEY_DOWN,
	VIEW_KEY_PAGE_UP,
	VIEW_KEY_PAGE_DOWN,
	VIEW_KEY_HOME,
	VIEW_KEY_END,
	VIEW_KEY_ENTER,
	VIEW_KEY_ESCAPE,
	VIEW_KEY_BACKSPACE,
	VIEW_KEY_BACKTAB,
};

enum view_prompt { PROMPT_NONE, PROMPT_FUNCTION, PROMPT_DOMAIN };

/* Sorted by the name instead of a figure. */
#define VIEW_SORT_NAME FIGURES

#define VIEW_INPUT_BYTES 128

struct view {
	enum rows_by by;         /* ROWS_BY_SITE or ROWS_BY_STACK */
	enum rows_metric metric; /* ROWS_ALLOC, ROWS_LIVE or ROWS_PROMOTED */
	int sort;                /* enum figure, or VIEW_SORT_NAME */
	bool is_reversed;
	char function[VIEW_INPUT_BYTES]; /* filter: part of a function's name; "": all */
	int64_t domain;                  /* filter; -1: all */
	int source;                      /* filter; -1: all */
	bool want_intervals;             /* of all figures, also where it is narrow */
	bool is_paused;
	bool is_help;
	bool is_open;    /* the selected row's stacks are shown */
	size_t selected; /* row */
	size_t top;      /* row that is shown first */
	size_t first;    /* line of the opened row or of the help that is on top */
	enum view_prompt prompt;
	char input[VIEW_INPUT_BYTES];
	const char *remark; /* on the last line until the next key; borrowed, or NULL */
	/* Wishes, for run.c to take back: */
	bool wants_quit;
	bool wants_restart; /* the window */
	int rate_steps;     /* so many times twice the rate; negative: half */
};

/* How much there is to be seen. */
struct view_bounds {
	size_t n_rows;  /* of the table */
	size_t n_lines; /* of the opened row, or of the help; 0: neither */
	size_t page;    /* rows or lines that fit */
};

void view__init(struct view *v, enum rows_by by, enum rows_metric metric);

/* Take in a key: a code point, or one of enum view_key. */
void view__key(struct view *v, const struct view_bounds *b, int key);

/* Bring selected and first within the bounds, after these have changed. */
void view__settle(struct view *v, const struct view_bounds *b);

/* The filter, for rows__make; it refers to *v. */
struct rows_filter view__filter(const struct view *v);

/* Is anything filtered out? */
bool view__is_filtered(const struct view *v);

/* The key that sorts by a figure, or by VIEW_SORT_NAME. */
char view__sort_key(int sort);

#endif /* HEAPSONDE_VIEW_H */
