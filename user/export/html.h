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

/* What the page begins with; it has both. */
enum html_view {
	HTML_VIEW_GRAPH,
	HTML_VIEW_TIMELINE,
};

/*
 * Write the page. r: with a settled heap that has a timeline; borrowed. input: the
 * capture's name, for the title; NULL: none. f is borrowed and flushed. Errors, with a
 * text: -ENOMEM, those of write(2).
 */
int html__write(FILE *f, const struct replay *r, const char *input, enum html_view view,
		struct hs_error *err);

#endif /* HEAPSONDE_HTML_H */
