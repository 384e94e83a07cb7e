/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reports of `heapsonde report`, `leaks`, `diff` and `timeline`; docs/reports.md has
 * what they show and the formulas.
 *
 * In:   recordings that have been read (recording.h), with the options that were given.
 * Out:  a table for people on stdout, or a JSON document.
 *
 * Each function returns 0 or, with a text, -ENOMEM or -ENODATA (the capture does not
 * have what is asked for). Whether everything could be written is the caller's to check.
 */
#ifndef HEAPSONDE_REPORT_H
#define HEAPSONDE_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/common/error.h"
#include "user/report/recording.h"
#include "user/track/rows.h"

/* What the amounts of a diff are divided by. */
enum report_per {
	PER_AUTO,   /* PER_RUN for levels (live, survivors) and whole runs, else PER_SECOND */
	PER_RUN,    /* nothing */
	PER_SECOND, /* the time for which each recording sampled */
	PER_WORD    /* the words that each program allocated in that time */
};

struct report_options {
	enum rows_by by;
	enum rows_metric metric;
	struct rows_filter filter;
	size_t n_rows;     /* at most; 0: all */
	uint32_t survived; /* major cycles */
	/* Seconds from the beginning; 0: not given. */
	double at_s;
	double since_s;
	double until_s;
	bool is_json;
	/* diff: */
	enum report_per per;
	double significance; /* family-wise */
	/* timeline: */
	size_t n_steps;
};

int report__rows(const struct recording *rec, const struct report_options *o, struct hs_error *err);

/* The middle of the time in which major cycles ended; 0: there is none. */
uint64_t report__middle_ns(const struct recording *rec);

/* half: the same capture, read up to the middle; NULL: growth is not known. */
int report__leaks(const struct recording *rec, const struct recording *half,
		  const struct report_options *o, struct hs_error *err);

int report__diff(const struct recording *a, const struct recording *b,
		 const struct report_options *o, struct hs_error *err);

/* rec: read with a timeline. */
int report__timeline(const struct recording *rec, const struct report_options *o,
		     struct hs_error *err);

/* ---- what they share ---- */

/* What a table of such rows has for the head of its last column: "ALLOCATION SITE", … */
const char *report__row_head(enum rows_by by);

/* "all 21 sites (6 shown)", "1 site", "no stacks". Returns text. */
const char *report__count(char *text, size_t size, enum rows_by by, size_t n, size_t n_shown);

/* What --domain, --source and --filter leave, as more of a line of the head: "; domain 3". */
void report__print_filter(const struct rows_filter *filter);

/*
 * The document with the same as members "domain", "source" and "filter", each null if not
 * given. NULL is fine, and is what comes of no memory.
 */
json_t *report__filtered(json_t *document, const struct rows_filter *filter);

/* The frames of a stack but for the innermost location, a line each, indented. NULL is fine. */
void report__print_callers(const struct stack *stack);

/* [{"function":…,"file":…,"line":…}, …], innermost first; NULL: no memory. */
json_t *report__frames_json(const struct stack *stack);

/* What a row stands for: "function", "file", "line", "frames", "domain", …; NULL: no memory. */
json_t *report__row_json(const struct row *row, enum rows_by by);

/* {"words":…,"low":…,"high":…,"blocks":…}; missing, rate: as for amount__interval. */
json_t *report__amount_json(const struct amount *a, const struct amount *missing, double rate);

/* Print the document on stdout, and let go of it. 0; -ENOMEM, with a text, if it is NULL. */
int report__print_json(json_t *document, struct hs_error *err);

/* For what no memory was left. Returns -ENOMEM. */
int report__no_memory(struct hs_error *err);

#endif /* HEAPSONDE_REPORT_H */
