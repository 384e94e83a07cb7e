/* SPDX-License-Identifier: BSD-2-Clause */
/* Estimates and their intervals; see estimate.h. */
#include "user/track/estimate.h"

#include <math.h>

/* 97.5 % of a normal variable lie below. */
#define Z 1.959963984540054

struct amount amount__of(uint64_t n_samples, uint64_t size_words, double rate)
{
	double words = (double)n_samples / rate;

	return (struct amount){ .words = words,
				.variance = words * (1 - rate) / rate,
				.blocks = words / ((double)size_words + 1) };
}

void amount__add(struct amount *a, const struct amount *b)
{
	a->words += b->words;
	a->variance += b->variance;
	a->blocks += b->blocks;
}

static double not_negative(double x)
{
	return x > 0 ? x : 0;
}

void amount__subtract(struct amount *a, const struct amount *b)
{
	a->words = not_negative(a->words - b->words);
	a->variance = not_negative(a->variance - b->variance);
	a->blocks = not_negative(a->blocks - b->blocks);
}

/*
 * Quantile of a chi-squared variable with 2k degrees of freedom, halved: the bound of a
 * Poisson mean (Garwood 1936), by the cube root's near normality (Wilson and Hilferty
 * 1931). Good to 1 % from k = 1 on.
 */
static double gamma_quantile(double k, double z)
{
	double x = 1 - 1 / (9 * k) + z / (3 * sqrt(k));

	return x > 0 ? k * x * x * x : 0;
}

struct interval amount__interval(const struct amount *a, double rate)
{
	struct interval i = { a->words, a->words, a->words };
	double n, words_per_sample;

	if (a->words <= 0) {
		/* -ln 0.025: what a Poisson variable must have as its mean to be 0 that seldom. */
		i = (struct interval){ 0, 0, rate > 0 && rate < 1 ? 3.6888794541139363 / rate : 0 };
		return i;
	}
	if (a->variance <= 0)
		return i;
	/* As many samples of equal weight would have this ratio of mean and variance. Near
	 * rate 1 they are many more than were taken, and the interval as much narrower. */
	n = a->words * a->words / a->variance;
	words_per_sample = a->words / n;
	i.low = gamma_quantile(n, -Z) * words_per_sample;
	i.high = gamma_quantile(n + 1, Z) * words_per_sample;
	return i;
}

struct interval amount__share(const struct amount *part, const struct amount *rest)
{
	double whole = part->words + rest->words, variance = part->variance + rest->variance;
	struct interval i = { NAN, 0, 1 };
	double n, p, centre, half, z2 = Z * Z;

	if (whole <= 0)
		return i;
	p = part->words / whole;
	if (variance <= 0)
		return (struct interval){ p, p, p };
	n = whole * whole / variance;
	centre = (p + z2 / (2 * n)) / (1 + z2 / n);
	half = Z * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n);
	i.value = p;
	i.low = fmin(p, not_negative(centre - half));
	i.high = fmax(p, fmin(1, centre + half));
	return i;
}

/* How many words a sample stands for, by how the amount varies; 0: it does not. */
static double weight(const struct amount *a)
{
	return a->words > 0 ? a->variance / a->words : 0;
}

double amount__same_p(const struct amount *a, double exposure_a, const struct amount *b,
		      double exposure_b)
{
	double words = a->words + b->words, rate_a, rate_b, w_a, w_b, common, spread, distance;

	if (words <= 0 || exposure_a <= 0 || exposure_b <= 0)
		return 1;
	rate_a = a->words / exposure_a;
	rate_b = b->words / exposure_b;
	/* Where nothing was seen, a sample would have stood for as much as the other's. */
	w_a = a->words > 0 ? weight(a) : weight(b);
	w_b = b->words > 0 ? weight(b) : weight(a);
	if (w_a + w_b <= 0)
		return rate_a == rate_b ? 1 : 0;
	/*
	 * The score test of two Poisson rates: the variance is the one that both would have
	 * if they were one process.
	 */
	common = words / (exposure_a + exposure_b);
	spread = sqrt(common * (w_a / exposure_a + w_b / exposure_b));
	/* Half a sample nearer: counts are whole, the normal curve is not. */
	distance =
		not_negative(fabs(rate_a - rate_b) - 0.5 * (w_a / exposure_a + w_b / exposure_b));
	return erfc(distance / spread / M_SQRT2);
}
