/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture, plain or compressed, and what is made of it: reports, exports.
 *
 * In:   two bytes that choose what is made, then the file. With CHOICE_PACK it is
 *       compressed first: what is random is no zstd frame.
 * Out:  user/collect, user/report, user/export; the text goes to stdout.
 *
 * What goes out as JSON lines must be JSON.
 */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>
#include <zstd.h>

#include "user/collect/capture.h"
#include "user/common/say.h"
#include "user/export/export.h"
#include "user/export/html.h"
#include "user/report/report.h"

enum { CHOICE_PACK = 1, CHOICE_PIECES = 2, CHOICE_JSON = 4 };

enum { CAPTURE };

/* ---- reading in pieces ---- */

static int forget_json(void *ctx, json_t *object)
{
	(void)ctx;
	CHECK(json_is_object(object));
	return 0;
}

static int forget_event(void *ctx, const struct hs_event *event)
{
	(void)ctx;
	CHECK(event->type < HS_REC_TYPE_END);
	return 0;
}

/* As through a pipe. The pieces make no difference to what is found wrong. */
static void feed(const uint8_t *bytes, size_t n, size_t piece)
{
	struct capture_reader reader = { .json = forget_json, .event = forget_event };
	struct hs_error err;
	struct capture *c;
	int ret = 0;

	CHECK(!symbolizer__new_empty(&reader.symbolizer));
	CHECK(!capture__new(&c, &reader));
	while (n && !ret) {
		size_t now = piece < n ? piece : n;
		/* Aligned as chance will have it, and no longer than that. */
		uint8_t *copy = malloc(now);

		CHECK(copy);
		memcpy(copy, bytes, now);
		ret = capture__feed(c, copy, now, &err);
		free(copy);
		bytes += now;
		n -= now;
	}
	if (!ret)
		ret = capture__end(c, &err);
	CHECK(!ret || err.text[0]);
	capture__free(c);
	symbolizer__free(reader.symbolizer);
}

/* ---- reports ---- */

/* Whatever a capture says, no block is in two places, and no interval is inside out. */
static void check_tally(const struct recording *rec, const struct tally *t)
{
	const struct amount *amounts[] = { &t->allocated, &t->live, &t->dead_young, &t->dead_old,
					   &t->unknown };
	const struct amount missing = recording__missing(rec, t, ROWS_LIVE);

	CHECK(t->n_live <= t->n_allocs);
	for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
		const struct interval of = amount__interval(amounts[i], &missing, 0x1p-10);

		CHECK(amounts[i]->words >= 0 && amounts[i]->variance >= 0);
		CHECK(of.low <= of.value && of.value <= of.high);
	}
	CHECK(fabs(t->live.words + t->dead_young.words + t->dead_old.words + t->unknown.words -
		   t->allocated.words) <= 1e-6 * t->allocated.words);
}

static void report(const struct recording *rec, const struct report_options *o, unsigned int which)
{
	struct hs_error err;

	recording__print_notes(rec);
	switch (which % 5) {
	case 0:
		report__rows(rec, o, &err);
		break;
	case 1:
		report__leaks(rec, NULL, o, &err);
		break;
	case 2:
		report__diff(rec, rec, o, &err);
		break;
	case 3:
		report__timeline(rec, o, &err);
		break;
	default:
		report__leaks(rec, rec, o, &err);
		break;
	}
}

static void make_report(unsigned int which, unsigned int choice)
{
	const struct heap_options heap = { .want_timeline = true,
					   .want_sizes = which & 1,
					   .survived = which & 3,
					   .since_ns = which & 32 ? 1000000 : 0,
					   .until_ns = which & 64 ? 2000000000 : 0 };
	const struct report_options o = { .by = (enum rows_by)(which % 6),
					  .metric = (enum rows_metric)(which % 4),
					  .filter = ROWS_FILTER_ALL,
					  .n_rows = which % 7,
					  .is_json = choice & CHOICE_JSON,
					  .per = (enum report_per)(which % 4),
					  .significance = 0.01,
					  .n_steps = 1 + which % 50 };
	struct recording rec = { 0 };
	struct hs_error err;

	err.text[0] = '\0';
	if (!recording__read(&rec, fuzz__path(CAPTURE), &heap, NULL, NULL, &err)) {
		check_tally(&rec, heap__total(rec.replay.heap));
		report(&rec, &o, which);
	} else {
		CHECK(err.text[0]);
	}
	recording__deinit(&rec);
}

/* ---- exports ---- */

static void check_lines(const char *text)
{
	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		json_t *line = json_loadb(text, (size_t)(end - text), 0, NULL);

		CHECK(json_is_object(line));
		json_decref(line);
	}
	CHECK(!*text);
}

static void export_events(const struct exporter *e, const struct export_options *o)
{
	bool is_jsonl = e == &export_jsonl;
	struct replay r = { .path = fuzz__path(CAPTURE) };
	char *text = NULL;
	size_t n;
	struct hs_error err;
	int ret;

	if (e->open(&r.sink, is_jsonl ? open_memstream(&text, &n) : fuzz__null(), o)) {
		free(text);
		return;
	}
	ret = replay__run(&r, &err);
	sink__free(r.sink);
	if (is_jsonl && !ret)
		check_lines(text);
	free(text);
	replay__deinit(&r);
}

static void export_whole(const struct exporter *e, const struct export_options *o)
{
	static const struct heap_options heap = { .want_timeline = true };
	struct replay r = { .path = fuzz__path(CAPTURE), .heap_options = &heap };
	bool is_json = e == &export_speedscope;
	FILE *f = NULL;
	char *text = NULL;
	struct hs_error err;
	size_t n;

	if (!replay__run(&r, &err) && r.heap && !replay__can_answer(&r, o->metric, &err)) {
		f = is_json ? open_memstream(&text, &n) : fuzz__null();
		CHECK(f && !e->write(f, &r, o, &err));
		fclose(f);
	}
	if (is_json && f) {
		json_t *whole = json_loadb(text, n, 0, NULL);

		CHECK(json_is_object(whole));
		json_decref(whole);
	}
	free(text);
	replay__deinit(&r);
}

static void make_export(unsigned int which)
{
	const struct exporter *e = exporters[which % 6];
	struct export_options o = { .ctf_version = which & 8 ? 3 : 2,
				    .metric = (enum rows_metric)(which / 16 % 4),
				    .input = "input" };

	if (e->metrics && !(e->metrics & 1u << o.metric))
		o.metric = ROWS_ALLOC;
	if (e->open)
		export_events(e, &o);
	else
		export_whole(e, &o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = { data, size };
	unsigned int choice = (unsigned int)fuzz__number(&b, 1);
	unsigned int which = (unsigned int)fuzz__number(&b, 1);
	size_t bound = ZSTD_compressBound(b.left);
	uint8_t *packed = NULL;

	say__set_level(SAY_ERRORS);
	if (choice & CHOICE_PACK) {
		packed = malloc(bound);
		CHECK(packed);
		b.left = ZSTD_compress(packed, bound, b.at, b.left, 1);
		CHECK(!ZSTD_isError(b.left));
		b.at = packed;
	}
	if (choice & CHOICE_PIECES) {
		feed(b.at, b.left, 1 + which);
	} else {
		fuzz__file(CAPTURE, b.at, b.left);
		if (choice & 8)
			make_report(which, choice);
		else
			make_export(which);
	}
	free(packed);
	return 0;
}
