/* SPDX-License-Identifier: BSD-2-Clause */
/* See losses.h. */
#include "user/track/losses.h"

#include <string.h>

#define SAMPLES 1u    /* the count is of samples that were lost */
#define UNMEASURED 2u /* blocks, of unknown size, or who knows what */
#define DOUBT 4u      /* promotions or deaths may have been lost */
#define AT_THE_END 8u /* told by summaries only */
#define PARTS 16u     /* the record says itself which parts its count has */

/* Not here: what is told in other ways ("tracked":false, `unknown` records, stacks). */
static const struct {
	const char *cause;
	unsigned int effects;
} causes[] = {
	{ "ring_full", SAMPLES },
	{ "domains_full_samples", SAMPLES },
	{ "output_full", PARTS },
	{ "read_failed", UNMEASURED },
	{ "gc_read_failed", DOUBT },
	{ "missed_hits", UNMEASURED | DOUBT | AT_THE_END },
	{ "malformed", UNMEASURED | DOUBT | AT_THE_END },
	{ "blocks_full", 0 },
	{ "fate_unknown", 0 },
	{ "events_dropped", 0 },
	{ "domains_full", 0 },
	{ "stack_ring_full", 0 },
	{ "stack_read_failed", 0 },
	{ "stack_unknown", 0 },
	/* In summaries: parts of the records' counts. */
	{ "output_full_samples", 0 },
	{ "output_full_lives", 0 },
};

/* What a heapsonde of later days may have lost: the worst is assumed. */
#define UNHEARD_OF (UNMEASURED | DOUBT | AT_THE_END)

static unsigned int effects_of(const char *cause)
{
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (!strcmp(causes[i].cause, cause))
			return causes[i].effects;
	return UNHEARD_OF;
}

static uint64_t natural(const json_t *o, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(o, name));

	return n > 0 ? (uint64_t)n : 0;
}

static void lose(struct heap *h, const struct heap_loss_time *when, uint64_t n_samples, double rate)
{
	if (n_samples && rate > 0)
		heap__lost(h, when, n_samples, rate);
}

static void suffer(struct heap *h, const struct heap_loss_time *when, unsigned int effects)
{
	if (effects & UNMEASURED)
		heap__lost_unmeasured(h, when);
	if (effects & DOUBT)
		heap__doubt(h, when);
}

void losses__told(struct heap *h, const json_t *loss, double rate)
{
	const struct heap_loss_time when = { natural(loss, "since"), natural(loss, "time") };
	const char *cause = json_string_value(json_object_get(loss, "cause"));
	unsigned int effects = cause ? effects_of(cause) : UNHEARD_OF;

	if (effects & PARTS) {
		lose(h, &when, natural(loss, "samples"), rate);
		/* Records of before say nothing of parts. */
		if (natural(loss, "lives") || !json_object_get(loss, "lives"))
			heap__doubt(h, &when);
	}
	if (effects & SAMPLES)
		lose(h, &when, natural(loss, "count"), rate);
	suffer(h, &when, effects);
}

void losses__summed_up(struct heap *h, const json_t *summary)
{
	json_t *lost = json_object_get(summary, "lost");
	/* At some time of the recording. */
	const struct heap_loss_time when = { 0, natural(summary, "time") };
	const char *cause;
	json_t *count;

	json_object_foreach (lost, cause, count) {
		unsigned int effects = effects_of(cause);

		if (effects & AT_THE_END && json_integer_value(count) > 0)
			suffer(h, &when, effects);
	}
}
