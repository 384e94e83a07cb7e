/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of the ring buffer, one after the other, and what is counted of them.
 *
 * In:   a byte of options; pieces (fuzz__piece), each a record.
 * Out:  user/decode, the pipeline, the sampled heap, rows, JSON lines.
 */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

#include "runtime/abi.h"
#include "user/sinks/sink.h"
#include "user/track/pipeline.h"
#include "user/track/rows.h"

/* What decode.h promises: nobody behind it looks again. */
static void check_event(const struct hs_event *e, size_t size)
{
	CHECK(e->h->size_bytes <= size);
	CHECK(e->type == e->h->type && e->type < HS_REC_TYPE_END);
	CHECK(e->h->time_ns <= INT64_MAX);
	if (e->type == HS_REC_ALLOC) {
		CHECK(e->alloc->source < SONDE_SRC_COUNT && e->alloc->heap <= HS_HEAP_MAJOR);
		CHECK(e->alloc->id && e->alloc->n_samples && e->alloc->depth <= SONDE_STACK_MAX);
	} else if (e->type == HS_REC_STACK) {
		CHECK(e->stack->depth && e->stack->depth <= SONDE_STACK_MAX);
		CHECK(sizeof(*e->stack) + e->stack->depth * sizeof(e->stack->frames[0]) <= size);
	} else if (e->type == HS_REC_RATE) {
		CHECK(decode__rate(e->rate) > 0 && decode__rate(e->rate) <= 1);
	}
}

static void take(struct pipeline *p, struct fuzz_bytes record)
{
	/* Exactly as long, and aligned as in the ring buffer. */
	void *bytes = malloc(record.left + !record.left);
	struct hs_event event;

	CHECK(bytes);
	memcpy(bytes, record.at, record.left);
	if (!decode__record(bytes, record.left, &event)) {
		check_event(&event, record.left);
		CHECK(!pipeline__event(p, &event));
	}
	free(bytes);
}

/* Sums of what is not negative are not, and what lives was allocated. */
static void check_heap(struct heap *h)
{
	const struct tally *t;

	heap__settle(h);
	t = heap__total(h);
	CHECK(t->n_live <= t->n_allocs);
	CHECK(t->allocated.words >= 0 && isfinite(t->allocated.words));
	CHECK(t->live.words >= 0);
	CHECK(heap__first_ns(h) <= heap__last_ns(h) || !heap__last_ns(h));
}

static void check_rows(const struct heap *h)
{
	const struct rows_filter all = ROWS_FILTER_ALL;

	for (int by = ROWS_BY_SITE; by <= ROWS_BY_SIZE; by++) {
		struct row *rows;
		long n = rows__make(&rows, h, (enum rows_by)by, ROWS_ALLOC, &all);
		char label[16];

		CHECK(n >= 0);
		for (long i = 0; i < n; i++)
			rows__label(&rows[i], (enum rows_by)by, label, sizeof(label));
		rows__free(rows);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = { data, size };
	unsigned int choice = (unsigned int)fuzz__number(&b, 1);
	const struct heap_options options = { .want_timeline = choice & 1,
					      .want_sizes = choice & 2,
					      .survived = choice >> 4 };
	struct symbolizer *symbolizer;
	struct pipeline p;
	struct sink *sink;
	struct heap *heap;

	CHECK(!symbolizer__new_empty(&symbolizer));
	CHECK(!sink__new_file(&sink, fuzz__null(), (enum sink_format)((choice >> 2) % 3)));
	CHECK(!heap__new(&heap, &options));
	CHECK(!pipeline__init(&p, symbolizer, sink, 0x1p-13, true));
	p.heap = heap;
	while (b.left)
		take(&p, fuzz__piece(&b));
	CHECK(!sink->ops->flush(sink));
	check_heap(heap);
	check_heap(p.sites);
	check_rows(heap);
	pipeline__deinit(&p);
	heap__free(heap);
	sink__free(sink);
	symbolizer__free(symbolizer);
	return 0;
}
