/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rates as tiers: powers of two exactly and without thinning, any other rate by
 * the coarsest tier that is fine enough and the share of its samples that gives
 * the rate; what is no rate is refused.
 */
#include "tests/unit/records_make.h"

#include <math.h>

#include "user/attach/attach.h"

static void serves_powers_of_two(void **state)
{
	struct tier_choice t;

	(void)state;
	for (int k = 0; k < SONDE_TIERS; k++) {
		assert_int_equal(tier_choice__make(ldexp(1, -k), &t), 0);
		assert_int_equal(t.tier, k);
		assert_true(t.keep_p == 1ull << 32);
		assert_true(t.rate == ldexp(1, -k));
	}
	/* Beyond the coarsest tier, thinned by powers of two. */
	for (int k = SONDE_TIERS; k <= 56; k++) {
		assert_int_equal(tier_choice__make(ldexp(1, -k), &t), 0);
		assert_int_equal(t.tier, SONDE_TIERS - 1);
		assert_true(t.keep_p == 1ull << (56 - k));
		assert_true(t.rate == ldexp(1, -k));
	}
}

/* What attach.h promises for any rate. */
static void check(double rate)
{
	double error, coarsest = ldexp(1, -(SONDE_TIERS - 1));
	struct tier_choice t;

	if (tier_choice__make(rate, &t))
		fail_msg("refused %.17g", rate);
	assert_in_range(t.tier, 0, SONDE_TIERS - 1);
	assert_in_range(t.keep_p, 1, 1ull << 32);
	assert_true(t.rate == ldexp((double)t.keep_p, -(int)t.tier - 32));

	/* The lowest tier that is not below the rate. */
	assert_true(ldexp(1, -(int)t.tier) >= rate);
	assert_true(t.tier == SONDE_TIERS - 1 || ldexp(1, -(int)t.tier - 1) < rate);

	/* As near as keep_p can be: half a unit of 2^-32. Where the tier fits that is
	 * below 2^-31 of the rate. */
	error = fabs(t.rate - rate);
	assert_true(error <= ldexp(0.5, -(int)t.tier - 32));
	if (rate >= coarsest) {
		assert_true(t.keep_p >= 1ull << 31);
		assert_true(error <= rate * 0x1p-31);
	}
}

static void serves_odd_rates(void **state)
{
	static const double rates[] = { 0.00037, 0.3,         0.9999, 1e-9,   0x1p-24 / 3,
					1.0 / 3, 0.5 + 1e-9,  1e-4,   1e-6,   0x1p-24 * 1.0001,
					0.757,   0x1p-24 * 2, 2.4e-7, 0.0625, 8.0 / 524289 };
	struct tier_choice t;

	(void)state;
	for (size_t i = 0; i < COUNT(rates); i++)
		check(rates[i]);
	/* Just beside the tiers, and the end of the range. */
	for (int k = 0; k < 50; k++) {
		check(nextafter(ldexp(1, -k), 0));
		if (k)
			check(nextafter(ldexp(1, -k), 1));
	}

	assert_int_equal(tier_choice__make(0.00037, &t), 0);
	assert_int_equal(t.tier, 11);
	assert_true(t.keep_p > 1ull << 31 && t.keep_p < 1ull << 32);
	assert_true(t.keep_p == (uint64_t)round(0.00037 * 2048 * 4294967296.0));
	assert_int_equal(tier_choice__make(0.3, &t), 0);
	assert_int_equal(t.tier, 1);
	assert_int_equal(tier_choice__make(0.9999, &t), 0);
	assert_int_equal(t.tier, 0);
	assert_int_equal(tier_choice__make(0x1p-24 / 3, &t), 0);
	assert_int_equal(t.tier, 24);
	assert_int_equal(t.keep_p, 1431655765);
}

static void serves_random_rates(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		double fraction = ldexp((double)(make__random(&seed) >> 11), -53);

		/* From 2^-50 to 1, evenly by their logarithms. */
		check(exp2(-50 * fraction));
	}
}

static void refuses_what_is_no_rate(void **state)
{
	const double bad[] = { 0.0,        -0.0,
			       -1e-3,      -1,
			       NAN,        -NAN,
			       INFINITY,   -INFINITY,
			       1 + 1e-9,   2,
			       1e300,      nextafter(1, 2),
			       0x1p-1022,  nextafter(0, 1),
			       1e-20,      0x1p-57,
			       0x1.ffp-57, 0x1p-100 };
	struct tier_choice t;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (tier_choice__make(bad[i], &t) != -ERANGE)
			fail_msg("accepted %g", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serves_powers_of_two),
		cmocka_unit_test(serves_odd_rates),
		cmocka_unit_test(serves_random_rates),
		cmocka_unit_test(refuses_what_is_no_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
