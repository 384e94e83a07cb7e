/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading what is believed to be nothing in particular; for metrics_view.c and
 * metrics_profiles.c only.
 *
 * In:   JSON of any shape.
 * Out:  numbers that are not negative and sums that do not overflow.
 */
#ifndef HEAPSONDE_METRICS_READ_H
#define HEAPSONDE_METRICS_READ_H

#include "user/daemon/metrics_view.h"

/* A member that is a positive integer, or 0. */
static inline uint64_t metrics_number(const json_t *object, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(object, name));

	return n > 0 ? (uint64_t)n : 0;
}

static inline double metrics_real(const json_t *object, const char *name)
{
	double x = json_number_value(json_object_get(object, name));

	return x > 0 ? x : 0;
}

static inline uint64_t metrics_add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* By how much a counter has grown; not at all, if it began anew. */
static inline uint64_t metrics_growth(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* As metrics_view__update, for the profiles of a snapshot (an array; borrowed). */
int metrics_profiles__update(struct metrics_view *v, const json_t *array);

#endif /* HEAPSONDE_METRICS_READ_H */
