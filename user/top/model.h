/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rows of `heapsonde top`: which, in which order, with which figures.
 *
 * In:   the sampled heap, what a refresh ago was of it (window.h), the view.
 * Out:  struct model_row, sorted; the sums over all of them; the stacks of one.
 */
#ifndef HEAPSONDE_MODEL_H
#define HEAPSONDE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "user/top/facts.h"
#include "user/top/figures.h"
#include "user/top/view.h"
#include "user/top/window.h"
#include "user/track/heap.h"
#include "user/track/rows.h"

struct model_row {
	struct row row;
	struct figures figures;
};

struct model_rows {
	struct model_row *at;
	size_t n;
	struct figures all; /* of all of them together */
};

struct model {
	const struct heap *heap; /* borrowed; NULL: nothing yet */
	struct window window;
	double rate;              /* in force, samples per word */
	struct model_rows rows;   /* of the table */
	struct model_rows stacks; /* of the row that is open */
};

/* A zeroed model is empty. */
void model__deinit(struct model *m);

/* One refresh: what the sampled heap is now. now_ns: CLOCK_MONOTONIC. Errors: -ENOMEM. */
int model__step(struct model *m, const struct facts *facts, uint64_t now_ns);

/*
 * Make the rows that the view wants, and the stacks of the selected one if it is open.
 * A row that was selected, but the first one, stays selected wherever it goes.
 * Errors: -ENOMEM; then the rows are as before.
 */
int model__make(struct model *m, struct view *view);

#endif /* HEAPSONDE_MODEL_H */
