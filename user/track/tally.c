/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adding up tallies, and what they say; see heap.h.
 *
 * In:   tallies.
 * Out:  their sums, mean ages, size classes.
 */
#include <math.h>

#include "user/track/heap.h"

/* 97.5 % of a normal variable lie below. */
#define Z 1.959963984540054

/* Sizes up to this have a class of their own. */
#define SIZE_EXACT_MAX 32

static void ages__add(struct ages *to, const struct ages *from)
{
	to->dead_words += from->dead_words;
	to->dead_cycles += from->dead_cycles;
	to->dead_squares += from->dead_squares;
	to->live_words += from->live_words;
	to->live_births += from->live_births;
	to->live_squares += from->live_squares;
	to->variance += from->variance;
}

void tally__add(struct tally *to, const struct tally *from)
{
	amount__add(&to->allocated, &from->allocated);
	amount__add(&to->minor, &from->minor);
	amount__add(&to->live, &from->live);
	amount__add(&to->promoted, &from->promoted);
	amount__add(&to->dead_young, &from->dead_young);
	amount__add(&to->dead_old, &from->dead_old);
	amount__add(&to->unknown, &from->unknown);
	amount__add(&to->survivors, &from->survivors);
	amount__add(&to->dead_survivors, &from->dead_survivors);
	amount__add(&to->old_live, &from->old_live);
	ages__add(&to->ages, &from->ages);
	to->n_allocs += from->n_allocs;
	to->n_live += from->n_live;
	if (from->oldest_live_ns &&
	    (!to->oldest_live_ns || from->oldest_live_ns < to->oldest_live_ns))
		to->oldest_live_ns = from->oldest_live_ns;
}

struct interval ages__mean(const struct ages *a, uint64_t n_cycles, const struct amount *missing)
{
	double n = (double)n_cycles, words = a->dead_words + a->live_words;
	double cycles = a->dead_cycles + n * a->live_words - a->live_births;
	double squares =
		a->dead_squares + n * n * a->live_words - 2 * n * a->live_births + a->live_squares;
	double mean, spread, half;
	struct interval i;

	if (words <= 0)
		return (struct interval){ NAN, NAN, NAN };
	mean = cycles / words;
	mean = mean > 0 ? mean : 0;
	spread = squares / words - mean * mean;
	/* As many independent samples as have this variance: words² / variance. */
	half = spread > 0 && a->variance > 0 ? Z * sqrt(spread * a->variance) / words : 0;
	i = (struct interval){ mean, mean > half ? mean - half : 0, mean + half };
	if (missing && missing->words > 0) {
		/* At worst they are all new, or all as old as can be. */
		double more = amount__interval(missing, NULL, 0).high;

		i.low *= words / (words + more);
		i.high = fmax(i.high, (i.high * words + n * more) / (words + more));
	}
	return i;
}

struct amount heap__missing(const struct amount *lost, const struct tally *t, bool is_fate)
{
	struct amount missing = *lost;

	if (is_fate)
		amount__add(&missing, &t->unknown);
	return missing;
}

uint8_t heap__size_class(uint64_t size_words)
{
	if (size_words <= SIZE_EXACT_MAX)
		return (uint8_t)size_words;
	/* 33 … 64 is the first one after those, and so on. */
	return (uint8_t)(SIZE_EXACT_MAX + 64 - __builtin_clzll(size_words - 1) - 5);
}

void heap__size_class_range(uint8_t size_class, uint64_t *low, uint64_t *high)
{
	if (size_class <= SIZE_EXACT_MAX) {
		*low = *high = size_class;
		return;
	}
	*low = (1ull << (size_class - SIZE_EXACT_MAX + 4)) + 1;
	*high = size_class - SIZE_EXACT_MAX + 5 < 64 ? 1ull << (size_class - SIZE_EXACT_MAX + 5)
						     : UINT64_MAX;
}
