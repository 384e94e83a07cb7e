/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture made by hand, and what an exporter makes of it.
 *
 * In:   nothing.
 * Out:  the bytes of the exporter's file.
 */
#ifndef TEST_EXPORT_MADE_H
#define TEST_EXPORT_MADE_H

#include "tests/unit/capture_make.h"

#include "user/export/export.h"

/* Names that hurt: what divides frames, blanks, a number at the end, quotes, nothing. */
#define NAME_HARD "A;b \"c\"\\ 12"
#define NAME_HARD_FOLDED "A:b_\"c\"\\_12"

/*
 * The stacks, outermost first:
 *	1  caml_main; A;b "c"\ 12 (inlined: Stdlib__List.map)
 *	2  caml_main; (no name)
 */
enum { SLOT_MAIN = 0x401000, SLOT_HARD = 0x7f0000001002, SLOT_EMPTY = 0x1000 };

static inline void made__names(struct symbolizer *s)
{
	static const struct hs_location hard[] = {
		{ .function = "Stdlib__List.map",
		  .file = "list.ml",
		  .line = 82,
		  .is_inlined = true },
		{ .function = NAME_HARD, .file = "a b.ml", .line = 7 },
	};
	static const struct hs_location main_[] = { { .function = "caml_main" } };
	static const struct hs_location empty[] = { { .function = "", .file = "x.ml", .line = 1 } };

	assert_int_equal(symbolizer__learn(s, SLOT_HARD, hard, 2), 0);
	assert_int_equal(symbolizer__learn(s, SLOT_MAIN, main_, 1), 0);
	assert_int_equal(symbolizer__learn(s, SLOT_EMPTY, empty, 1), 0);
}

/* A block of size_words with n samples. */
static inline void made__alloc(struct pipeline *p, uint64_t id, uint64_t hash, uint32_t domain,
			       uint64_t size_words, uint64_t n_samples)
{
	union record r;

	make__alloc(&r, id, hash);
	r.h.time_ns = 2000;
	r.h.domain = domain;
	r.alloc.size_words = size_words;
	r.alloc.n_samples = n_samples;
	r.alloc.source = id == 2 ? SONDE_SRC_MARSHAL : SONDE_SRC_NORMAL;
	tell(p, &r);
}

/* At λ = 1/4. Blocks 1 and 2 have stack 1, 3 has stack 2, 4 none and 5 a lost one. */
static inline void made__play(struct pipeline *p)
{
	static const uint64_t first[] = { SLOT_HARD, SLOT_MAIN },
			      second[] = { SLOT_EMPTY, SLOT_MAIN };
	union record r;

	tell_json(p,
		  json_pack("{s:s, s:s, s:i, s:f, s:s, s:s, s:i, s:I,"
			    " s:[{s:I,s:I,s:i,s:s,s:s},{s:i,s:i,s:i,s:s,s:s}]}",
			    "type", "header", "heapsonde", "1.2", "pid", 77, "rate", 0.25,
			    "command", "./x\x1b[31m \xc2\x9bm", "exe", "/srv/x", "time", 1000,
			    "wall_offset", (json_int_t)1000000, "mappings", "start",
			    (json_int_t)0x7f0000000000, "end", (json_int_t)0x7f0000002000, "offset",
			    4096, "file", "/lib/y.so", "build_id", "beef", "start", 0x400000, "end",
			    0x402000, "offset", 0, "file", "/srv/x", "build_id", "cafe"));
	tell_json(p, json_pack("{s:s, s:i, s:f, s:s, s:i}", "type", "profile", "profile", 1, "rate",
			       0.25, "state", "sampling", "time", 1000));
	tell_stack(p, 100, first, COUNT(first));
	tell_stack(p, 200, second, COUNT(second));
	made__alloc(p, 1, 100, 0, 2, 3);   /* 12 words, 4 blocks */
	made__alloc(p, 2, 100, 3, 63, 16); /* 64 words, 1 block */
	made__alloc(p, 3, 200, 0, 9, 5);   /* 20 words, 2 blocks */
	made__alloc(p, 4, 0, 0, 0, 1);     /* 4 words, 4 blocks */
	made__alloc(p, 5, 999, 0, 1, 1);   /* 4 words, 2 blocks */
	make__block(&r, HS_REC_DEALLOC, 1);
	r.block.heap = HS_HEAP_MINOR;
	r.h.time_ns = 3000;
	tell(p, &r);
	make__block(&r, HS_REC_PROMOTE, 3);
	r.h.time_ns = 3000;
	tell(p, &r);
	/* As all have that tell when cycles end. */
	tell_json(p, json_pack("{s:s, s:i}", "type", "counters", "domain", 0));
	tell_json(p, json_pack("{s:s, s:i, s:s, s:i}", "type", "loss", "domain", 0, "cause",
			       "ring_full", "count", 5));
	tell_json(p, json_pack("{s:s, s:i, s:{s:i}}", "type", "summary", "time", 5000, "lost",
			       "ring_full", 5));
}

/* The blocks of made__play that are too large for any sum: 2^63 - 1 samples each. */
static inline void made__play_huge(struct pipeline *p)
{
	tell_json(p, json_pack("{s:s, s:f}", "type", "header", "rate", 1e-7));
	tell_json(p, json_pack("{s:s, s:i, s:f, s:s}", "type", "profile", "profile", 1, "rate",
			       1e-7, "state", "sampling"));
	made__alloc(p, 1, 0, 0, INT64_MAX, INT64_MAX);
}

static inline void made__play_nothing(struct pipeline *p)
{
	tell_json(p, json_pack("{s:s, s:f, s:n}", "type", "header", "rate", 1.0, "command"));
	tell_json(p, json_pack("{s:s, s:i, s:f, s:s}", "type", "profile", "profile", 1, "rate", 1.0,
			       "state", "sampling"));
}

/* As recorded with --track alloc. */
static inline void made__play_allocs(struct pipeline *p)
{
	tell_json(p, json_pack("{s:s, s:f, s:s}", "type", "header", "rate", 1.0, "track",
			       "major,alloc"));
	tell_json(p, json_pack("{s:s, s:i, s:f, s:s}", "type", "profile", "profile", 1, "rate", 1.0,
			       "state", "sampling"));
	made__alloc(p, 1, 0, 0, 4, 3);
}

/* The file that exporter makes of what play tells, with a NUL behind it: the caller's. */
static inline char *made__export(const struct exporter *exporter, void (*play)(struct pipeline *p),
				 enum rows_metric metric, size_t *size)
{
	int fd = memfd_create("heapsonde-capture", MFD_CLOEXEC);
	struct export_options o = { .metric = metric, .input = "x.hsd" };
	struct heap_options heap_options = { .want_timeline = true };
	struct replay r = { .heap_options = &heap_options };
	struct hs_error err = { "" };
	char path[64], *text = NULL;
	size_t capture_bytes;
	char *capture;
	struct lane l;
	FILE *f;

	lane__begin(&l, raw_sink__new);
	made__names(l.pipeline.symbolizer);
	play(&l.pipeline);
	capture = lane__end(&l, &capture_bytes);
	assert_int_equal(write(fd, capture, capture_bytes), (ssize_t)capture_bytes);
	free(capture);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r.path = path;
	if (replay__run(&r, &err))
		fail_msg("%s", err.text);
	f = open_memstream(&text, size);
	assert_non_null(f);
	if (exporter->write(f, &r, &o, &err))
		fail_msg("%s", err.text);
	assert_int_equal(fclose(f), 0);
	replay__deinit(&r);
	close(fd);
	return text;
}

#endif /* TEST_EXPORT_MADE_H */
