/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which tier serves a rate; see attach.h.
 *
 * In:   a rate per word.
 * Out:  the coarsest tier that is at least as fine, and the share of its samples
 *       to keep, so that tier rate times share is the rate.
 */
#include "user/attach/attach.h"

#include <errno.h>
#include <math.h>

int tier_choice__make(double rate, struct tier_choice *out)
{
	int exponent;
	unsigned int tier = 0;
	double keep;

	if (!(rate > 0.0) || rate > 1.0)
		return -ERANGE;
	/* rate = m * 2^exponent with m in [1/2, 1): 2^(exponent - 1) <= rate. */
	if (frexp(rate, &exponent) == 0.5)
		exponent--;
	if (exponent < 0)
		tier = (unsigned int)-exponent;
	if (tier > SONDE_TIERS - 1)
		tier = SONDE_TIERS - 1;
	keep = ldexp(rate, (int)tier + 32);
	if (keep < 1.0)
		return -ERANGE;
	keep = round(keep);
	out->tier = tier;
	out->keep_p = (uint64_t)keep;
	out->rate = ldexp(keep, -(int)tier - 32);
	return 0;
}
