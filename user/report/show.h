/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Estimates, ages and p-values as people read them, and the cells of a table.
 *
 * In:   numbers with their intervals (user/track/estimate.h).
 * Out:  short texts; cells on stdout.
 */
#ifndef HEAPSONDE_SHOW_H
#define HEAPSONDE_SHOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "user/track/estimate.h"

#define SHOW_CHARS 48

/*
 * How sure a number of words is: "±4%" where both sides are much the same, else low and
 * high ("1.2k-9.8k"); "" if it is exact. Returns text.
 */
const char *show__interval(const struct interval *i, char text[SHOW_CHARS]);

/* A share in [0, 1]: "41%", "<1%", "3.1%"; "-" for NAN. Returns text. */
const char *show__share(double share, char text[SHOW_CHARS]);

/* Words that may be negative, with a sign: "+1.2M", "-340", "0". Returns text. */
const char *show__signed_words(double words, char text[SHOW_CHARS]);

/* Seconds: "1.35ms", "250ms", "41.0s", "12.5m", "3.2h", "4.1d". Returns text. */
const char *show__seconds(double seconds, char text[SHOW_CHARS]);

/* A p-value: "0.034", "2e-08", "<1e-99". Returns text. */
const char *show__p(double p, char text[SHOW_CHARS]);

/* Colours: only where stdout is a terminal that knows them and NO_COLOR is unset or empty. */
enum style { STYLE_PLAIN, STYLE_STRONG, STYLE_UP, STYLE_DOWN };
void show__style(enum style style);

/*
 * Print text right-aligned in width columns, and a blank; a character that takes more
 * than one byte counts once. Returns the columns used, for cli__print_last_column.
 */
int show__cell(const char *text, int width);

/* Columns of the terminal on stdout; 0: there is none. */
int show__terminal_columns(void);

/* A number for JSON: an integer where it is one and fits, null for NAN and infinities. */
json_t *show__json(double number);

/* {"value":…,"low":…,"high":…}; NULL: no memory. */
json_t *show__interval_json(const struct interval *i);

#endif /* HEAPSONDE_SHOW_H */
