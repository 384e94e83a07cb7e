/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Estimates: sums; that 95 % intervals hold the truth about as often, and p-values of equal
 * processes are as small as they say and no more often. Samples are drawn from the binomial
 * law itself, with numbers that are the same in each run: nothing here depends on chance.
 */
#include "tests/unit/records_make.h"

#include <math.h>

#include "user/track/estimate.h"

#define RUNS 20000

static double uniform(uint64_t *seed)
{
	return (double)(make__random(seed) >> 11) * 0x1p-53;
}

/* Binomial(n, p), by its own steps from one success to the next. */
static uint64_t binomial(uint64_t *seed, uint64_t n, double p)
{
	uint64_t hits = 0;
	double at = 0;

	if (p >= 1)
		return n;
	for (;;) {
		at += floor(log1p(-uniform(seed)) / log1p(-p)) + 1;
		if (at > (double)n)
			return hits;
		hits++;
	}
}

/* What is seen of n_blocks blocks of so many words. */
static struct amount sample(uint64_t *seed, uint64_t n_blocks, uint64_t block_words, double rate)
{
	struct amount sum = { 0 };

	/* As the runtime does it: the words of all blocks in one row. Which block a sample
	 * hits matters for .blocks only, of which this has one size. */
	uint64_t hits = binomial(seed, n_blocks * block_words, rate);
	struct amount a = amount__of(hits, block_words - 1, rate);

	if (hits)
		amount__add(&sum, &a);
	return sum;
}

static void is_exact_at_rate_1(void **state)
{
	struct amount a = amount__of(7, 6, 1), b = amount__of(3, 2, 1), zero = { 0 };
	struct interval i;

	(void)state;
	amount__add(&a, &b);
	i = amount__interval(&a, NULL, 1);
	assert_true(i.value == 10 && i.low == 10 && i.high == 10);
	assert_true(a.blocks == 2);
	i = amount__share(&b, &a, NULL);
	assert_true(i.value == 3.0 / 13 && i.low == i.value && i.high == i.value);
	i = amount__interval(&zero, NULL, 1);
	assert_true(i.value == 0 && i.low == 0 && i.high == 0);
	assert_true(amount__same_p(&a, 2, 1, &a, 2, 1) == 1);
	assert_true(amount__same_p(&a, 1, 1, &b, 1, 1) == 0);
	amount__subtract(&a, &b);
	assert_true(a.words == 7 && a.blocks == 1 && a.variance == 0);
	amount__subtract(&a, &(struct amount){ 8, 1, 9 });
	assert_true(a.words == 0 && a.blocks == 0 && a.variance == 0);
}

static void knows_what_it_does_not_know(void **state)
{
	struct amount zero = { 0 }, some = amount__of(5, 1, 0.01);
	struct interval i = amount__interval(&zero, NULL, 0.01);

	(void)state;
	/* Nothing seen: up to 3.69 samples' worth. */
	assert_true(i.value == 0 && i.low == 0 && fabs(i.high - 368.888) < 0.001);
	assert_true(amount__interval(&zero, NULL, 0).high == 0);
	i = amount__share(&zero, &zero, NULL);
	assert_true(isnan(i.value) && i.low == 0 && i.high == 1);
	i = amount__share(&zero, &some, NULL);
	assert_true(i.value == 0 && i.low == 0 && i.high > 0.2 && i.high < 1);
	i = amount__share(&some, &zero, NULL);
	assert_true(i.value == 1 && i.high == 1 && i.low > 0 && i.low < 0.8);
	assert_true(amount__same_p(&zero, 1, 0.1, &zero, 1, 0.1) == 1);
	assert_true(amount__same_p(&some, 0, 1, &some, 1, 1) == 1);
}

/* What was lost may be of the amount or not: the interval holds both, and all between. */
static void holds_what_is_missing(void **state)
{
	const struct amount a = amount__of(10, 0, 0.01), b = amount__of(40, 0, 0.01), zero = { 0 };
	const struct amount lost = amount__of(5, 0, 0.01), both = amount__of(15, 0, 0.01);
	const struct amount exact = amount__of(7, 0, 1), exact_lost = amount__of(3, 0, 1);
	struct interval without = amount__interval(&a, NULL, 0.01);
	struct interval with = amount__interval(&a, &lost, 0.01);
	struct interval all = amount__interval(&both, NULL, 0.01);

	(void)state;
	assert_true(with.value == without.value && with.low == without.low);
	assert_true(with.high == all.high && all.high > without.high);
	with = amount__interval(&exact, &exact_lost, 1);
	assert_true(with.value == 7 && with.low == 7 && with.high == 10);
	/* Of what was never seen all that was lost may be. */
	with = amount__interval(&zero, &lost, 0.01);
	assert_true(with.low == 0 && with.high == amount__interval(&lost, NULL, 0.01).high);
	with = amount__interval(&zero, &zero, 0.01);
	assert_true(with.high == amount__interval(&zero, NULL, 0.01).high);
	with = amount__share(&exact, &exact, &exact_lost);
	assert_true(with.value == 0.5 && with.low == 7.0 / 17 && with.high == 10.0 / 17);
	with = amount__share(&a, &b, &lost);
	without = amount__share(&a, &b, NULL);
	assert_true(with.low < without.low && with.high > without.high);
	with = amount__share(&zero, &zero, &lost);
	assert_true(isnan(with.value) && with.low == 0 && with.high == 1);
}

/* A difference that the losses may be the reason of is none. */
static void losses_are_no_evidence(void **state)
{
	const struct amount a = amount__of(100, 0, 0.01), b = amount__of(200, 0, 0.01);
	const struct amount some = amount__of(30, 0, 0.01), many = amount__of(100, 0, 0.01);
	double p = amount__same_p(&a, 1, 0.01, &b, 1, 0.01);

	(void)state;
	assert_true(p < 1e-6);
	assert_true(amount__missing_p(&a, NULL, 1, 0.01, &b, NULL, 1, 0.01) == p);
	/* That the larger one lacks some makes it no more alike. */
	assert_true(amount__missing_p(&a, NULL, 1, 0.01, &b, &many, 1, 0.01) == p);
	assert_true(amount__missing_p(&b, &many, 1, 0.01, &a, NULL, 1, 0.01) == p);
	assert_true(amount__missing_p(&a, &many, 1, 0.01, &b, NULL, 1, 0.01) == 1);
	assert_true(amount__missing_p(&b, NULL, 1, 0.01, &a, &many, 1, 0.01) == 1);
	assert_true(amount__missing_p(&a, &some, 1, 0.01, &b, NULL, 1, 0.01) > p);
	assert_true(amount__missing_p(&a, &some, 1, 0.01, &b, NULL, 1, 0.01) < 1);
}

/* Of RUNS intervals, as many as 95 % of them, or more, hold the truth; and where the counts
 * are not tiny not many more. Six standard deviations of the number are 0.93 % of RUNS. */
static void covers(uint64_t words, double rate, double least, double most)
{
	uint64_t seed = 1, held = 0;
	double sum = 0;

	for (int run = 0; run < RUNS; run++) {
		const struct amount a = sample(&seed, words, 1, rate);
		const struct interval i = amount__interval(&a, NULL, rate);

		assert_true(i.low <= i.value && i.value <= i.high);
		held += i.low <= (double)words && (double)words <= i.high;
		sum += a.words;
	}
	print_message("%llu words at rate %g: %.2f %% covered\n", (unsigned long long)words, rate,
		      100.0 * (double)held / RUNS);
	assert_true((double)held >= least * RUNS);
	assert_true((double)held <= most * RUNS);
	/* Unbiased: within six standard deviations of the mean of RUNS. */
	assert_true(fabs(sum / RUNS - (double)words) <
		    6 * sqrt((double)words * (1 - rate) / rate / RUNS));
}

static void intervals_hold_the_truth(void **state)
{
	(void)state;
	covers(1000, 0x1p-10, 0.95, 1);        /* 1 sample */
	covers(3000, 0x1p-10, 0.95, 1);        /* 3 */
	covers(10000, 0x1p-10, 0.95, 0.99);    /* 10 */
	covers(100000, 0x1p-10, 0.945, 0.975); /* 100 */
	covers(1000000, 0x1p-10, 0.94, 0.965); /* 1000 */
	covers(1000, 0.25, 0.94, 0.98);
	covers(1000, 0.9, 0.94, 0.985); /* near rate 1 the law is not Poisson's */
}

/* Also for sums of amounts at different rates, whose weights differ. */
static void intervals_hold_across_rates(void **state)
{
	uint64_t seed = 2, held = 0;

	(void)state;
	for (int run = 0; run < RUNS; run++) {
		struct amount a = sample(&seed, 20000, 1, 0x1p-8);
		const struct amount b = sample(&seed, 80000, 1, 0x1p-11);
		struct interval i;

		amount__add(&a, &b);
		i = amount__interval(&a, NULL, 0x1p-11);
		held += i.low <= 100000 && 100000 <= i.high;
	}
	print_message("two rates: %.2f %% covered\n", 100.0 * (double)held / RUNS);
	assert_true((double)held >= 0.94 * RUNS && (double)held <= 0.98 * RUNS);
}

static void shares_hold_the_truth(void **state)
{
	static const double shares[] = { 0.02, 0.3, 0.5, 0.9 };

	(void)state;
	for (size_t s = 0; s < COUNT(shares); s++) {
		uint64_t seed = 3, held = 0, n = 200000, part = (uint64_t)(shares[s] * (double)n);

		for (int run = 0; run < RUNS; run++) {
			const struct amount a = sample(&seed, part, 1, 0x1p-10);
			const struct amount b = sample(&seed, n - part, 1, 0x1p-10);
			const struct interval i = amount__share(&a, &b, NULL);

			held += i.low <= shares[s] && shares[s] <= i.high;
		}
		print_message("share %g: %.2f %% covered\n", shares[s],
			      100.0 * (double)held / RUNS);
		assert_true((double)held >= 0.935 * RUNS && (double)held <= 0.985 * RUNS);
	}
}

/* Two equal processes: p-values below α come with a probability of α at most; and not of
 * much less where there are samples enough, or differences would not be found. */
static void same_p_of_equals(uint64_t words_a, double rate_a, uint64_t words_b, double rate_b,
			     double least_part)
{
	static const double alphas[] = { 0.5, 0.1, 0.05, 0.01, 0.001 };
	uint64_t seed = 4, below[COUNT(alphas)] = { 0 };

	for (int run = 0; run < RUNS; run++) {
		const struct amount a = sample(&seed, words_a, 1, rate_a);
		const struct amount b = sample(&seed, words_b, 1, rate_b);
		double p = amount__same_p(&a, (double)words_a, rate_a, &b, (double)words_b, rate_b);
		double q;

		assert_true(p >= 0 && p <= 1);
		q = amount__same_p(&b, (double)words_b, rate_b, &a, (double)words_a, rate_a);
		assert_true(fabs(p - q) <= 1e-9 * p);
		for (size_t i = 0; i < COUNT(alphas); i++)
			below[i] += p < alphas[i];
	}
	for (size_t i = 0; i < COUNT(alphas); i++) {
		double expected = alphas[i] * RUNS, six = 6 * sqrt(expected * (1 - alphas[i]));

		print_message("p < %g: %llu of %.0f\n", alphas[i], (unsigned long long)below[i],
			      expected);
		assert_true((double)below[i] <= expected + six);
		assert_true((double)below[i] >= least_part * expected - six);
	}
}

static void p_values_of_equals_are_uniform(void **state)
{
	(void)state;
	same_p_of_equals(1000000, 0x1p-10, 1000000, 0x1p-10, 0.8);
	same_p_of_equals(1000000, 0x1p-10, 300000, 0x1p-10, 0.8);
	same_p_of_equals(1000000, 0x1p-10, 1000000, 0x1p-8, 0.8);
	same_p_of_equals(10000, 0x1p-10, 10000, 0x1p-10, 0.2);
	same_p_of_equals(3000, 0x1p-10, 3000, 0x1p-10, 0);
	/* Where exposures or rates are far apart, the few samples decide. */
	same_p_of_equals(3000, 0x1p-10, 300000, 0x1p-10, 0);
	same_p_of_equals(100000, 0x1p-16, 100000, 0x1p-8, 0);
	/* All of one of them was seen. */
	same_p_of_equals(10000, 0x1p-10, 10000, 1, 0.2);
	same_p_of_equals(2000, 0.9, 2000, 0.9, 0.7);
}

/* Against the law, by hand: 2·P(X <= 1) and 2·P(X >= 8), of Binomial(9, 1/2) and
 * Binomial(108, 1/101). */
static void p_values_are_exact(void **state)
{
	const struct amount one = { 1000, 1e6, 1 }, eight = { 8000, 8e6, 8 },
			    hundred = { 1e5, 1e8, 100 }, none = { 0, 0, 0 };

	(void)state;
	assert_true(fabs(amount__same_p(&one, 1, 0, &eight, 1, 0) - 20.0 / 512) < 1e-12);
	assert_true(fabs(amount__same_p(&eight, 1, 0, &hundred, 100, 0) - 2.6998768684794793e-05) <
		    1e-13);
	/* Nothing was seen: 2·2^-8, if it would have been as the other's; nothing at all where
	 * a sample would have stood for a thousand times as much. */
	assert_true(fabs(amount__same_p(&none, 1, 0, &eight, 1, 0) - 2.0 / 256) < 1e-12);
	assert_true(amount__same_p(&none, 1, 1e-6, &eight, 1, 0) == 1);
}

static void p_values_of_unequals_are_small(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (int run = 0; run < 1000; run++) {
		/* 1000 samples and 2000: 18 standard deviations. */
		const struct amount a = sample(&seed, 1000000, 1, 0x1p-10);
		const struct amount b = sample(&seed, 2000000, 1, 0x1p-10);

		assert_true(amount__same_p(&a, 1, 0x1p-10, &b, 1, 0x1p-10) < 1e-20);
	}
}

/* amount.blocks: how many blocks these words are. */
static void estimates_blocks(void **state)
{
	uint64_t seed = 6;
	double blocks = 0;

	(void)state;
	for (int run = 0; run < 1000; run++) {
		const struct amount a = sample(&seed, 1000, 8, 0x1p-6);

		blocks += a.blocks / 1000;
	}
	/* A sample is 8 blocks; 125 in each run; six standard deviations of the mean. */
	assert_true(fabs(blocks - 1000) < 6 * 8 * sqrt(125.0 / 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_exact_at_rate_1),
		cmocka_unit_test(knows_what_it_does_not_know),
		cmocka_unit_test(holds_what_is_missing),
		cmocka_unit_test(losses_are_no_evidence),
		cmocka_unit_test(intervals_hold_the_truth),
		cmocka_unit_test(intervals_hold_across_rates),
		cmocka_unit_test(shares_hold_the_truth),
		cmocka_unit_test(p_values_of_equals_are_uniform),
		cmocka_unit_test(p_values_are_exact),
		cmocka_unit_test(p_values_of_unequals_are_small),
		cmocka_unit_test(estimates_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
