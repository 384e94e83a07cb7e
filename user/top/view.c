/* SPDX-License-Identifier: BSD-2-Clause */
/* See view.h. */
#include "user/top/view.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/abi.h"

static const char sort_keys[FIGURES + 1] = {
	[FIGURE_ALLOC] = 'a', [FIGURE_LIVE] = 'l',     [FIGURE_PROMOTE] = 'o',
	[FIGURE_SHARE] = 'h', [FIGURE_PROMOTED] = 'p', [FIGURE_YOUNG] = 'y',
	[FIGURE_AGE] = 'g',   [FIGURE_TOTAL] = 't',    [VIEW_SORT_NAME] = 'n',
};

char view__sort_key(int sort)
{
	return sort >= 0 && sort <= FIGURES ? sort_keys[sort] : 0;
}

static void set_metric(struct view *v, enum rows_metric metric)
{
	v->metric = metric;
	v->sort = (int)figures__of_metric(metric);
	v->is_reversed = false;
}

void view__init(struct view *v, enum rows_by by, enum rows_metric metric)
{
	memset(v, 0, sizeof(*v));
	v->by = by;
	v->domain = -1;
	v->source = -1;
	set_metric(v, metric);
}

struct rows_filter view__filter(const struct view *v)
{
	return (struct rows_filter){ .function = v->function[0] ? v->function : NULL,
				     .domain = v->domain,
				     .source = v->source };
}

bool view__is_filtered(const struct view *v)
{
	return v->function[0] || v->domain >= 0 || v->source >= 0;
}

/* ---- moving about ---- */

static size_t at_most(size_t n, size_t max)
{
	return n < max ? n : max;
}

void view__settle(struct view *v, const struct view_bounds *b)
{
	size_t page = b->page ? b->page : 1;

	v->selected = at_most(v->selected, b->n_rows ? b->n_rows - 1 : 0);
	v->first = at_most(v->first, b->n_lines > page ? b->n_lines - page : 0);
	if (v->top > v->selected)
		v->top = v->selected;
	if (v->selected >= v->top + page)
		v->top = v->selected - page + 1;
	v->top = at_most(v->top, b->n_rows > page ? b->n_rows - page : 0);
}

/* Move n of `count` by a key; false: the key is none that moves. */
static bool move(size_t *n, size_t count, size_t page, int key)
{
	size_t last = count ? count - 1 : 0;

	page = page ? page : 1;
	switch (key) {
	case VIEW_KEY_UP:
	case 'k':
		*n -= *n > 0;
		return true;
	case VIEW_KEY_DOWN:
	case 'j':
		*n = at_most(*n + 1, last);
		return true;
	case VIEW_KEY_PAGE_UP:
		*n -= at_most(*n, page);
		return true;
	case VIEW_KEY_PAGE_DOWN:
		*n = at_most(*n + page, last);
		return true;
	case VIEW_KEY_HOME:
		*n = 0;
		return true;
	case VIEW_KEY_END:
		*n = last;
		return true;
	default:
		return false;
	}
}

/* ---- the prompt ---- */

static void ask(struct view *v, enum view_prompt prompt)
{
	v->prompt = prompt;
	v->input[0] = '\0';
}

static void take_answer(struct view *v)
{
	char *end;
	unsigned long long n;

	if (v->prompt == PROMPT_FUNCTION) {
		memcpy(v->function, v->input, sizeof(v->function));
	} else if (!v->input[0]) {
		v->domain = -1;
	} else {
		n = strtoull(v->input, &end, 10);
		if (*end || v->input[0] < '0' || v->input[0] > '9' || n >= UINT32_MAX)
			v->remark = "a domain is a number (Domain.id)";
		else
			v->domain = (int64_t)n;
	}
	v->prompt = PROMPT_NONE;
	v->selected = 0;
}

/* A code point at the end of the input, as UTF-8, if there is room. */
static void type(struct view *v, int key)
{
	size_t n = strlen(v->input);
	char utf8[4];
	size_t len = 1;

	if (key < 0x80) {
		utf8[0] = (char)key;
	} else if (key < 0x800) {
		utf8[0] = (char)(0xc0 | key >> 6);
		utf8[1] = (char)(0x80 | (key & 0x3f));
		len = 2;
	} else if (key < 0x10000) {
		utf8[0] = (char)(0xe0 | key >> 12);
		utf8[1] = (char)(0x80 | (key >> 6 & 0x3f));
		utf8[2] = (char)(0x80 | (key & 0x3f));
		len = 3;
	} else {
		return;
	}
	if (n + len >= sizeof(v->input))
		return;
	memcpy(v->input + n, utf8, len);
	v->input[n + len] = '\0';
}

static void rub_out(struct view *v)
{
	size_t n = strlen(v->input);

	while (n && ((unsigned char)v->input[n - 1] & 0xc0) == 0x80)
		n--;
	v->input[n ? n - 1 : 0] = '\0';
}

static void prompt_key(struct view *v, int key)
{
	switch (key) {
	case VIEW_KEY_ENTER:
		take_answer(v);
		return;
	case VIEW_KEY_ESCAPE:
		v->prompt = PROMPT_NONE;
		return;
	case VIEW_KEY_BACKSPACE:
		rub_out(v);
		return;
	case 'U' - '@': /* as at a terminal: all of it */
		v->input[0] = '\0';
		return;
	default:
		if (key >= ' ' && key < 0x110000 && key != 0x7f && !(key >= 0x80 && key < 0xa0))
			type(v, key);
	}
}

/* ---- all other keys ---- */

static void next_metric(struct view *v, int direction)
{
	static const enum rows_metric order[] = { ROWS_ALLOC, ROWS_LIVE, ROWS_PROMOTED };
	int at = 0;

	for (int i = 0; i < 3; i++)
		if (order[i] == v->metric)
			at = i;
	set_metric(v, order[(at + 3 + direction) % 3]);
	v->selected = 0;
}

static void next_source(struct view *v)
{
	v->source = v->source >= SONDE_SRC_MAP_FILE ? -1 : v->source + 1;
	v->selected = 0;
}

static bool sort_key(struct view *v, int key)
{
	for (int i = 0; i <= FIGURES; i++) {
		if (sort_keys[i] != key)
			continue;
		v->is_reversed = v->sort == i && !v->is_reversed;
		v->sort = i;
		v->selected = 0;
		return true;
	}
	return false;
}

static void clear_filter(struct view *v)
{
	v->function[0] = '\0';
	v->domain = -1;
	v->source = -1;
	v->selected = 0;
}

/* What is shown over the table goes; false: there was nothing. */
static bool go_back(struct view *v)
{
	if (v->is_help)
		v->is_help = false;
	else if (v->is_open)
		v->is_open = false;
	else
		return false;
	v->first = 0;
	return true;
}

static void open_row(struct view *v, const struct view_bounds *b)
{
	if (v->is_help || v->is_open || !b->n_rows)
		return;
	v->is_open = true;
	v->first = 0;
}

/* Keys that change which rows there are, or their order. */
static bool table_key(struct view *v, int key)
{
	switch (key) {
	case '\t':
	case 'm':
		next_metric(v, 1);
		return true;
	case VIEW_KEY_BACKTAB:
		next_metric(v, -1);
		return true;
	case 'x':
		v->by = v->by == ROWS_BY_SITE ? ROWS_BY_STACK : ROWS_BY_SITE;
		v->selected = 0;
		v->is_open = false;
		return true;
	case 'r':
		v->is_reversed = !v->is_reversed;
		v->selected = 0;
		return true;
	case 's':
		next_source(v);
		return true;
	case 'c':
		clear_filter(v);
		return true;
	case '/':
		ask(v, PROMPT_FUNCTION);
		return true;
	case 'd':
		ask(v, PROMPT_DOMAIN);
		return true;
	default:
		return sort_key(v, key);
	}
}

static void other_key(struct view *v, const struct view_bounds *b, int key)
{
	switch (key) {
	case 'q':
		v->wants_quit = !go_back(v);
		return;
	case VIEW_KEY_ESCAPE:
		go_back(v);
		return;
	case VIEW_KEY_ENTER:
		open_row(v, b);
		return;
	case '?':
		v->is_help = !v->is_help;
		v->first = 0;
		return;
	case ' ':
		v->is_paused = !v->is_paused;
		return;
	case 'i':
		v->want_intervals = !v->want_intervals;
		return;
	case 'z':
		v->wants_restart = true;
		return;
	case '+':
		v->rate_steps++;
		return;
	case '-':
		v->rate_steps--;
		return;
	default:
		v->remark = "no such key; ? lists them";
	}
}

void view__key(struct view *v, const struct view_bounds *b, int key)
{
	bool is_over = v->is_help || v->is_open, was_open = v->is_open;
	size_t selected = v->selected;

	v->remark = NULL;
	if (v->prompt != PROMPT_NONE)
		prompt_key(v, key);
	else if (!move(is_over ? &v->first : &v->selected, is_over ? b->n_lines : b->n_rows,
		       b->page, key) &&
		 (v->is_help || !table_key(v, key)))
		other_key(v, b, key);
	/* Another order or filter leaves the row open that is. */
	if (was_open && v->is_open)
		v->selected = selected;
	view__settle(v, b);
}
