/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * export --to ctf: the trace format of memtrace, for memtrace's tools and memtrace-viewer.
 * docs/ctf.md tells what is written and what is not.
 *
 * In:   a capture, event by event.
 * Out:  the trace, as events come.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/export/ctf_bytes.h"
#include "user/export/ctf_order.h"
#include "user/export/ctf_rates.h"
#include "user/export/ctf_scan.h"
#include "user/export/ctf_stacks.h"
#include "user/export/ctf_writer.h"
#include "user/export/export.h"
#include "user/track/blocks.h"

struct ctf_sink {
	struct sink base;
	FILE *f;
	struct ctf_stacks *stacks;
	struct ctf_rates *rates;
	struct ctf_order *order;
	struct block_table *blocks; /* by the recording's id; entries are struct ctf_block */
	struct ctf_writer *writer;
	json_t *header;      /* NULL: not met */
	__int128 to_wall_ns; /* add to a CLOCK_MONOTONIC time for one since 1970 */
	uint64_t start_us;   /* of the recording, according to its header */
	uint64_t written_us; /* time of the last event written */
	bool has_rate;       /* the trace's rate is known already */
	bool has_profile;    /* the first one has been met */
	bool has_begun;      /* the first packet is written */
};

/* ---- times ---- */

static uint64_t wall_us(const struct ctf_sink *s, uint64_t time_ns)
{
	__int128 us = ((__int128)time_ns + s->to_wall_ns) / 1000;

	if (us < 0)
		return 0;
	return us < (__int128)CTF_INT_MAX ? (uint64_t)us : CTF_INT_MAX;
}

/* ---- writing ---- */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* The first packet. first_us: the time of the first event. */
static int begin(struct ctf_sink *s, uint64_t first_us)
{
	json_int_t pid = json_integer_value(json_object_get(s->header, "pid"));
	struct ctf_info info = {
		.rate = ctf_rates__trace(s->rates),
		.pid = pid > 0 ? (uint64_t)pid : 0,
		.start_us = first_us < s->start_us ? first_us : s->start_us,
		.executable = text_of(s->header, "exe"),
		.host = text_of(s->header, "host"),
		.context = text_of(s->header, "command"),
	};

	s->has_begun = true;
	s->written_us = info.start_us;
	return ctf_writer__begin(s->writer, &info);
}

/* Write the earliest event of those held back. */
static int write_one(struct ctf_sink *s)
{
	struct ctf_timed e;
	uint64_t id;
	int ret = 0;

	ctf_order__take(s->order, &e);
	if (!s->has_begun)
		ret = begin(s, e.time_us);
	if (ret)
		return ret;
	/* Later than any order could mend: it is told as of now. */
	if (e.time_us < s->written_us)
		e.time_us = s->written_us;
	s->written_us = e.time_us;
	switch (e.what) {
	case CTF_WHAT_ALLOC:
		ret = ctf_writer__alloc(s->writer, e.stream, e.time_us, &e.alloc, &id);
		if (!ret && e.block)
			e.block->id = id;
		return ret;
	case CTF_WHAT_PROMOTE:
		return ctf_writer__promote(s->writer, e.stream, e.time_us, e.block->id);
	case CTF_WHAT_COLLECT:
		ret = ctf_writer__collect(s->writer, e.stream, e.time_us, e.block->id);
		break;
	case CTF_WHAT_FORGET:
		break;
	}
	block_table__remove(s->blocks, e.block_id, e.block);
	return ret;
}

static int put(struct ctf_sink *s, struct ctf_timed *e)
{
	int ret = ctf_order__is_full(s->order) ? write_one(s) : 0;

	if (ret)
		return ret;
	/* A block's events stay in their order, whatever their times say. */
	if (e->block && e->time_us < e->block->last_us)
		e->time_us = e->block->last_us;
	if (e->block)
		e->block->last_us = e->time_us;
	ctf_order__put(s->order, e);
	return 0;
}

/* ---- events ---- */

static enum ctf_source source_of(const struct hs_rec_alloc *r)
{
	/* Outside of the heap: what a custom block holds, a mapped file. */
	if (r->source == SONDE_SRC_CUSTOM || r->source == SONDE_SRC_MAP_FILE)
		return CTF_EXTERNAL;
	return r->heap == HS_HEAP_MINOR ? CTF_MINOR : CTF_MAJOR;
}

static int on_alloc(struct ctf_sink *s, const struct hs_rec_alloc *r, const struct stack *stack)
{
	struct ctf_timed e = {
		.time_us = wall_us(s, r->h.time_ns),
		.what = CTF_WHAT_ALLOC,
		.stream = ctf_writer__stream(s->writer, r->h.domain),
		.alloc = {
			.size_words = r->size_words < CTF_INT_MAX ? r->size_words : CTF_INT_MAX,
			.n_samples = ctf_rates__samples(s->rates, r->h.domain, r->id, r->n_samples),
			.source = source_of(r),
			.stack = ctf_stacks__find(s->stacks, stack, r->stack_hash != 0),
		},
	};

	bool is_new;

	/* One that counts nothing at the trace's rate, or a second one of the same name. */
	if (!e.alloc.n_samples)
		return 0;
	if (!r->is_tracked)
		return block_table__find(s->blocks, r->id) ? 0 : put(s, &e);
	e.block = block_table__add(s->blocks, r->id, &is_new);
	if (!e.block)
		return -ENOMEM;
	if (!is_new)
		return 0;
	e.block->stream = e.stream;
	e.block->can_promote = e.alloc.source == CTF_MINOR;
	return put(s, &e);
}

static int on_block(struct ctf_sink *s, const struct hs_event *event)
{
	const struct hs_rec_block *r = event->block;
	struct ctf_block *block = block_table__find(s->blocks, r->id);
	struct ctf_timed e = {
		.time_us = wall_us(s, r->h.time_ns),
		.block = block,
		.block_id = r->id,
	};

	/* Allocated before the recording, left out, or dead already. */
	if (!block || block->is_dead)
		return 0;
	e.stream = block->stream;
	if (event->type == HS_REC_PROMOTE) {
		if (!block->can_promote)
			return 0;
		block->can_promote = false;
		e.what = CTF_WHAT_PROMOTE;
	} else {
		block->is_dead = true;
		e.what = event->type == HS_REC_DEALLOC ? CTF_WHAT_COLLECT : CTF_WHAT_FORGET;
	}
	return put(s, &e);
}

/* ---- the sink ---- */

static bool is_rate(double rate)
{
	return rate > 0 && rate <= 1;
}

static int on_header(struct ctf_sink *s, json_t *object)
{
	json_int_t time_ns = json_integer_value(json_object_get(object, "time"));

	if (s->header)
		return 0;
	s->header = json_incref(object);
	s->to_wall_ns = json_integer_value(json_object_get(object, "wall_offset"));
	s->start_us = wall_us(s, time_ns > 0 ? (uint64_t)time_ns : 0);
	return 0;
}

static int ctf_sink__json(struct sink *base, json_t *object)
{
	struct ctf_sink *s = (struct ctf_sink *)base;
	const char *type = text_of(object, "type");
	double rate = json_number_value(json_object_get(object, "rate"));

	if (!strcmp(type, "header"))
		return on_header(s, object);
	if (!strcmp(type, "profile") && !s->has_profile && is_rate(rate)) {
		s->has_profile = true;
		ctf_rates__set_first(s->rates, rate);
		if (!s->has_rate)
			ctf_rates__set_trace(s->rates, rate);
	}
	return 0;
}

static int ctf_sink__stack(struct sink *base, const struct hs_event *event,
			   const struct stack *stack)
{
	(void)event;
	return ctf_stacks__learn(((struct ctf_sink *)base)->stacks, stack);
}

static int ctf_sink__event(struct sink *base, const struct hs_event *event,
			   const struct stack *stack)
{
	struct ctf_sink *s = (struct ctf_sink *)base;

	switch (event->type) {
	case HS_REC_ALLOC:
		return on_alloc(s, event->alloc, stack);
	case HS_REC_PROMOTE:
	case HS_REC_DEALLOC:
	case HS_REC_UNKNOWN:
		return on_block(s, event);
	case HS_REC_RATE:
		return ctf_rates__change(s->rates, event->h->domain, decode__rate(event->rate));
	case HS_REC_DOMAIN_TERMINATE:
		ctf_rates__end(s->rates, event->h->domain);
		return 0;
	default:
		return 0;
	}
}

static int ctf_sink__flush(struct sink *base)
{
	struct ctf_sink *s = (struct ctf_sink *)base;
	int ret = 0;

	while (!ret && !ctf_order__is_empty(s->order))
		ret = write_one(s);
	if (!ret && !s->has_begun)
		ret = begin(s, s->start_us);
	return ret ? ret : ctf_writer__flush(s->writer);
}

static void ctf_sink__free(struct sink *base)
{
	struct ctf_sink *s = (struct ctf_sink *)base;

	ctf_writer__free(s->writer);
	block_table__free(s->blocks);
	ctf_order__free(s->order);
	ctf_rates__free(s->rates);
	ctf_stacks__free(s->stacks);
	json_decref(s->header);
	fclose(s->f);
	free(s);
}

static const struct sink_ops ctf_ops = {
	.json = ctf_sink__json,
	.stack = ctf_sink__stack,
	.event = ctf_sink__event,
	.flush = ctf_sink__flush,
	.free = ctf_sink__free,
};

static int make_parts(struct ctf_sink *s, const struct export_options *o)
{
	int ret = ctf_stacks__new(&s->stacks);
	double rate;

	if (!ret)
		ret = ctf_rates__new(&s->rates);
	if (!ret)
		ret = ctf_order__new(&s->order);
	if (!ret)
		ret = block_table__new(&s->blocks, sizeof(struct ctf_block));
	if (!ret)
		ret = ctf_writer__new(&s->writer, s->f, s->stacks, o->ctf_version);
	if (ret)
		return ret;
	rate = o->input ? ctf_scan__highest_rate(o->input) : 0;
	s->has_rate = rate > 0;
	if (s->has_rate)
		ctf_rates__set_trace(s->rates, rate);
	return 0;
}

static int open_ctf(struct sink **out, FILE *f, const struct export_options *o)
{
	struct ctf_sink *s = calloc(1, sizeof(*s));
	int ret;

	if (!s) {
		fclose(f);
		return -ENOMEM;
	}
	s->base.ops = &ctf_ops;
	s->f = f;
	ret = make_parts(s, o);
	if (ret)
		ctf_sink__free(&s->base);
	else
		*out = &s->base;
	return ret;
}

const struct exporter export_ctf = {
	.name = "ctf",
	.about = "trace for memtrace's tools and memtrace-viewer",
	.suffix = ".ctf",
	.is_binary = true,
	.open = open_ctf,
};
