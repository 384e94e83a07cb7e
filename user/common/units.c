/* SPDX-License-Identifier: BSD-2-Clause */
/* Amounts as people read them; see units.h. */
#include "user/common/units.h"

#include <math.h>
#include <stdio.h>

const char *units__words(double words, char *text, size_t size)
{
	static const char units[] = " kMGTP";
	size_t unit = 0;

	if (words < 0)
		words = 0;
	while (words >= 999.5 && unit < sizeof(units) - 2) {
		words /= 1000;
		unit++;
	}
	snprintf(text, size, unit ? "%.*f%c" : "%.*f", !unit || words >= 99.95 ? 0 : 1, words,
		 units[unit]);
	return text;
}

const char *units__per_second(double events, char *text, size_t size)
{
	if (events >= 99.95)
		return units__words(events, text, size);
	snprintf(text, size, "%.*f", events < 9.995 ? 2 : 1, events > 0 ? events : 0);
	return text;
}

const char *units__rate(double rate, char text[UNITS_RATE_CHARS])
{
	int exponent;

	if (rate > 0 && rate < 1 && frexp(rate, &exponent) == 0.5)
		snprintf(text, UNITS_RATE_CHARS, "2^%d", exponent - 1);
	else
		snprintf(text, UNITS_RATE_CHARS, "%.6g", rate);
	return text;
}
