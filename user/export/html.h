/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A page that shows a capture: flame graph, timeline, sites. docs/html.md.
 *
 * In:   a capture that has been read (user/collect/replay.h), with its heap and timeline.
 * Out:  one HTML file that needs nothing else.
 */
#ifndef HEAPSONDE_HTML_H
#define HEAPSONDE_HTML_H

#include <stdio.h>

#include "user/collect/replay.h"
#include "user/common/error.h"
#include "user/track/rows.h"

enum html_view {
	HTML_VIEW_GRAPH,
	HTML_VIEW_TIMELINE,
};

struct html_options {
	const char *input;       /* the capture's name, for the title; NULL: none; borrowed */
	enum html_view view;     /* what the page begins with; it has both */
	enum rows_metric metric; /* that it shows first */
};

/*
 * Write the page. r: with a settled heap that has a timeline; borrowed. f is borrowed, and
 * checked for errors by the caller. Errors, with a text: -ENOMEM.
 */
int html__write(FILE *f, const struct replay *r, const struct html_options *o,
		struct hs_error *err);

/* The same for `heapsonde timeline --html`: it begins with the timeline, and shows live words. */
int html__timeline(FILE *f, const struct replay *r, const char *input, struct hs_error *err);

#endif /* HEAPSONDE_HTML_H */
