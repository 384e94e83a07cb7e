/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a consumer tells its output before a record; of consumer.c only.
 *
 * In:   the records that are let in, and the rates that find no room.
 * Out:  the same to the sink of the format, each with the thread, the stack and the
 *       rates that it needs and that have not been told yet.
 *
 * It knows nothing of the queue. Zero it before use.
 */
#ifndef HEAPSONDE_CONSUMER_TOLD_H
#define HEAPSONDE_CONSUMER_TOLD_H

#include "user/sinks/consumer.h"
#include "user/sinks/told.h"
#include "user/track/threads.h"

struct owed_rate;

struct consumer_told {
	struct sink *inner; /* borrowed */
	enum sink_format format;
	struct told stacks;
	struct thread_table *threads; /* NULL: they can be made up from the output */
	struct owed_rate *owed;       /* NULL: no rate is */
};

/* inner: the sink of the format. Errors: -ENOMEM. */
int consumer_told__init(struct consumer_told *t, struct sink *inner, enum sink_format format);

void consumer_told__deinit(struct consumer_told *t);

/* Tell a stack; event is a stack record. Errors: -ENOMEM and those of the sink. */
int consumer_told__stack(struct consumer_told *t, const struct hs_event *event,
			 const struct stack *stack);

/* Tell an event, but before it its thread and its stack. Errors: likewise. */
int consumer_told__event(struct consumer_told *t, const struct hs_event *event,
			 const struct stack *stack);

/* A rate is to be told later, instead of an earlier one of its domain. Errors: -ENOMEM. */
int consumer_told__owe(struct consumer_told *t, const struct hs_rec_rate *rec);

/* The rate that is owed of a domain, if any, need not be told. */
void consumer_told__disown(struct consumer_told *t, uint32_t domain);

/* Tell all rates that are owed. Errors: likewise; the rest is owed still. */
int consumer_told__settle(struct consumer_told *t);

#endif /* HEAPSONDE_CONSUMER_TOLD_H */
