/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rows of two sampled heaps side by side, and which differences are more than chance.
 *
 * In:   two heaps (user/track/heap.h), and what their amounts are to be divided by.
 * Out:  pairs, those that matter first.
 */
#ifndef HEAPSONDE_DIFF_PAIRS_H
#define HEAPSONDE_DIFF_PAIRS_H

#include "user/report/report.h"

/* What the amounts are divided by, > 0, and the rates of what was never seen. */
struct diff_exposure {
	double a;
	double b;
	double rate_a;
	double rate_b;
};

struct diff_pair {
	const struct row *row; /* of one side: what the pair is called. NULL for the total */
	struct amount a;
	struct amount b;
	struct amount missing_a; /* what they may lack (amount__interval) */
	struct amount missing_b;
	double difference; /* b/exposure - a/exposure */
	double p;          /* amount__missing_p */
	double p_adjusted; /* for the number of pairs (Holm 1979) */
	bool is_significant;
};

struct diff_pairs {
	struct diff_pair *pairs; /* significant ones first, then by the size of the difference */
	size_t n;
	struct diff_pair total;      /* not adjusted: it is one */
	struct row *rows_a, *rows_b; /* that the pairs point to */
};

/*
 * Of o: by, metric, filter, significance. Rows belong together when they are called the
 * same: a function that has moved to another line is another site. Errors: -ENOMEM.
 */
int diff_pairs__make(struct diff_pairs *d, const struct heap *a, const struct heap *b,
		     const struct report_options *o, const struct diff_exposure *exposure);

/* A zeroed d is fine. */
void diff_pairs__deinit(struct diff_pairs *d);

/* b / a, per exposure; infinite where a is 0; NAN where both are. */
double diff_pair__ratio(const struct diff_pair *p, const struct diff_exposure *exposure);

#endif /* HEAPSONDE_DIFF_PAIRS_H */
