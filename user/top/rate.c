/* SPDX-License-Identifier: BSD-2-Clause */
/* See rate.h. */
#include "user/top/rate.h"

#include <math.h>

#define LOWEST 0x1p-40

double rate__better(double rate, double words_per_s)
{
	double ideal = RATE_FINEST;

	if (words_per_s > RATE_SAMPLES_PER_S / RATE_FINEST)
		ideal = exp2(round(log2(RATE_SAMPLES_PER_S / words_per_s)));
	ideal = fmax(ideal, RATE_COARSEST);
	return ideal >= 4 * rate || ideal <= rate / 4 ? ideal : 0;
}

double rate__stepped(double rate, int steps)
{
	/* One that was lower from the beginning does not go up by going down. */
	return fmin(1, fmax(fmin(LOWEST, rate), ldexp(rate, steps)));
}
