/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A screen in memory: what is to be seen, whatever the terminal.
 *
 * In:   UTF-8 text of any origin, cut at the edges.
 * Out:  characters with their looks, for terminal.c; nothing in it is a control
 *       character.
 */
#ifndef HEAPSONDE_CANVAS_H
#define HEAPSONDE_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <wchar.h>

enum look {
	LOOK_PLAIN,
	LOOK_STRONG,   /* figures of the header */
	LOOK_TITLE,    /* the line above the columns */
	LOOK_SORTED,   /* in it, the column that is sorted by */
	LOOK_SELECTED, /* the row that is selected */
	LOOK_ALERT,    /* something was lost */
	LOOK_FAINT,    /* remarks, keys */
};

struct canvas_cell {
	wchar_t c; /* 0: the right half of a wide character */
	unsigned char look;
};

struct canvas {
	int rows, cols;
	bool is_utf8; /* else all that is not ASCII becomes a question mark */
	struct canvas_cell *cells;
};

/* More would be no terminal's. */
#define CANVAS_ROWS_MAX 1000
#define CANVAS_COLS_MAX 2000

/*
 * Make a blank screen, of at least 1 × 1 and at most the maxima. *c must be zeroed or
 * have been sized before. Errors: -ENOMEM, and then it has no rows.
 */
int canvas__resize(struct canvas *c, int rows, int cols, bool is_utf8);

/* All blank and plain. */
void canvas__clear(struct canvas *c);

/*
 * Put text at row y, column x; what is outside is left out. Returns the column behind
 * it, as if nothing had been left out on the right.
 */
int canvas__put(struct canvas *c, int y, int x, enum look look, const char *text);

/* The same, as printf does; at most 1023 bytes. */
int canvas__printf(struct canvas *c, int y, int x, enum look look, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* All of row y looks so. */
void canvas__paint(struct canvas *c, int y, enum look look);

/* Row y as UTF-8 without blanks at its end, for tests and plain output. Returns text. */
const char *canvas__text(const struct canvas *c, int y, char *text, size_t size);

void canvas__deinit(struct canvas *c);

/*
 * The next character of UTF-8 text, fit to be shown, and its width in columns (1 or 2);
 * *text moves on. 0 at the end. Malformed bytes and control characters are '?'.
 * Characters without width are skipped.
 */
wchar_t canvas__next(const char **text, bool is_utf8, int *width);

#endif /* HEAPSONDE_CANVAS_H */
