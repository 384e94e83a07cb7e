/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `heapsonde report`, `leaks`, `diff` and `timeline` share: their options, and reading
 * captures.
 *
 * In:   argv.
 * Out:  struct report_options (user/report/report.h); recordings.
 */
#ifndef HEAPSONDE_REPORT_ARGS_H
#define HEAPSONDE_REPORT_ARGS_H

#include <argp.h>
#include <stdbool.h>

#include "user/report/report.h"

#define REPORT_CAPTURES_MAX 2

struct report_args {
	struct report_options options;
	const char *captures[REPORT_CAPTURES_MAX];
	int n_captures;
	int n_wanted;
	bool has_metric;
	bool has_rows;
	/* timeline: */
	bool is_html;
	const char *output; /* NULL: standard output */
	bool force;
};

/* Keys of the options. A command lists those that it has; report_args__parse knows all. */
enum {
	REPORT_BY = 0x300,
	REPORT_METRIC,
	REPORT_AT,
	REPORT_SINCE,
	REPORT_UNTIL,
	REPORT_SURVIVED,
	REPORT_FILTER,
	REPORT_DOMAIN,
	REPORT_SOURCE,
	REPORT_JSON,
	REPORT_PER,
	REPORT_PER_WORD,
	REPORT_SIGNIFICANCE,
	REPORT_STEPS,
	REPORT_HTML,
	REPORT_OUTPUT = 'o',
	REPORT_N = 'n',
};

#define REPORT_OPTION_BY                                                                           \
	{ "by",                                                                                    \
	  REPORT_BY,                                                                               \
	  "KIND",                                                                                  \
	  0,                                                                                       \
	  "A row for each site (default), stack, function, domain, source or size",                \
	  0 }
#define REPORT_OPTION_METRIC                                                                       \
	{ "metric",                                                                                \
	  REPORT_METRIC,                                                                           \
	  "METRIC",                                                                                \
	  0,                                                                                       \
	  "Words of what: alloc (default), live, promoted or survivors",                           \
	  0 }
#define REPORT_OPTION_SURVIVED                                                                     \
	{ "survived",                                                                              \
	  REPORT_SURVIVED,                                                                         \
	  "N",                                                                                     \
	  0,                                                                                       \
	  "Survivors have lived through so many major cycles (default 2)",                         \
	  0 }
#define REPORT_OPTIONS_FILTER                                                                       \
	{ "filter",                                                                                 \
	  REPORT_FILTER,                                                                            \
	  "TEXT",                                                                                   \
	  0,                                                                                        \
	  "Only stacks on which some function's name has TEXT in it, case ignored",                 \
	  0 },                                                                                      \
		{ "domain", REPORT_DOMAIN, "ID", 0, "Only what this domain allocated", 0 },         \
		{ "source", REPORT_SOURCE, "SOURCE", 0, "Only normal, marshal, custom or map_file", \
		  0 }
#define REPORT_OPTION_N                                                                            \
	{ "rows", REPORT_N, "ROWS", 0, "So many rows (default 30, with --json all; 0: all)", 0 }
#define REPORT_OPTION_JSON                                                                         \
	{ "json", REPORT_JSON, NULL, 0, "One JSON document, with exact numbers", 0 }

/* For argp; the input of the parser is a struct report_args. */
error_t report_args__parse(int key, char *arg, struct argp_state *state);

/* Run argp. n_captures: that the command wants. Returns 0, or CLI_EXIT_USAGE after a message. */
int report_args__run(struct report_args *args, const struct argp *argp, int n_captures, int argc,
		     char **argv);

/*
 * Read a capture, with a progress bar. *rec: deinit it in any case. until_s: read up to there
 * only, 0: as the options say. want_timeline: as in struct heap_options. Errors, with a text:
 * those of recording__read.
 */
int report_args__read(const struct report_args *args, const char *path, double until_s,
		      bool want_timeline, struct recording *rec, struct hs_error *err);

#endif /* HEAPSONDE_REPORT_ARGS_H */
