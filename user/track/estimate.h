/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What samples say of words: sums, and how sure they are.
 *
 * In:   blocks with their n_samples, size and the rate λ in force.
 * Out:  unbiased estimates and their 95 % confidence intervals.
 *
 * Each word, headers included, is a sample with probability λ by itself, so n samples
 * stand for n/λ words, with a variance that n(1-λ)/λ² estimates. At λ = 1 all is exact.
 */
#ifndef HEAPSONDE_ESTIMATE_H
#define HEAPSONDE_ESTIMATE_H

#include <stdint.h>

/* An amount of blocks. Sums of amounts are amounts; zeroed is none. */
struct amount {
	double words;    /* Σ n/λ, headers included */
	double variance; /* of words, in words² */
	double blocks;   /* Σ n/(λ(size+1)): how many blocks these words are */
};

/* low <= value <= high */
struct interval {
	double value;
	double low;
	double high;
};

/* The amount that one sampled block stands for. rate: in (0, 1]. */
struct amount amount__of(uint64_t n_samples, uint64_t size_words, double rate);

/* Here because they are called several times for every record. */
static inline void amount__add(struct amount *a, const struct amount *b)
{
	a->words += b->words;
	a->variance += b->variance;
	a->blocks += b->blocks;
}

/* Take away what was added before. Never below 0; sums of fractions leave a trace. */
static inline void amount__subtract(struct amount *a, const struct amount *b)
{
	a->words = a->words > b->words ? a->words - b->words : 0;
	a->variance = a->variance > b->variance ? a->variance - b->variance : 0;
	a->blocks = a->blocks > b->blocks ? a->blocks - b->blocks : 0;
}

/*
 * The words, with a 95 % interval: that of a Poisson count (Garwood) of words²/variance
 * samples, by the approximation of Wilson and Hilferty. Where no sample has been seen,
 * the upper end is what `rate` would have shown (3.69 samples); rate 0: not known, 0.
 *
 * missing: what was sampled and lost, which may belong to this amount or not, in whole or
 * in part; NULL: nothing. The value and the lower end are as if none did, the upper end is as
 * if all did.
 */
struct interval amount__interval(const struct amount *a, const struct amount *missing, double rate);

/*
 * part / (part + rest), in [0, 1], with its 95 % interval (Wilson's score). Both 0: the
 * value is NAN, the interval [0, 1]. missing: as above; the ends are as if all of it were of
 * the rest, and as if all were of the part.
 */
struct interval amount__share(const struct amount *part, const struct amount *rest,
			      const struct amount *missing);

/*
 * Two-sided p-value of the hypothesis that the same process made both amounts, per unit
 * of exposure (seconds, or words allocated in all; > 0): the exact test of two Poisson
 * rates, given how many samples there are in all. rate: λ that would have shown what has
 * not been seen, as for amount__interval; 0: not known, then that of the other counts.
 * 1: there is no evidence at all. Of lost samples it knows nothing (amount__missing_p).
 */
double amount__same_p(const struct amount *a, double exposure_a, double rate_a,
		      const struct amount *b, double exposure_b, double rate_b);

/*
 * The same where samples were lost: the largest p-value for any part of what is missing on
 * each side that may have belonged to the amounts. NULL: nothing is missing there.
 */
double amount__missing_p(const struct amount *a, const struct amount *missing_a, double exposure_a,
			 double rate_a, const struct amount *b, const struct amount *missing_b,
			 double exposure_b, double rate_b);

#endif /* HEAPSONDE_ESTIMATE_H */
