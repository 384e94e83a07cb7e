/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an output lacks because its queue was full.
 *
 * In:   the records that a consumer leaves out.
 * Out:  how many there are, as JSON: a loss record, the `lost` of a summary or status
 *       (docs/records.md).
 */
#ifndef HEAPSONDE_CONSUMER_LOSSES_H
#define HEAPSONDE_CONSUMER_LOSSES_H

#include <jansson.h>
#include <stdint.h>

#include "user/sinks/sink.h"

struct consumer_losses {
	uint64_t records; /* all */
	uint64_t samples; /* n_samples of the allocations among them */
	uint64_t lives;   /* promotions, deaths and unknown fates among them */
};

/* One more. event: NULL for a record that has no fixed form. */
void consumer_losses__count(struct consumer_losses *l, const struct hs_event *event);

/* The record that tells them, left out from one time to the other; NULL if memory is short. */
json_t *consumer_losses__record(const struct consumer_losses *l, uint64_t begin_ns,
				uint64_t end_ns);

/*
 * Add them to the `lost` of a summary or status, those that are 0 left out. Errors:
 * -ENOMEM.
 */
int consumer_losses__to_json(const struct consumer_losses *l, json_t *lost);

/* A summary with them besides what else was lost, a new reference; NULL if memory is short. */
json_t *consumer_losses__in_summary(const struct consumer_losses *l, json_t *summary);

#endif /* HEAPSONDE_CONSUMER_LOSSES_H */
