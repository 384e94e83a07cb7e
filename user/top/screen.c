/* SPDX-License-Identifier: BSD-2-Clause */
/* See screen.h. */
#include "user/top/screen.h"

#include <stdio.h>
#include <string.h>

#include "user/top/columns.h"
#include "user/top/label.h"

#define TEXT_BYTES 1024

/* Where the parts are; rows of the screen. */
struct parts {
	int header[HEADER_LINES]; /* -1: is left out */
	int lost;                 /* likewise */
	int titles;               /* likewise */
	int body, body_rows;
	int last; /* likewise */
};

/* The table goes first, then the state of things, then all else. */
static struct parts place(const struct screen *s, int rows)
{
	/* From how many rows on each line is there. */
	static const int from[HEADER_LINES] = {
		[HEADER_TITLE] = 5, [HEADER_STATE] = 8, [HEADER_RATES] = 7,
		[HEADER_LIVE] = 9,  [HEADER_VIEW] = 10,
	};
	char lost[TEXT_BYTES];
	struct parts p = { .lost = -1, .titles = -1, .last = -1 };
	int y = 0;

	for (int i = 0; i < HEADER_LINES; i++) {
		p.header[i] = rows >= from[i] ? y : -1;
		y += rows >= from[i];
		if (i == HEADER_STATE && rows >= 6 && screen__lost(s->facts, lost, sizeof(lost))[0])
			p.lost = y++;
	}
	if (rows >= 3)
		p.titles = y++;
	if (rows >= 2)
		p.last = rows - 1;
	p.body = y;
	p.body_rows = rows - y - (p.last >= 0);
	return p;
}

static bool is_over(const struct screen *s)
{
	return s->view->is_help || s->view->is_open;
}

struct view_bounds screen__bounds(const struct screen *s, int rows)
{
	struct parts p = place(s, rows);

	return (struct view_bounds){
		.n_rows = s->model->rows.n,
		.n_lines = is_over(s) ? s->lines->n : 0,
		.page = p.body_rows > 0 ? (size_t)p.body_rows : 0,
	};
}

/* ---- drawing ---- */

static void draw_header(const struct screen *s, struct canvas *canvas, const struct parts *p)
{
	char text[TEXT_BYTES];

	for (int i = 0; i < HEADER_LINES; i++)
		if (p->header[i] >= 0)
			canvas__put(canvas, p->header[i], 0,
				    i == HEADER_TITLE                      ? LOOK_STRONG
				    : i == HEADER_LIVE || i == HEADER_VIEW ? LOOK_FAINT
									   : LOOK_PLAIN,
				    screen__header(s, i, canvas->is_utf8, text, sizeof(text)));
	if (p->lost >= 0)
		canvas__printf(canvas, p->lost, 0, LOOK_ALERT, "lost: %s",
			       screen__lost(s->facts, text, sizeof(text)));
}

static void draw_table(const struct screen *s, struct canvas *canvas, const struct parts *p)
{
	const struct model_rows *rows = &s->model->rows;
	const struct view *v = s->view;
	struct columns columns;
	char label[TEXT_BYTES];

	columns__choose(&columns, canvas->cols, v->by, v->metric, v->want_intervals,
			canvas->is_utf8);
	if (p->titles >= 0)
		columns__titles(&columns, canvas, p->titles, v->sort,
				v->by == ROWS_BY_SITE ? "ALLOCATION SITE"
						      : "STACK, innermost first");
	for (int i = 0; i < p->body_rows && v->top + (size_t)i < rows->n; i++) {
		size_t at = v->top + (size_t)i;

		columns__row(&columns, canvas, p->body + i, &rows->at[at].figures,
			     label__fitted(&rows->at[at].row, v->by, canvas->cols - columns.label,
					   canvas->is_utf8, label, sizeof(label)),
			     at == v->selected ? LOOK_SELECTED : LOOK_PLAIN);
	}
	if (!rows->n && p->body_rows > 0)
		canvas__put(canvas, p->body, 0, LOOK_FAINT,
			    view__is_filtered(v) ? "nothing that the filter lets through"
						 : "no samples yet");
}

static void draw_lines(const struct screen *s, struct canvas *canvas, const struct parts *p)
{
	if (p->titles >= 0) {
		canvas__paint(canvas, p->titles, LOOK_TITLE);
		canvas__put(canvas, p->titles, 0, LOOK_TITLE,
			    s->view->is_help ? "HELP" : "ONE ROW IN FULL");
	}
	for (int i = 0; i < p->body_rows && s->view->first + (size_t)i < s->lines->n; i++) {
		const char *text = s->lines->at[s->view->first + (size_t)i];

		canvas__put(canvas, p->body + i, 0, text[0] == ' ' ? LOOK_PLAIN : LOOK_STRONG,
			    text);
	}
}

static size_t last_line(const struct screen *s, const struct parts *p)
{
	size_t last = s->view->first + (p->body_rows > 0 ? (size_t)p->body_rows : 0);

	return last < s->lines->n ? last : s->lines->n;
}

static void draw_last(const struct screen *s, struct canvas *canvas, const struct parts *p)
{
	const struct view *v = s->view;
	int y = p->last;

	if (y < 0)
		return;
	if (v->prompt != PROMPT_NONE)
		canvas__printf(canvas, y, 0, LOOK_STRONG, "%s: %s_",
			       v->prompt == PROMPT_FUNCTION ? "function" : "domain", v->input);
	else if (v->remark)
		canvas__put(canvas, y, 0, LOOK_STRONG, v->remark);
	else if (s->facts->has_ended)
		canvas__printf(canvas, y, 0, LOOK_ALERT, "%s: this is the final state; q quits",
			       s->facts->reason[0] ? s->facts->reason : "ended");
	else if (is_over(s))
		canvas__printf(canvas, y, 0, LOOK_FAINT,
			       "Esc back  Up Down PgUp PgDn scroll  (lines %zu-%zu of %zu)",
			       v->first + (s->lines->n > 0), last_line(s, p), s->lines->n);
	else
		canvas__put(canvas, y, 0, LOOK_FAINT,
			    "? help  q quit  Tab metric  x stacks  / filter  Enter open  space "
			    "pause");
}

void screen__draw(const struct screen *s, struct canvas *canvas)
{
	struct parts p = place(s, canvas->rows);

	canvas__clear(canvas);
	draw_header(s, canvas, &p);
	if (is_over(s))
		draw_lines(s, canvas, &p);
	else
		draw_table(s, canvas, &p);
	draw_last(s, canvas, &p);
}
