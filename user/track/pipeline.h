/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of an event through user space: stack → names → table of sites → sink.
 *
 * In:   checked events, live (user/collect/collect.h) or from a capture
 *       (user/collect/capture.h).
 * Out:  the sink; the table of sites, if one is wanted.
 */
#ifndef HEAPSONDE_PIPELINE_H
#define HEAPSONDE_PIPELINE_H

#include <stdint.h>

#include "user/decode/decode.h"
#include "user/sinks/sink.h"
#include "user/symbolize/symbolize.h"
#include "user/track/sites.h"

struct pipeline {
	struct symbolizer *symbolizer; /* borrowed */
	struct stack_table *stacks;
	struct site_table *sites; /* NULL: not wanted */
	struct sink *sink;        /* borrowed */
	uint64_t n_allocs;        /* alloc records so far */
	uint64_t stacks_unknown;  /* of these, whose stack was lost */
};

/*
 * rate: samples per word, for the table of sites; 0: no table. Errors: -ENOMEM.
 */
int pipeline__init(struct pipeline *p, struct symbolizer *symbolizer, struct sink *sink,
		   double rate);

/* A zeroed p is fine. */
void pipeline__deinit(struct pipeline *p);

/* Take in one event; ctx is the struct pipeline. Errors: -ENOMEM, the sink's. */
int pipeline__event(void *ctx, const struct hs_event *event);

#endif /* HEAPSONDE_PIPELINE_H */
