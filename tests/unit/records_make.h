/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Well-formed records of bpf/records.h, for the tests of user/decode, user/track
 * and user/sinks; a generator of numbers that are the same in each run; and
 * sinks whose output can be read back.
 *
 * In:   as little as a test cares about; every other field gets a value of its
 *       own, so that no field can stand for another unnoticed.
 * Out:  union record, events, text.
 */
#ifndef TEST_RECORDS_MAKE_H
#define TEST_RECORDS_MAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/records.h"
#include "runtime/abi.h"
#include "user/decode/decode.h"
#include "user/sinks/sink.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- numbers ---- */

/* splitmix64: the next number of the sequence that *state began. */
static inline uint64_t make__random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* ---- records ---- */

union record {
	struct hs_record h;
	struct hs_rec_alloc alloc;
	struct hs_rec_stack stack;
	struct hs_rec_block block;
	struct hs_rec_domain domain;
	struct hs_rec_rate rate;
	/* Room for one frame more than allowed. */
	_Alignas(8) unsigned char bytes[sizeof(struct hs_rec_stack) + 8 * (SONDE_STACK_MAX + 1)];
};

static inline void make__head(union record *r, enum hs_record_type type, size_t size)
{
	memset(r, 0, sizeof(*r));
	r->h.type = type;
	r->h.size_bytes = (uint32_t)size;
	r->h.time_ns = 1700000000123456789u;
	r->h.profile = 1;
	r->h.domain = 3;
	r->h.tgid = 4000;
	r->h.tid = 4001;
}

/* A young block of one sample; hash 0: its stack is empty. */
static inline void make__alloc(union record *r, uint64_t id, uint64_t hash)
{
	make__head(r, HS_REC_ALLOC, sizeof(r->alloc));
	r->alloc.id = id;
	r->alloc.size_words = 5;
	r->alloc.n_samples = 1;
	r->alloc.stack_hash = hash;
	r->alloc.source = SONDE_SRC_NORMAL;
	r->alloc.heap = HS_HEAP_MINOR;
	r->alloc.is_tracked = 1;
	r->alloc.depth = hash ? 2 : 0;
}

/* type: promote, dealloc or unknown. */
static inline void make__block(union record *r, enum hs_record_type type, uint64_t id)
{
	make__head(r, type, sizeof(r->block));
	r->block.id = id;
	r->block.heap = HS_HEAP_MAJOR;
}

static inline void make__stack(union record *r, uint64_t hash, const uint64_t *frames,
			       uint32_t depth)
{
	make__head(r, HS_REC_STACK, sizeof(r->stack) + depth * sizeof(frames[0]));
	r->h.profile = 0;
	r->stack.hash = hash;
	r->stack.depth = depth;
	memcpy(r->bytes + sizeof(r->stack), frames, depth * sizeof(frames[0]));
}

/* type: spawn, terminate, exit or major cycle. */
static inline void make__domain(union record *r, enum hs_record_type type)
{
	make__head(r, type, sizeof(r->domain));
	r->h.profile = 0;
	r->domain.domain_id = 2;
	r->domain.parent = 1;
	r->domain.counts = (struct hs_counts){
		.minor_words = 11,
		.promoted_words = 12,
		.major_words = 13,
		.minor_collections = 14,
		.major_collections = 15,
	};
}

/* The rate is keep_p * 2^(-32 - tier). */
static inline void make__rate(union record *r, uint64_t keep_p, uint32_t tier)
{
	make__head(r, HS_REC_RATE, sizeof(r->rate));
	r->rate.keep_p = keep_p;
	r->rate.tier = tier;
	r->rate.counts = (struct hs_counts){
		.minor_words = 21,
		.promoted_words = 22,
		.major_words = 23,
		.minor_collections = 24,
		.major_collections = 25,
	};
}

/* The event of a well-formed record. */
static inline struct hs_event make__event(const union record *r)
{
	struct hs_event event;

	assert_int_equal(decode__record(r, r->h.size_bytes, &event), 0);
	return event;
}

/* ---- output ---- */

/* A file in memory that a sink writes. */
struct output {
	int fd;
	struct sink *sink;
};

static inline struct output output__new(int (*sink_new)(struct sink **out, int fd))
{
	struct output o = { .fd = memfd_create("heapsonde-test", MFD_CLOEXEC) };

	assert_true(o.fd >= 0);
	assert_int_equal(sink_new(&o.sink, dup(o.fd)), 0);
	return o;
}

/* What has been written, flushed and with a NUL behind it; *size may be NULL. The
 * result is the caller's (free()). */
static inline char *output__text(struct output *o, size_t *size)
{
	off_t end;
	char *text;

	assert_int_equal(o->sink->ops->flush(o->sink), 0);
	end = lseek(o->fd, 0, SEEK_END);
	assert_true(end >= 0);
	text = malloc((size_t)end + 1);
	assert_non_null(text);
	assert_int_equal(pread(o->fd, text, (size_t)end, 0), end);
	text[end] = '\0';
	if (size)
		*size = (size_t)end;
	return text;
}

static inline void output__free(struct output *o)
{
	sink__free(o->sink);
	close(o->fd);
}

#endif /* TEST_RECORDS_MAKE_H */
