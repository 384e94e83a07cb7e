/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folded stacks, for flamegraph.pl, inferno, speedscope and many others.
 *
 * In:   the cells of the sampled heap; one metric.
 * Out:  a line "outermost;…;innermost WORDS" for each stack that has words.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "user/export/ordered.h"
#include "user/export/export.h"

/*
 * A name as readers of the format can take it: ';' divides frames, and the last blank of
 * the line the number. They differ in what else is a blank to them, and some take a number
 * before the last one for a value to compare with: so none is left in names. Control
 * characters are gone already (user/symbolize/text.h).
 */
static void print_name(FILE *f, const char *name)
{
	for (; *name; name++)
		putc(*name == ';' ? ':' : *name == ' ' ? '_' : *name, f);
}

/* From the outermost frame to the innermost, which come the other way round. */
static void print_frames(FILE *f, const struct stack *stack)
{
	bool is_first = true;

	for (uint32_t i = stack->depth; i-- > 0;) {
		const struct stack_frame *frame = &stack->frames[i];

		for (size_t j = frame->n_locations; j-- > 0;) {
			if (!is_first)
				putc(';', f);
			is_first = false;
			print_name(f, ordered__function(&frame->locations[j]));
		}
	}
}

static int folded_write(FILE *f, const struct replay *r, const struct export_options *o,
			struct hs_error *err)
{
	const struct heap_cell **cells = NULL;
	long n = ordered__cells(&cells, r->heap);
	struct tally sum;

	if (n < 0)
		return hs_error__set(err, (int)n, "out of memory");
	for (size_t i = 0, next; i < (size_t)n; i = next) {
		const char *placeholder = ordered__placeholder(cells[i]);
		double words;

		next = ordered__same_stack(cells, (size_t)n, i, &sum);
		words = rint(rows__amount(&sum, o->metric)->words);
		if (!(words >= 1))
			continue;
		if (placeholder)
			fputs(placeholder, f);
		else
			print_frames(f, cells[i]->stack);
		fprintf(f, " %.0f\n", words);
	}
	free(cells);
	return 0;
}

const struct exporter export_folded = {
	.name = "folded",
	.about = "a line for each stack, for flamegraph.pl and inferno",
	.suffix = ".folded",
	.metrics = EXPORT_METRICS_ALL,
	.is_bare = true,
	.write = folded_write,
};
