/* SPDX-License-Identifier: BSD-2-Clause */
/* See lines.h. */
#include "user/top/lines.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/top/columns.h"

/* Stacks shown of a row: the rest is small, and can be had by another order. */
#define STACKS_MAX 100

void lines__clear(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->at[i]);
	free(l->at);
	memset(l, 0, sizeof(*l));
}

int lines__add(struct lines *l, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		char **grown = realloc(l->at, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->at = grown;
		l->room = room;
	}
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	l->at[l->n++] = text;
	return 0;
}

/* ---- help ---- */

int lines__help(struct lines *l)
{
	static const char *const text[] = {
		"Keys",
		"  q            back; in the table: quit     Ctrl-C quits anywhere",
		"  Enter        the selected row in full, with its stacks; Esc: back",
		"  Up Down k j  select a row; PgUp PgDn Home End",
		"  Tab m        allocated, live, promoted",
		"  x            sites, or whole stacks",
		"  i            intervals (95 %) of all figures, or of the first one",
		"  space        pause: the picture stands, the recording goes on",
		"  z            begin the window anew",
		"  + -          twice the rate, half the rate",
		"Sort: the same key again, or r, turns the order round",
		"  a ALLOC/s l LIVE o PROM/s h SHARE p PROM% y YOUNG% g AGE t TOTAL n name",
		"Filter",
		"  /            part of the name of a function anywhere on the stack",
		"  d            a domain, that allocated; nothing: all",
		"  s            source: normal, marshal, custom, map_file, all",
		"  c            no filter",
		"Columns: estimates from samples, headers included; 1 word is 8 bytes",
		"  ALLOC/s      words allocated per second, in the last refreshes",
		"  LIVE         words not known to be dead",
		"  PROM/s       words promoted to the major heap per second",
		"  SHARE        of all rows: of ALLOC/s, LIVE or PROM/s, whichever is first",
		"  PROM%        promoted, of the minor words whose fate is known",
		"  YOUNG%       died in the minor heap, of all words whose first fate is known",
		"  AGE          major cycles lived through, on average, once in the major heap",
		"  TOTAL        words allocated since heapsonde has attached",
		"Blocks allocated before that are invisible, and in no figure.",
	};

	for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
		if (lines__add(l, "%s", text[i]))
			return -ENOMEM;
	return 0;
}

/* ---- a row ---- */

/* "ALLOC/s 12.3M (11.9M-12.8M)" */
static int add_figure(struct lines *l, const struct figures *f, enum figure figure,
		      const char *about)
{
	const struct interval *i = &f->at[figure];
	char value[32], low[32], high[32];

	if (isnan(i->value))
		return lines__add(l, "  %-8s %7s  %-17s  %s", columns__title(figure), "-", "",
				  about);
	columns__value(figure, i->low, low, sizeof(low));
	columns__value(figure, i->high, high, sizeof(high));
	return lines__add(l, "  %-8s %7s  %6s to %-7s  %s", columns__title(figure),
			  columns__value(figure, i->value, value, sizeof(value)), low, high, about);
}

static int add_figures(struct lines *l, const struct figures *f)
{
	static const char *const about[FIGURES] = {
		[FIGURE_ALLOC] = "words/s allocated",
		[FIGURE_LIVE] = "words live",
		[FIGURE_PROMOTE] = "words/s promoted",
		[FIGURE_SHARE] = "of all rows",
		[FIGURE_PROMOTED] = "of minor words were promoted",
		[FIGURE_YOUNG] = "died in the minor heap",
		[FIGURE_AGE] = "major cycles lived, on average",
		[FIGURE_TOTAL] = "words allocated in all",
	};

	for (int i = 0; i < FIGURES; i++)
		if (add_figure(l, f, (enum figure)i, about[i]))
			return -ENOMEM;
	return 0;
}

static int add_frames(struct lines *l, const struct stack *stack)
{
	for (uint32_t i = 0; i < stack->depth; i++)
		for (size_t j = 0; j < stack->frames[i].n_locations; j++) {
			const struct hs_location *at = &stack->frames[i].locations[j];
			int ret;

			if (at->file && at->line)
				ret = lines__add(l, "    %s  %s:%u%s",
						 at->function ? at->function : FRAME_UNKNOWN,
						 at->file, at->line,
						 at->is_inlined ? " (inlined)" : "");
			else
				ret = lines__add(l, "    %s",
						 at->function ? at->function : FRAME_UNKNOWN);
			if (ret)
				return ret;
		}
	return 0;
}

static int add_stack(struct lines *l, const struct model_row *r, size_t number, bool is_utf8)
{
	static const enum figure shown[] = { FIGURE_ALLOC, FIGURE_LIVE, FIGURE_TOTAL };
	char text[3][64], value[32], interval[32];

	for (size_t i = 0; i < 3; i++) {
		const struct interval *f = &r->figures.at[shown[i]];

		columns__value(shown[i], f->value, value, sizeof(value));
		columns__interval(shown[i], f, is_utf8, interval, sizeof(interval));
		snprintf(text[i], sizeof(text[i]), "%s %s", value, interval);
	}
	if (lines__add(l, "Stack %zu: ALLOC/s %s  LIVE %s  TOTAL %s", number, text[0], text[1],
		       text[2]))
		return -ENOMEM;
	if (r->row.stack)
		return add_frames(l, r->row.stack);
	return lines__add(l, "    %s",
			  r->row.is_stack_lost ? "(its record was lost)" : "(no OCaml frame)");
}

int lines__row(struct lines *l, const struct model *m, const struct view *v, bool is_utf8)
{
	char label[1024];
	int ret;

	if (v->selected >= m->rows.n)
		return 0;
	ret = lines__add(
		l, "%s",
		rows__label(&m->rows.at[v->selected].row, ROWS_BY_SITE, label, sizeof(label)));
	if (!ret)
		ret = add_figures(l, &m->rows.at[v->selected].figures);
	for (size_t i = 0; i < m->stacks.n && i < STACKS_MAX && !ret; i++)
		ret = add_stack(l, &m->stacks.at[i], i + 1, is_utf8);
	if (!ret && m->stacks.n > STACKS_MAX)
		ret = lines__add(l, "and %zu stacks more", m->stacks.n - STACKS_MAX);
	return ret;
}
