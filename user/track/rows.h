/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampled heap as people look at it: one row for each site, stack, function, domain,
 * source or size.
 *
 * In:   the cells of user/track/heap.h, and a filter.
 * Out:  rows with a label and a tally, sorted.
 */
#ifndef HEAPSONDE_ROWS_H
#define HEAPSONDE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/track/heap.h"

enum rows_by {
	ROWS_BY_SITE,     /* innermost location: function, file, line */
	ROWS_BY_STACK,    /* the whole stack */
	ROWS_BY_FUNCTION, /* innermost function */
	ROWS_BY_DOMAIN,   /* that allocated */
	ROWS_BY_SOURCE,   /* normal, marshal, custom, map_file */
	ROWS_BY_SIZE,     /* size class */
};

/* What rows are sorted by and shares are of: an amount of the tally. */
enum rows_metric {
	ROWS_ALLOC,
	ROWS_LIVE,
	ROWS_PROMOTED,
	ROWS_SURVIVORS,
};

/* All that are set must match. */
struct rows_filter {
	const char *function; /* a substring of some function on the stack, case ignored; NULL */
	int64_t domain;       /* -1: all */
	int source;           /* enum sonde_source; -1: all */
};

/* The one frame of blocks that have none, and what a function without a name is called. */
#define FRAME_NONE "(no OCaml frame)"
#define FRAME_LOST "(stack lost)"
#define FRAME_UNKNOWN "(unknown)"

#define ROWS_FILTER_ALL ((struct rows_filter){ .domain = -1, .source = -1 })

struct row {
	const char *function;      /* by site, stack, function; NULL: unknown. Not owned */
	const char *file;          /* by site, stack; NULL: unknown. Not owned */
	uint32_t line;             /* likewise; 0: unknown */
	const struct stack *stack; /* by stack: it; else one of the row's. NULL: none */
	bool is_stack_lost;        /* all that this row has */
	uint32_t domain;           /* by domain */
	uint8_t source;            /* by source */
	uint8_t size_class;        /* by size */
	struct tally tally;
	struct amount inclusive; /* by function: the metric's amount of all stacks that have it
				  * anywhere, each counted once; else that of the tally */
};

/*
 * Make rows. filter: NULL for all. *out is the caller's (rows__free); names belong to the
 * symbolizer behind h. Returns the number of rows, or -ENOMEM.
 */
long rows__make(struct row **out, const struct heap *h, enum rows_by by, enum rows_metric metric,
		const struct rows_filter *filter);

/*
 * The same from cells of the caller's, with any tallies: what an interval added, say.
 */
long rows__make_of(struct row **out, struct heap_cell *const *cells, size_t n_cells,
		   enum rows_by by, enum rows_metric metric, const struct rows_filter *filter);

/* NULL is fine. */
void rows__free(struct row *rows);

/* The amount of a tally that a metric is about. */
const struct amount *rows__amount(const struct tally *t, enum rows_metric metric);

/* "alloc", "live", … and "site", "stack", …: static strings; and back, or -EINVAL. */
const char *rows__metric_name(enum rows_metric metric);
const char *rows__by_name(enum rows_by by);
int rows__parse_metric(const char *name, enum rows_metric *out);
int rows__parse_by(const char *name, enum rows_by *out);

/*
 * The row as one line of text: "Mod.f  file.ml:12", "domain 3", "normal", "17-32 words".
 * Returns text, always terminated.
 */
const char *rows__label(const struct row *r, enum rows_by by, char *text, size_t size);

#endif /* HEAPSONDE_ROWS_H */
