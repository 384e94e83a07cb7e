/* SPDX-License-Identifier: BSD-2-Clause */
/* See plain.h. */
#include "user/top/plain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "user/top/columns.h"
#include "user/top/label.h"

/* Where there is no edge: room for any name, and for most stacks. */
#define COLS_WITHOUT_EDGE 1000
#define TEXT_BYTES 4096

static int width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return COLS_WITHOUT_EDGE;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
}

/* A line of text, fit to be shown, and blank the canvas for the next. */
static void print_line(struct canvas *c)
{
	char text[TEXT_BYTES];

	puts(canvas__text(c, 0, text, sizeof(text)));
	canvas__clear(c);
}

static void print_text(struct canvas *c, const char *text)
{
	canvas__put(c, 0, 0, LOOK_PLAIN, text);
	print_line(c);
}

static void print_time(struct canvas *c)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[64];

	strftime(text, sizeof(text), "--- %Y-%m-%dT%H:%M:%S%z", localtime_r(&now, &tm));
	print_text(c, text);
}

static void print_header(const struct screen *s, struct canvas *c)
{
	char text[1024], lost[1024];

	print_time(c);
	for (int i = 0; i < HEADER_LINES; i++)
		print_text(c, screen__header(s, i, c->is_utf8, text, sizeof(text)));
	if (screen__lost(s->facts, lost, sizeof(lost))[0]) {
		snprintf(text, sizeof(text), "lost: %.1000s", lost);
		print_text(c, text);
	}
	if (s->facts->has_ended) {
		snprintf(text, sizeof(text), "ended: %s", s->facts->reason);
		print_text(c, text);
	}
}

static void print_rows(const struct screen *s, struct canvas *c, int n_rows)
{
	const struct model_rows *rows = &s->model->rows;
	const struct view *v = s->view;
	struct columns columns;
	char label[1024];

	columns__choose(&columns, c->cols, v->by, v->metric, v->want_intervals, c->is_utf8);
	columns__titles(&columns, c, 0, v->sort,
			v->by == ROWS_BY_SITE ? "ALLOCATION SITE" : "STACK, innermost first");
	print_line(c);
	for (size_t i = 0; i < rows->n && i < (size_t)n_rows; i++) {
		columns__row(&columns, c, 0, &rows->at[i].figures,
			     label__fitted(&rows->at[i].row, v->by, c->cols - columns.label,
					   c->is_utf8, label, sizeof(label)),
			     LOOK_PLAIN);
		print_line(c);
	}
	snprintf(label, sizeof(label), "all %zu", rows->n);
	columns__row(&columns, c, 0, &rows->all, label, LOOK_PLAIN);
	print_line(c);
}

int plain__print(const struct screen *s, int n_rows, bool is_utf8, struct hs_error *err)
{
	struct canvas c = { 0 };

	if (canvas__resize(&c, 1, width(), is_utf8))
		return hs_error__set(err, -ENOMEM, "out of memory");
	print_header(s, &c);
	print_rows(s, &c, n_rows);
	canvas__deinit(&c);
	if (fflush(stdout))
		return hs_error__set(err, -errno, "cannot write the output: %s", strerror(errno));
	return 0;
}
