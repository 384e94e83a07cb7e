/* SPDX-License-Identifier: BSD-2-Clause */
/* Words over time; see timeline.h. */
#include "user/track/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEP_NS_FIRST 10000000u

/* What changes in a step; what lives is the sum of all changes up to it. */
struct change {
	double allocated_words;
	double promoted_words;
	double live_words;
	double live_variance;
};

struct timeline {
	uint64_t begin_ns; /* 0: nothing yet */
	uint64_t step_ns;
	size_t n_steps;
	struct change steps[TIMELINE_STEPS_MAX];
};

int timeline__new(struct timeline **out)
{
	struct timeline *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->step_ns = STEP_NS_FIRST;
	*out = t;
	return 0;
}

void timeline__free(struct timeline *t)
{
	free(t);
}

static void join(struct timeline *t)
{
	size_t half = TIMELINE_STEPS_MAX / 2;

	for (size_t i = 0; i < half; i++) {
		const struct change *a = &t->steps[2 * i], *b = a + 1;

		t->steps[i] = (struct change){
			.allocated_words = a->allocated_words + b->allocated_words,
			.promoted_words = a->promoted_words + b->promoted_words,
			.live_words = a->live_words + b->live_words,
			.live_variance = a->live_variance + b->live_variance,
		};
	}
	memset(t->steps + half, 0, half * sizeof(t->steps[0]));
	t->n_steps = (t->n_steps + 1) / 2;
	t->step_ns *= 2;
}

static struct change *step_of(struct timeline *t, uint64_t time_ns)
{
	uint64_t since, i;

	if (!t->begin_ns)
		t->begin_ns = time_ns ? time_ns : 1;
	since = time_ns > t->begin_ns ? time_ns - t->begin_ns : 0;
	/* Times are at most 2^63 - 1 (user/decode), so this ends. */
	while (since / t->step_ns >= TIMELINE_STEPS_MAX)
		join(t);
	i = since / t->step_ns;
	if (i >= t->n_steps)
		t->n_steps = i + 1;
	return &t->steps[i];
}

void timeline__alloc(struct timeline *t, uint64_t time_ns, double words, double variance,
		     int is_followed)
{
	struct change *c = step_of(t, time_ns);

	c->allocated_words += words;
	if (!is_followed)
		return;
	c->live_words += words;
	c->live_variance += variance;
}

void timeline__promote(struct timeline *t, uint64_t time_ns, double words)
{
	step_of(t, time_ns)->promoted_words += words;
}

void timeline__end(struct timeline *t, uint64_t time_ns, double words, double variance)
{
	struct change *c = step_of(t, time_ns);

	c->live_words -= words;
	c->live_variance -= variance;
}

long timeline__steps(const struct timeline *t, struct timeline_step **out, uint64_t *begin_ns,
		     uint64_t *step_ns)
{
	struct timeline_step *steps = calloc(t->n_steps ? t->n_steps : 1, sizeof(*steps));
	double words = 0, variance = 0;

	if (!steps)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_steps; i++) {
		const struct change *c = &t->steps[i];

		words += c->live_words;
		variance += c->live_variance;
		steps[i] = (struct timeline_step){
			.allocated_words = c->allocated_words,
			.promoted_words = c->promoted_words,
			/* A late record, and what sums of fractions leave. */
			.live_words = words > 0 ? words : 0,
			.live_variance = variance > 0 ? variance : 0,
		};
	}
	*out = steps;
	*begin_ns = t->begin_ns;
	*step_ns = t->step_ns;
	return (long)t->n_steps;
}
