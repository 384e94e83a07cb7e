/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of an event through user space: stack → names → sampled heap → sink.
 *
 * In:   checked events, live (user/collect/collect.h) or from a capture
 *       (user/collect/capture.h).
 * Out:  the sink; the sampled heap, whole or by sites, if it is wanted; the
 *       rate that is in force in each domain.
 */
#ifndef HEAPSONDE_PIPELINE_H
#define HEAPSONDE_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "user/decode/decode.h"
#include "user/sinks/sink.h"
#include "user/symbolize/symbolize.h"
#include "user/track/heap.h"
#include "user/track/threads.h"

struct domain_rate;

struct pipeline {
	struct symbolizer *symbolizer; /* borrowed */
	struct stack_table *stacks;
	struct thread_table *threads;
	struct heap *sites;        /* of sites only (heap.h); NULL: not wanted */
	struct heap *heap;         /* borrowed, set by who wants it; NULL: not wanted */
	struct sink *sink;         /* borrowed */
	double rate;               /* of domains that have told no other; 0: that of the
				    * first profile record that comes by */
	double lowest_rate;        /* of all that have been in force; 0: none yet */
	struct domain_rate *rates; /* of those that have, until they terminate */
	uint64_t n_allocs;         /* alloc records so far */
	uint64_t stacks_unknown;   /* of these, whose stack was lost */
};

/*
 * rate: that domains begin with, samples per word; > 0 if want_sites. want_sites:
 * keep `sites`. symbolizer and sink are borrowed. Errors: -ENOMEM.
 */
int pipeline__init(struct pipeline *p, struct symbolizer *symbolizer, struct sink *sink,
		   double rate, bool want_sites);

/* A zeroed p is fine. */
void pipeline__deinit(struct pipeline *p);

/* Take in one event; ctx is the struct pipeline. Errors: -ENOMEM, the sink's. */
int pipeline__event(void *ctx, const struct hs_event *event);

/*
 * One of the records that have no fixed form, on its way to the sink; ctx is the struct
 * pipeline. Errors: -ENOMEM, the sink's.
 */
int pipeline__json(void *ctx, json_t *object);

/*
 * The rate in force in a domain, samples per word, as of the events that have been
 * taken in: what a sink that joins now has to know.
 */
double pipeline__rate_of(const struct pipeline *p, uint32_t domain);

#endif /* HEAPSONDE_PIPELINE_H */
