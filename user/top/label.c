/* SPDX-License-Identifier: BSD-2-Clause */
/* See label.h. */
#include "user/top/label.h"

#include <stdio.h>
#include <string.h>

#include "user/top/canvas.h"

#define LABEL_BYTES 1024
/* What stays of a name that is cut, in columns: with less one cannot do anything. */
#define HEAD_LEAST 4

static const char *function_of(const struct hs_location *at)
{
	return at->function ? at->function : FRAME_UNKNOWN;
}

/* The functions that called, behind what is in the text already: the first location. */
static void add_callers(const struct stack *stack, char *text, size_t size)
{
	for (uint32_t i = 0; i < stack->depth; i++)
		for (size_t j = i == 0; j < stack->frames[i].n_locations; j++) {
			size_t n = strlen(text);

			if (n + 8 >= size)
				return;
			snprintf(text + n, size - n, " < %s",
				 function_of(&stack->frames[i].locations[j]));
		}
}

const char *label__whole(const struct row *r, enum rows_by by, char *text, size_t size)
{
	rows__label(r, ROWS_BY_SITE, text, size);
	if (by == ROWS_BY_STACK && r->stack)
		add_callers(r->stack, text, size);
	return text;
}

/* The bytes of text that fit into so many columns; *used: how many columns these take. */
static size_t bytes_within(const char *text, int cols, bool is_utf8, int *used)
{
	const char *at = text, *end = text;
	int width;

	for (*used = 0; canvas__next(&at, is_utf8, &width) && *used + width <= cols; end = at)
		*used += width;
	return (size_t)(end - text);
}

static bool is_within(const char *text, int cols, bool is_utf8)
{
	int used;

	return !text[bytes_within(text, cols, is_utf8, &used)];
}

/* "…:1693" behind as much of whole as there is room for. */
static void cut_middle(const char *whole, const char *line, int cols, bool is_utf8, char *text,
		       size_t size)
{
	const char *dots = is_utf8 ? "\u2026" : "..";
	int room = cols - (is_utf8 ? 1 : 2) - (int)strlen(line), used;

	if (room < HEAD_LEAST)
		snprintf(text, size, "%s", whole);
	else
		snprintf(text, size, "%.*s%s%s", (int)bytes_within(whole, room, is_utf8, &used),
			 whole, dots, line);
}

const char *label__fitted(const struct row *r, enum rows_by by, int cols, bool is_utf8, char *text,
			  size_t size)
{
	char whole[LABEL_BYTES], line[16];

	label__whole(r, by, whole, sizeof(whole));
	if (is_within(whole, cols, is_utf8) || !r->function || !r->line) {
		snprintf(text, size, "%s", whole);
		return text;
	}
	snprintf(line, sizeof(line), ":%u", r->line);
	if (by != ROWS_BY_STACK || !r->stack) {
		cut_middle(whole, line, cols, is_utf8, text, size);
		return text;
	}
	snprintf(text, size, "%s%s", r->function, line);
	add_callers(r->stack, text, size);
	return text;
}
