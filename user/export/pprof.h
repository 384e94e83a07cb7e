/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile.proto under way: what has been numbered and written so far.
 *
 * In:   strings, frames, the header's mappings (user/export/pprof.c).
 * Out:  a gzip file of messages.
 *
 * A message of protobuf is the concatenation of its fields, in any order. So each string,
 * function, location and sample is written as a Profile of its own with that one field,
 * when it first comes up, and memory is needed for the tables of numbers only.
 */
#ifndef HEAPSONDE_PPROF_H
#define HEAPSONDE_PPROF_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.pb-c.h"
#include "user/export/gzip.h"
#include "user/export/ids.h"
#include "user/track/stacks.h"

/* Where a file is in the address space of the process. */
struct pprof_mapping {
	uint64_t start; /* address */
	uint64_t id;    /* from 1 */
};

struct pprof {
	struct gzip *out;
	struct id_table *strings;
	struct id_table *functions;
	struct id_table *locations;
	struct pprof_mapping *mappings; /* sorted by start */
	size_t n_mappings;
	int err; /* the first one: 0 or a negative errno. After it nothing is written */
};

/* f is borrowed. Errors: -ENOMEM, those of write(2); p is to be deinited in any case. */
int pprof__init(struct pprof *p, FILE *f);

/* A zeroed p is fine. */
void pprof__deinit(struct pprof *p);

/*
 * Write a message; what it has set becomes part of the profile. Errors stay in p->err, as
 * in the functions below, which give 0 after one.
 */
void pprof__write(struct pprof *p, const Perftools__Profiles__Profile *m);

/* The number of a string; control characters in it become '?'. NULL is "", number 0. */
int64_t pprof__string(struct pprof *p, const char *text);

/*
 * Write the mappings that a header record has (docs/records.md), or one for its `exe`.
 * header: borrowed; NULL: none is written.
 */
void pprof__mappings(struct pprof *p, const json_t *header);

/* The id of the location of a frame, with a line for each inlined function. */
uint64_t pprof__location(struct pprof *p, const struct stack_frame *frame);

/* The id of a location that is no frame, and belongs to no mapping. */
uint64_t pprof__placeholder(struct pprof *p, const char *name);

#endif /* HEAPSONDE_PPROF_H */
