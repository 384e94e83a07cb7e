/* SPDX-License-Identifier: BSD-2-Clause */
/* See canvas.h. */
#include "user/top/canvas.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int within(int n, int max)
{
	return n < 1 ? 1 : n > max ? max : n;
}

int canvas__resize(struct canvas *c, int rows, int cols, bool is_utf8)
{
	rows = within(rows, CANVAS_ROWS_MAX);
	cols = within(cols, CANVAS_COLS_MAX);
	if (rows != c->rows || cols != c->cols) {
		free(c->cells);
		c->rows = c->cols = 0;
		c->cells = calloc((size_t)rows * (size_t)cols, sizeof(*c->cells));
		if (!c->cells)
			return -ENOMEM;
		c->rows = rows;
		c->cols = cols;
	}
	c->is_utf8 = is_utf8;
	canvas__clear(c);
	return 0;
}

void canvas__clear(struct canvas *c)
{
	for (size_t i = 0; i < (size_t)c->rows * (size_t)c->cols; i++)
		c->cells[i] = (struct canvas_cell){ L' ', LOOK_PLAIN };
}

void canvas__deinit(struct canvas *c)
{
	free(c->cells);
	memset(c, 0, sizeof(*c));
}

/* ---- characters ---- */

/* A code point of well-formed UTF-8, or -1 for a byte that is none; *text moves on. */
static long decode(const unsigned char **text)
{
	static const long least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *t = *text;
	int n = t[0] < 0x80 ? 1 : t[0] < 0xc2 ? 0 : t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : 4;
	long c = n == 1 ? t[0] : t[0] & (0x7f >> n);

	*text += 1;
	if (!n || t[0] > 0xf4)
		return -1;
	for (int i = 1; i < n; i++) {
		if ((t[i] & 0xc0) != 0x80)
			return -1;
		c = c << 6 | (t[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return -1;
	*text += n - 1;
	return c;
}

wchar_t canvas__next(const char **text, bool is_utf8, int *width)
{
	for (;;) {
		long c;

		if (!**text)
			return 0;
		c = decode((const unsigned char **)text);
		*width = 1;
		if (c >= ' ' && c < 0x7f)
			return (wchar_t)c;
		if (c < 0xa0 || !is_utf8)
			return L'?';
		*width = wcwidth((wchar_t)c);
		if (*width > 0)
			return (wchar_t)c;
		/* Not in this locale, or a mark on the character before. */
		if (*width < 0) {
			*width = 1;
			return L'?';
		}
	}
}

/* ---- writing ---- */

static void put_cell(struct canvas *c, int y, int x, enum look look, wchar_t character)
{
	if (y < 0 || y >= c->rows || x < 0 || x >= c->cols)
		return;
	c->cells[(size_t)y * (size_t)c->cols + (size_t)x] =
		(struct canvas_cell){ character, (unsigned char)look };
}

static int put_wide(struct canvas *c, int y, int x, enum look look, wchar_t character, int width)
{
	/* Half of a character cannot be shown. */
	if (width == 2 && x + 1 >= c->cols) {
		put_cell(c, y, x, look, L' ');
	} else {
		put_cell(c, y, x, look, character);
		if (width == 2)
			put_cell(c, y, x + 1, look, 0);
	}
	return x + width;
}

int canvas__put(struct canvas *c, int y, int x, enum look look, const char *text)
{
	wchar_t character;
	int width;

	for (;;) {
		character = canvas__next(&text, c->is_utf8, &width);
		if (!character)
			return x;
		x = put_wide(c, y, x, look, character, width);
	}
}

int canvas__printf(struct canvas *c, int y, int x, enum look look, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return canvas__put(c, y, x, look, text);
}

void canvas__paint(struct canvas *c, int y, enum look look)
{
	if (y < 0 || y >= c->rows)
		return;
	for (int x = 0; x < c->cols; x++)
		c->cells[(size_t)y * (size_t)c->cols + (size_t)x].look = (unsigned char)look;
}

/* ---- reading ---- */

static size_t encode(char *to, wchar_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

const char *canvas__text(const struct canvas *c, int y, char *text, size_t size)
{
	size_t n = 0, end = 0;

	for (int x = 0; y >= 0 && y < c->rows && x < c->cols && n + 5 <= size; x++) {
		wchar_t character = c->cells[(size_t)y * (size_t)c->cols + (size_t)x].c;

		if (!character)
			continue;
		n += encode(text + n, character);
		if (character != L' ')
			end = n;
	}
	text[end] = '\0';
	return text;
}
