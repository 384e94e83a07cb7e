/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rate that `heapsonde top` samples at when nobody has said one.
 *
 * In:   how much the program allocates.
 * Out:  λ, samples per word.
 */
#ifndef HEAPSONDE_RATE_H
#define HEAPSONDE_RATE_H

/*
 * What it begins with: for 65 million words a second just the samples that are wanted.
 */
#define RATE_FIRST 0x1p-16

/* Samples per second that are wanted: 5000 in the window, so that a site with a tenth
 * of all words is known to 9 %. */
#define RATE_SAMPLES_PER_S 1000.0

/* Not finer, so that a program that wakes up is not slowed down for long. */
#define RATE_FINEST 0x1p-14
#define RATE_COARSEST 0x1p-24

/*
 * A better rate than `rate`, a power of two, or 0 if it is good enough: between a quarter
 * of the wanted samples and four times as many.
 */
double rate__better(double rate, double words_per_s);

/* rate · 2^steps, at most 1, and not lowered below 2^-40. */
double rate__stepped(double rate, int steps);

#endif /* HEAPSONDE_RATE_H */
