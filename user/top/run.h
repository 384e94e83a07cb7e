/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `heapsonde top` from its first picture to its last.
 *
 * In:   what the user wants to see, of which process.
 * Out:  pictures; at the end nothing is attached and the terminal is as it was.
 *
 *   source_*.c    where events come from
 *   facts.c       what the header tells
 *   window.c      what the last seconds added
 *   figures.c     a row's figures
 *   model.c       the rows
 *   view.c        what the user wants to see; keys
 *   label.c, columns.c, header.c, lines.c, screen.c   the picture
 *   canvas.c      a screen in memory
 *   terminal*.c, outlet.c, plain.c           where it is shown
 *   run.c         the loop
 */
#ifndef HEAPSONDE_TOP_RUN_H
#define HEAPSONDE_TOP_RUN_H

#include <stdbool.h>
#include <sys/types.h>

#include "user/common/error.h"
#include "user/profile/profile.h"
#include "user/track/rows.h"

struct top_options {
	pid_t pid;
	const char *socket;  /* of the daemon; NULL: where it is by default */
	bool is_from_daemon; /* else in this process */
	struct profile_options profile;
	bool is_rate_auto;       /* no rate was given: follow the program */
	enum rows_by by;         /* ROWS_BY_SITE, ROWS_BY_STACK */
	enum rows_metric metric; /* ROWS_ALLOC, ROWS_LIVE, ROWS_PROMOTED */
	double delay_s;          /* between refreshes; > 0 */
	double duration_s;       /* 0: without end */
	int n_refreshes;         /* 0: without end */
	int n_rows;              /* of plain tables */
	bool is_plain;           /* no full screen, even if there could be one */
};

/*
 * Returns 0, or a negative errno with a text; the terminal has been restored by then.
 */
int top__run(const struct top_options *o, struct hs_error *err);

#endif /* HEAPSONDE_TOP_RUN_H */
