/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What losses do to the sampled heap.
 *
 * In:   loss records and summaries (docs/records.md, "Causes of loss").
 * Out:  the heap's missing samples, doubts and what cannot be measured (heap.h).
 */
#ifndef HEAPSONDE_LOSSES_H
#define HEAPSONDE_LOSSES_H

#include <jansson.h>

#include "user/track/heap.h"

/*
 * A loss record. rate: the lowest that has been in force, samples per word, so that no
 * upper end is too low; 0: none yet, then samples are not weighed.
 */
void losses__told(struct heap *h, const json_t *loss, double rate);

/* A summary, for the causes that have no loss records. */
void losses__summed_up(struct heap *h, const json_t *summary);

#endif /* HEAPSONDE_LOSSES_H */
