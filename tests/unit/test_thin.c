/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thinning: hs_thin_word, the code that the kernel runs, on random numbers of the
 * test's own. Given the numbers its answer is exact (how many of them are below
 * p); on uniform numbers it is Binomial(n, p), by chi-square tests that a right
 * program passes with probability > 0.999999 and, since the seeds are fixed, always.
 */
#include "tests/unit/records_make.h"

#include <math.h>

static uint32_t next_u32(void);
#define HS_RANDOM_U32() next_u32()
#include "bpf/thin.h"

static uint64_t seed;
static uint64_t n_drawn;

/* Numbers of 32 trials, to be handed out bit by bit from the top; NULL: random ones. */
static const uint32_t *script;

static uint32_t next_u32(void)
{
	uint32_t word = 0;

	n_drawn++;
	if (!script)
		return (uint32_t)(make__random(&seed) >> 32);
	for (int trial = 0; trial < 32; trial++)
		word |= (script[trial] >> (32 - n_drawn) & 1) << trial;
	return word;
}

static uint32_t thin_scripted(const uint32_t numbers[32], uint32_t n, uint64_t p)
{
	uint32_t kept;

	script = numbers;
	n_drawn = 0;
	kept = hs_thin_word(n, p);
	script = NULL;
	assert_true(n_drawn <= 32);
	return kept;
}

static const uint64_t all_p[] = {
	1,          2,          3,          1u << 8,    1u << 24,   (1u << 24) + 1, 0x55555555,
	0x7fffffff, 0x80000000, 0x80000001, 0xaaaaaaaa, 0xc0000000, 0xfffffffe,     0xffffffff,
};

/* Each trial compares its own number with p, and those beyond n do not count. */
static void compares_exactly(void **state)
{
	static const uint32_t all_n[] = { 0, 1, 2, 17, 31, 32 };

	(void)state;
	seed = 1;
	for (size_t i = 0; i < COUNT(all_p); i++) {
		for (int round = 0; round < 2000; round++) {
			uint32_t numbers[32], n = all_n[(size_t)round % COUNT(all_n)], want = 0;

			for (int k = 0; k < 32; k++) {
				uint64_t r = make__random(&seed);

				/* Near p, or anywhere, or at p but for one bit. */
				if (r % 3 == 0)
					numbers[k] = (uint32_t)(all_p[i] + (r >> 8) % 5 - 2);
				else if (r % 3 == 1)
					numbers[k] = (uint32_t)(r >> 32);
				else
					numbers[k] = (uint32_t)all_p[i] ^ 1u << (r >> 8) % 32;
				want += (uint32_t)k < n && numbers[k] < all_p[i];
			}
			assert_int_equal(thin_scripted(numbers, n, all_p[i]), want);
		}
	}
}

static void knows_the_extremes(void **state)
{
	static uint32_t zeros[32], ones[32];

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	for (uint32_t n = 0; n <= 32; n++) {
		for (size_t i = 0; i < COUNT(all_p); i++) {
			assert_int_equal(thin_scripted(zeros, n, all_p[i]), n);
			assert_int_equal(thin_scripted(ones, n, all_p[i]), 0);
		}
		/* Probability 0: not even the number 0 is below. */
		assert_int_equal(thin_scripted(zeros, n, 0), 0);
		/* Probability 1 needs no numbers. */
		assert_int_equal(thin_scripted(ones, n, HS_P_ONE), n);
		assert_int_equal(n_drawn, 0);
		assert_int_equal(thin_scripted(ones, n, HS_P_ONE + 1), n);
		assert_int_equal(thin_scripted(ones, n, UINT64_MAX), n);
	}
}

/* Probability of k out of n. */
static double binomial(uint32_t n, uint32_t k, double p)
{
	double log_choices = lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0);

	return exp(log_choices + k * log(p) + (n - k) * log1p(-p));
}

/* What chi-square with so many degrees of freedom exceeds with probability 2e-7
 * (Wilson and Hilferty: its cube root is nearly normal; 5.1 standard deviations). */
static double chi_square_bound(int degrees)
{
	double v = 2.0 / (9.0 * degrees);

	return degrees * pow(1 - v + 5.1 * sqrt(v), 3);
}

/*
 * Chi-square of n_rounds results against Binomial(n, p). Cells that expect less
 * than 20 are put together with the ones beside them.
 */
static void check_law(uint32_t n, uint64_t p, int n_rounds)
{
	uint64_t seen[33] = { 0 };
	double chi = 0, want = 0, got = 0, left = n_rounds, prob = ldexp((double)p, -32);
	int cells = 0;

	for (int i = 0; i < n_rounds; i++) {
		uint32_t kept = hs_thin_word(n, p);

		assert_true(kept <= n);
		seen[kept]++;
	}
	for (uint32_t k = 0; k <= n; k++) {
		double expected = n_rounds * binomial(n, k, prob);

		want += expected;
		got += (double)seen[k];
		left -= expected;
		if (k < n && (want < 20 || left < 20))
			continue;
		chi += (got - want) * (got - want) / want;
		cells++;
		want = got = 0;
	}
	assert_true(cells >= 2);
	if (chi > chi_square_bound(cells - 1))
		fail_msg("n = %u, p = %.10g: chi-square %.1f in %d cells", n, prob, chi, cells);
}

static void keeps_binomially(void **state)
{
	static const double probabilities[] = { 0.5, 0.75, 0.99999, 0x1p-8, 1.0 / 3, 0.757 };
	static const uint32_t all_n[] = { 1, 2, 3, 31, 32 };

	(void)state;
	seed = 2;
	for (size_t i = 0; i < COUNT(probabilities); i++)
		for (size_t k = 0; k < COUNT(all_n); k++)
			check_law(all_n[k], (uint64_t)round(ldexp(probabilities[i], 32)),
				  all_n[k] < 4 && probabilities[i] > 0.99 ? 2500000 : 200000);
}

/* The two halves of a word, and two words one after the other, are independent:
 * the sum of their results is Binomial too. */
static void keeps_independently(void **state)
{
	const double p = 0.6;
	const int n_rounds = 400000;
	double both = 0, first = 0, second = 0, covariance, deviation;

	(void)state;
	seed = 3;
	for (int i = 0; i < n_rounds; i++) {
		uint32_t a = hs_thin_word(16, (uint64_t)ldexp(p, 32));
		uint32_t b = hs_thin_word(16, (uint64_t)ldexp(p, 32));

		first += a;
		second += b;
		both += a * b;
	}
	covariance = both / n_rounds - first / n_rounds * (second / n_rounds);
	/* Of the product of two independent results about their means. */
	deviation = 16 * p * (1 - p) / sqrt(n_rounds);
	assert_true(fabs(covariance) < 5.1 * deviation);
}

/* Where not one sample in 2^25 is likely to go the unlikely way. */
static void keeps_at_the_borders(void **state)
{
	uint64_t kept = 0, dropped = 0;

	(void)state;
	seed = 4;
	for (int i = 0; i < 1 << 20; i++) {
		kept += hs_thin_word(32, 1);
		dropped += 32 - hs_thin_word(32, HS_P_ONE - 1);
	}
	/* 1/128 each on average. */
	assert_true(kept <= 2);
	assert_true(dropped <= 2);
}

/* As many random words as the header says: so it stops when all is decided. */
static void draws_few_numbers(void **state)
{
	const int n_rounds = 100000;
	const uint64_t p = 0xc1234567;
	double mean;

	(void)state;
	seed = 5;
	n_drawn = 0;
	for (int i = 0; i < n_rounds; i++)
		hs_thin_word(1, p);
	mean = (double)n_drawn / n_rounds;
	assert_true(mean > 1.97 && mean < 2.03);
	n_drawn = 0;
	for (int i = 0; i < n_rounds; i++)
		hs_thin_word(32, p);
	mean = (double)n_drawn / n_rounds;
	assert_true(mean > 5 && mean < 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compares_exactly),     cmocka_unit_test(knows_the_extremes),
		cmocka_unit_test(keeps_binomially),     cmocka_unit_test(keeps_independently),
		cmocka_unit_test(keeps_at_the_borders), cmocka_unit_test(draws_few_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
