/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The picture of `heapsonde top`: header, table or what is over it, last line.
 *
 * In:   facts, model, view.
 * Out:  a canvas; how many lines fit, for the keys.
 */
#ifndef HEAPSONDE_SCREEN_H
#define HEAPSONDE_SCREEN_H

#include "user/top/canvas.h"
#include "user/top/facts.h"
#include "user/top/lines.h"
#include "user/top/model.h"
#include "user/top/view.h"

struct screen {
	const struct facts *facts;
	const struct model *model;
	const struct view *view;
	const struct lines *lines; /* of the help or of the row that is open */
	bool is_rate_auto;         /* top chooses the rate */
	double seconds;            /* since the beginning */
};

/* The lines of the header, as text, whatever the view. */
enum { HEADER_TITLE, HEADER_STATE, HEADER_RATES, HEADER_LIVE, HEADER_VIEW, HEADER_LINES };
const char *screen__header(const struct screen *s, int line, bool is_utf8, char *text, size_t size);

/* "ring_full 12, blocks_full 3"; "" if nothing was lost. Returns text. */
const char *screen__lost(const struct facts *f, char *text, size_t size);

/* What there is to be seen, and how much of it fits a canvas of so many rows. */
struct view_bounds screen__bounds(const struct screen *s, int rows);

/* Draw all of it. */
void screen__draw(const struct screen *s, struct canvas *canvas);

#endif /* HEAPSONDE_SCREEN_H */
