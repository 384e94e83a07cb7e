/* SPDX-License-Identifier: BSD-2-Clause */
/* Estimates and their intervals; see estimate.h. */
#include "user/track/estimate.h"

#include <math.h>
#include <stdbool.h>

/* 97.5 % of a normal variable lie below. */
#define Z 1.959963984540054

struct amount amount__of(uint64_t n_samples, uint64_t size_words, double rate)
{
	double words = (double)n_samples / rate;

	return (struct amount){ .words = words,
				.variance = words * (1 - rate) / rate,
				.blocks = words / ((double)size_words + 1) };
}

static double not_negative(double x)
{
	return x > 0 ? x : 0;
}

/*
 * Quantile of a chi-squared variable with 2k degrees of freedom, halved: the bound of a
 * Poisson mean (Garwood 1936), by the cube root's near normality (Wilson and Hilferty
 * 1931). Good to 1 % from k = 10 on; below, the lower bound comes out too low (by half at
 * k = 1), which errs on the safe side.
 */
static double gamma_quantile(double k, double z)
{
	double x = 1 - 1 / (9 * k) + z / (3 * sqrt(k));

	return x > 0 ? k * x * x * x : 0;
}

static struct interval interval_of(const struct amount *a, double rate)
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

static struct amount with(const struct amount *a, const struct amount *missing)
{
	struct amount sum = *a;

	amount__add(&sum, missing);
	return sum;
}

struct interval amount__interval(const struct amount *a, const struct amount *missing, double rate)
{
	struct interval i = interval_of(a, rate);
	struct amount most;

	if (!missing || missing->words <= 0)
		return i;
	most = with(a, missing);
	i.high = fmax(i.high, interval_of(&most, rate).high);
	return i;
}

static struct interval share_of(const struct amount *part, const struct amount *rest)
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

struct interval amount__share(const struct amount *part, const struct amount *rest,
			      const struct amount *missing)
{
	struct interval i = share_of(part, rest);
	struct amount more;

	if (!missing || missing->words <= 0 || isnan(i.value))
		return i;
	more = with(rest, missing);
	i.low = fmin(i.low, share_of(part, &more).low);
	more = with(part, missing);
	i.high = fmax(i.high, share_of(&more, rest).high);
	return i;
}

/* ---- are two amounts of one process? ---- */

/* Beyond so many samples the normal curve is as good as the exact law, and quicker. */
#define EXACT_SAMPLES_MAX 1e7

/* An amount of which every word was seen counts as so many times as sure as the other. */
#define SURER 1000

/* Words that a sample stands for, by how the amount varies; where none was seen, by the rate;
 * 0: it does not vary; negative: not known. */
static double weight(const struct amount *a, double rate)
{
	if (a->words > 0)
		return a->variance / a->words;
	return rate > 0 ? (1 - rate) / rate : -1;
}

/*
 * The continued fraction of the incomplete beta function, by Lentz's method; converges in
 * some sqrt(a + b) steps for x < (a + 1)/(a + b + 2).
 */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), f;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	f = d;
	for (int m = 1; m < 100000; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		f *= d * (fabs(c) < tiny ? tiny : c);
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		step = d * (fabs(c) < tiny ? tiny : c);
		f *= step;
		if (fabs(step - 1) < 1e-13)
			break;
	}
	return f;
}

/* The regularized incomplete beta function I_x(a, b), for a, b > 0 and 0 < x < 1. */
static double beta_part(double a, double b, double x)
{
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));

	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* P(X >= k) of Binomial(n, p); k and n need not be whole. */
static double binomial_tail(double k, double n, double p)
{
	return k <= 0 ? 1 : beta_part(k, n - k + 1, p);
}

/*
 * Given n samples in all, those of a are Binomial(n, p) if both are one process, whatever
 * that is (Przyborowski and Wilenski 1940). Both sides count, each as the smaller one.
 */
static double exact_p(double n_a, double n_b, double p)
{
	double n = n_a + n_b;

	return fmin(1, 2 * fmin(binomial_tail(n_a, n, p), binomial_tail(n_b, n, 1 - p)));
}

double amount__same_p(const struct amount *a, double exposure_a, double rate_a,
		      const struct amount *b, double exposure_b, double rate_b)
{
	double words = a->words + b->words, w_a, w_b, n_a, n_b, p, n;

	if (words <= 0 || exposure_a <= 0 || exposure_b <= 0)
		return 1;
	w_a = weight(a, rate_a);
	w_b = weight(b, rate_b);
	w_a = w_a < 0 ? w_b : w_a;
	w_b = w_b < 0 ? w_a : w_b;
	if (w_a + w_b <= 0)
		return a->words / exposure_a == b->words / exposure_b ? 1 : 0;
	w_a = fmax(w_a, w_b / SURER);
	w_b = fmax(w_b, w_a / SURER);
	n_a = a->words / w_a;
	n_b = b->words / w_b;
	n = n_a + n_b;
	p = exposure_a / w_a / (exposure_a / w_a + exposure_b / w_b);
	if (n <= EXACT_SAMPLES_MAX && p > 0 && p < 1)
		return exact_p(n_a, n_b, p);
	return erfc(not_negative(fabs(n_a - n * p) - 0.5) / sqrt(2 * n * p * (1 - p)));
}

/*
 * The smaller side could be larger by what it lacks: if it could reach the other there is no
 * evidence, else the nearest it comes is all of it.
 */
double amount__missing_p(const struct amount *a, const struct amount *missing_a, double exposure_a,
			 double rate_a, const struct amount *b, const struct amount *missing_b,
			 double exposure_b, double rate_b)
{
	bool is_a_smaller = a->words / exposure_a < b->words / exposure_b;
	const struct amount *missing = is_a_smaller ? missing_a : missing_b;
	struct amount most;

	if (!missing || missing->words <= 0 || exposure_a <= 0 || exposure_b <= 0)
		return amount__same_p(a, exposure_a, rate_a, b, exposure_b, rate_b);
	most = with(is_a_smaller ? a : b, missing);
	if (is_a_smaller ? most.words / exposure_a >= b->words / exposure_b
			 : most.words / exposure_b >= a->words / exposure_a)
		return 1;
	return is_a_smaller ? amount__same_p(&most, exposure_a, rate_a, b, exposure_b, rate_b)
			    : amount__same_p(a, exposure_a, rate_a, &most, exposure_b, rate_b);
}
