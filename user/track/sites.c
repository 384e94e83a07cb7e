/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocation sites as a table; see sites.h. */
#include "user/track/sites.h"

#include <errno.h>

#include "user/common/units.h"
#include "user/track/rows.h"

#define LABEL_MAX_BYTES 4096

static void print_row(FILE *f, const struct tally *t, double total, const char *label)
{
	double words = t->allocated.words;
	char allocated[32], alive[32];

	fprintf(f, "%10s %10s %6.1f%%  %s\n", units__words(words, allocated, 32),
		units__words(t->live.words, alive, 32), total > 0 ? 100.0 * words / total : 0.0,
		label);
}

int sites__print(const struct heap *h, FILE *f, size_t n_max)
{
	const struct tally *all = heap__total(h);
	double total = all->allocated.words;
	char label[LABEL_MAX_BYTES];
	struct row *rows;
	long n = rows__make(&rows, h, ROWS_BY_SITE, ROWS_ALLOC, NULL);

	if (n < 0)
		return (int)n;
	fprintf(f, "%10s %10s %7s  %s\n", "WORDS", "LIVE", "SHARE", "ALLOCATION SITE");
	for (long i = 0; i < n && (size_t)i < n_max; i++)
		print_row(f, &rows[i].tally, total,
			  rows__label(&rows[i], ROWS_BY_SITE, label, sizeof(label)));
	rows__free(rows);
	snprintf(label, sizeof(label), "all %ld sites", n);
	print_row(f, all, total, label);
	if (all->unknown.words > 0)
		fprintf(f, "%10s words were not followed and count as neither live nor dead\n",
			units__words(all->unknown.words, label, 32));
	fputs("LIVE is of blocks allocated since attaching: older ones are not known\n", f);
	return 0;
}
