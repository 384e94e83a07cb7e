/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words over time, in a bounded number of steps.
 *
 * In:   amounts that come and go, with their times, not quite in order.
 * Out:  for each step, what was allocated in it, and what lives at its end.
 *
 * Steps begin at 10 ms; when there are more than TIMELINE_STEPS_MAX, neighbours are
 * joined, and a step is twice as long. So memory is fixed, whatever the recording's length.
 */
#ifndef HEAPSONDE_TIMELINE_H
#define HEAPSONDE_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#define TIMELINE_STEPS_MAX 4096

struct timeline_step {
	double allocated_words; /* in this step */
	double promoted_words;  /* in this step */
	double live_words;      /* at its end; >= 0 */
	double live_variance;   /* of live_words, words² */
};

struct timeline;

/* Errors: -ENOMEM. */
int timeline__new(struct timeline **out);

/* NULL is fine. */
void timeline__free(struct timeline *t);

/* Times are CLOCK_MONOTONIC, ns; what is before the first one counts as at the first one. */
void timeline__alloc(struct timeline *t, uint64_t time_ns, double words, double variance,
		     int is_followed);
void timeline__promote(struct timeline *t, uint64_t time_ns, double words);
void timeline__end(struct timeline *t, uint64_t time_ns, double words, double variance);

/*
 * The steps so far, made into *out (the caller's, free()). *begin_ns: of the first step,
 * *step_ns: the length of each. Returns their number, or -ENOMEM.
 */
long timeline__steps(const struct timeline *t, struct timeline_step **out, uint64_t *begin_ns,
		     uint64_t *step_ns);

#endif /* HEAPSONDE_TIMELINE_H */
