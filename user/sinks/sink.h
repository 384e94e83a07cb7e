/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where records go: the end of the pipeline.
 *
 * In:   JSON objects (header, profile, loss, counters, summary), new stacks, events.
 * Out:  a file in the sink's format.
 *
 * A sink is told of a stack before the first event that refers to it. All
 * functions return 0 or a negative errno; after an error what has been written
 * stays readable, and only sink__free may follow.
 */
#ifndef HEAPSONDE_SINK_H
#define HEAPSONDE_SINK_H

#include <jansson.h>
#include <stdio.h>

#include "user/decode/decode.h"
#include "user/track/stacks.h"

struct sink;

struct sink_ops {
	/* One of the records that have no fixed form. object is borrowed. */
	int (*json)(struct sink *s, json_t *object);
	/* A stack met for the first time, as the kernel sent it and with names. */
	int (*stack)(struct sink *s, const struct hs_event *event, const struct stack *stack);
	/* A stack that is known, under another hash or again. May be NULL. */
	int (*stack_again)(struct sink *s, const struct hs_event *event, const struct stack *stack);
	/* Any other event; stack: of an alloc event, NULL if empty or lost. */
	int (*event)(struct sink *s, const struct hs_event *event, const struct stack *stack);
	/*
	 * Thread tid runs for this domain from here on. Made up from the events, so
	 * a sink that keeps the events themselves leaves it NULL.
	 */
	int (*thread)(struct sink *s, uint32_t tid, uint32_t domain, uint64_t time_ns);
	int (*flush)(struct sink *s);
	void (*free)(struct sink *s);
};

/* The first member of every sink. */
struct sink {
	const struct sink_ops *ops;
};

/* NULL is fine. Does not report errors: flush before. */
void sink__free(struct sink *s);

/* The formats that recordings are written in. */
enum sink_format {
	SINK_JSONL, /* JSON lines: docs/records.md */
	SINK_RAW,   /* a capture: docs/capture-format.md */
	SINK_HSD,   /* the same, compressed */
};

/* "jsonl", "raw", "hsd". Parsing leaves *out alone if it is none of them: -EINVAL. */
const char *sink_format__name(enum sink_format format);
int sink_format__parse(const char *name, enum sink_format *out);

/*
 * Sinks that write to fd, which they own from then on, errors included. Errors:
 * -ENOMEM, those of write(2) for the file's header.
 */
int jsonl_sink__new(struct sink **out, int fd); /* JSON lines */
int raw_sink__new(struct sink **out, int fd);   /* captures, plain */
int hsd_sink__new(struct sink **out, int fd);   /* captures, compressed */
int sink__new(struct sink **out, int fd, enum sink_format format);

/* The same with a stdio stream, which they own from then on, errors included. */
int jsonl_sink__new_file(struct sink **out, FILE *f);
int raw_sink__new_file(struct sink **out, FILE *f);
int hsd_sink__new_file(struct sink **out, FILE *f);
int sink__new_file(struct sink **out, FILE *f, enum sink_format format);

#endif /* HEAPSONDE_SINK_H */
