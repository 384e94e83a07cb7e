/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines of `heapsonde stat`; see stat.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "user/cli/stat.h"
#include "user/common/error.h"

#define HEADER_EVERY 20 /* lines */

struct hs_counts stat__difference(const struct hs_counts *now, const struct hs_counts *before)
{
	return (struct hs_counts){
		.minor_words = now->minor_words - before->minor_words,
		.promoted_words = now->promoted_words - before->promoted_words,
		.major_words = now->major_words - before->major_words,
		.minor_collections = now->minor_collections - before->minor_collections,
		.major_collections = now->major_collections - before->major_collections,
	};
}

void stat_columns__print(const struct stat_line *line, int *n_lines)
{
	const struct hs_counts *c = &line->added;

	if ((*n_lines)++ % HEADER_EVERY == 0)
		printf("%8s %-10s %14s %14s %14s %8s %8s\n", "DOMAIN", "STATE", "MINOR-WORDS",
		       "PROMOTED-WORDS", "MAJOR-WORDS", "MINOR-GC", "MAJOR-GC");
	/* major_words holds the promoted ones, unless the process lies; a column shows the direct
	 * ones. */
	unsigned long long direct =
		c->major_words > c->promoted_words ? c->major_words - c->promoted_words : 0;

	printf("%8" PRIu32 " %-10s %14llu %14llu %14llu %8llu %8llu\n", line->domain,
	       line->is_terminated ? "terminated" : "alive", c->minor_words, c->promoted_words,
	       direct, c->minor_collections, c->major_collections);
}

int stat_columns__flush(struct hs_error *err)
{
	if (!fflush(stdout))
		return 0;
	return hs_error__set(err, -errno, "cannot write the output: %s", strerror(errno));
}
