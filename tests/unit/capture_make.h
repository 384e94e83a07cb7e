/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session with records of every type, and the way of captures: recorded by any
 * sink, replayed as JSON lines.
 *
 * In:   nothing.
 * Out:  what a sink writes of the session; what a capture gives when replayed.
 */
#ifndef TEST_CAPTURE_MAKE_H
#define TEST_CAPTURE_MAKE_H

#include "tests/unit/records_make.h"

#include "user/collect/capture.h"
#include "user/sinks/raw_format.h"
#include "user/track/pipeline.h"

/* ---- a session ---- */

enum { SLOT_INLINED = 0x1000, SLOT_NAMELESS = 0x2002, SLOT_SYMBOL = 0x3000, SLOT_UNKNOWN = 0x4000 };

static inline void teach(struct symbolizer *s)
{
	static const struct hs_location inlined[] = {
		{ .function = "Stdlib__List.map",
		  .file = "list.ml",
		  .line = 82,
		  .end_line = 84,
		  .start_char = 10,
		  .end_char = 16,
		  .end_offset = 90,
		  .is_inlined = true },
		{ .function = "A.\xce\xbb\"\\",
		  .file = "src/a b.ml",
		  .line = 7,
		  .end_line = 7,
		  .start_char = 0,
		  .end_char = 1,
		  .end_offset = 1,
		  .is_inlined = true },
		{ .function = "", .file = "", .line = 1, .end_line = 1 },
	};
	static const struct hs_location nameless[] = { { .file = "x.ml",
							 .line = UINT32_MAX,
							 .end_line = UINT32_MAX,
							 .start_char = UINT32_MAX,
							 .end_char = UINT32_MAX } };
	static const struct hs_location symbol[] = { { .function = "caml_main" } };

	assert_int_equal(symbolizer__learn(s, SLOT_INLINED, inlined, COUNT(inlined)), 0);
	assert_int_equal(symbolizer__learn(s, SLOT_NAMELESS, nameless, COUNT(nameless)), 0);
	assert_int_equal(symbolizer__learn(s, SLOT_SYMBOL, symbol, COUNT(symbol)), 0);
}

/* A pipeline into a sink, with a symbolizer that knows what it is taught. */
struct lane {
	struct output out;
	struct pipeline pipeline;
};

static inline void lane__begin(struct lane *l, int (*sink_new)(struct sink **out, int fd))
{
	struct symbolizer *symbolizer;

	l->out = output__new(sink_new);
	assert_int_equal(symbolizer__new_empty(&symbolizer), 0);
	assert_int_equal(pipeline__init(&l->pipeline, symbolizer, l->out.sink, 0, false), 0);
}

/* Returns what was written, which is the caller's. */
static inline char *lane__end(struct lane *l, size_t *size)
{
	struct symbolizer *symbolizer = l->pipeline.symbolizer;
	char *text = output__text(&l->out, size);

	pipeline__deinit(&l->pipeline);
	symbolizer__free(symbolizer);
	output__free(&l->out);
	return text;
}

static inline int on_json(void *ctx, json_t *object)
{
	struct pipeline *p = ctx;

	return p->sink->ops->json(p->sink, object);
}

static inline void tell_json(struct pipeline *p, json_t *object)
{
	assert_non_null(object);
	assert_int_equal(on_json(p, object), 0);
	json_decref(object);
}

static inline void tell(struct pipeline *p, const union record *r)
{
	struct hs_event event = make__event(r);

	assert_int_equal(pipeline__event(p, &event), 0);
}

static inline void tell_stack(struct pipeline *p, uint64_t hash, const uint64_t *frames,
			      uint32_t depth)
{
	union record r;

	make__stack(&r, hash, frames, depth);
	tell(p, &r);
}

static inline void tell_alloc(struct pipeline *p, uint64_t id, uint64_t hash, enum hs_heap heap)
{
	union record r;

	make__alloc(&r, id, hash);
	r.alloc.heap = heap;
	tell(p, &r);
}

/* type: of a block (id > 0) or of a domain. */
static inline void tell_other(struct pipeline *p, enum hs_record_type type, uint64_t id)
{
	union record r;

	if (id)
		make__block(&r, type, id);
	else
		make__domain(&r, type);
	tell(p, &r);
}

/* The domain goes over to another rate, in another thread. */
static inline void tell_rate(struct pipeline *p)
{
	union record r;

	make__rate(&r, 3u << 30, 10);
	r.h.tid++;
	tell(p, &r);
}

/* Records of every type, in an order that a session could have. */
static inline void play(struct pipeline *p)
{
	static const uint64_t first[] = { SLOT_INLINED, SLOT_SYMBOL };
	static const uint64_t second[] = { SLOT_NAMELESS, SLOT_INLINED, SLOT_UNKNOWN };

	tell_json(p, json_pack("{s:s, s:f, s:f, s:s, s:n, s:I}", "type", "header", "rate", 0.00037,
			       "one", 1.0, "command", "./\xc3\xa4 \"x\"\n", "none", "pid",
			       (json_int_t)INT64_MAX));
	tell_other(p, HS_REC_DOMAIN_SPAWN, 0);
	tell_stack(p, 100, first, COUNT(first));
	tell_alloc(p, 1, 100, HS_HEAP_MINOR);
	tell_stack(p, 200, second, COUNT(second));
	tell_alloc(p, 2, 200, HS_HEAP_MAJOR);
	/* The same frames under another hash, and once more under their own. */
	tell_stack(p, 300, first, COUNT(first));
	tell_alloc(p, 3, 300, HS_HEAP_MINOR);
	tell_stack(p, 200, second, COUNT(second));
	/* A stack that was lost, and an empty one. */
	tell_alloc(p, 4, 999, HS_HEAP_MINOR);
	tell_alloc(p, 5, 0, HS_HEAP_MINOR);
	/* A hash that stands for other frames by now. */
	tell_stack(p, 100, second, COUNT(second));
	tell_alloc(p, 6, 100, HS_HEAP_MINOR);
	tell_other(p, HS_REC_PROMOTE, 1);
	tell_rate(p);
	tell_json(p, json_pack("{s:s, s:i}", "type", "loss", "count", 3));
	tell_other(p, HS_REC_DEALLOC, 1);
	tell_other(p, HS_REC_UNKNOWN, 2);
	tell_other(p, HS_REC_DOMAIN_TERMINATE, 0);
	tell_other(p, HS_REC_EXIT, 0);
	tell_json(p, json_pack("{s:s, s:[i], s:{}}", "type", "summary", "domains", 1, "lost"));
	assert_int_equal(p->n_allocs, 6);
	assert_int_equal(p->stacks_unknown, 1);
}

/* What a sink writes of the session. */
static inline char *record(int (*sink_new)(struct sink **out, int fd), size_t *size)
{
	struct lane l;

	lane__begin(&l, sink_new);
	teach(l.pipeline.symbolizer);
	play(&l.pipeline);
	return lane__end(&l, size);
}

/* ---- its replay ---- */

static struct hs_error capture_err;
static bool capture_is_cut;

/* The JSON lines of n bytes of a capture, in *text, the caller's. */
static inline int replay(const void *capture, size_t n, char **text)
{
	/* A length of 0 is not for fmemopen. */
	FILE *f = n ? fmemopen((void *)capture, n, "r") : fopen("/dev/null", "re");
	struct capture_reader reader = { .json = on_json, .event = pipeline__event };
	struct lane l;
	int ret;

	assert_non_null(f);
	lane__begin(&l, jsonl_sink__new);
	reader.ctx = &l.pipeline;
	reader.symbolizer = l.pipeline.symbolizer;
	reader.is_cut = true;
	capture_err.text[0] = '\0';
	ret = capture__read(f, &reader, &capture_err);
	capture_is_cut = reader.is_cut;
	*text = lane__end(&l, NULL);
	fclose(f);
	return ret;
}

#endif /* TEST_CAPTURE_MAKE_H */
