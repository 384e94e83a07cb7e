/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading a capture for a report; see recording.h. */
#include "user/report/recording.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define NS_PER_S 1e9

/* ---- hearing the capture ---- */

static int64_t integer_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static uint64_t time_of(const json_t *object)
{
	int64_t time = integer_of(object, "time");

	return time > 0 ? (uint64_t)time : 0;
}

static int on_json(struct sink *s, json_t *object)
{
	struct recording *rec = (struct recording *)s;
	const char *type = json_string_value(json_object_get(object, "type"));
	const char *state = json_string_value(json_object_get(object, "state"));

	if (type && state && !strcmp(type, "profile") && !strcmp(state, "stopped"))
		rec->stopped_ns = time_of(object);
	return 0;
}

static int on_stack(struct sink *s, const struct hs_event *event, const struct stack *stack)
{
	(void)s;
	(void)event;
	(void)stack;
	return 0;
}

static void on_alloc(struct recording *rec, const struct hs_rec_alloc *alloc)
{
	double rate = pipeline__rate_of(&rec->replay.pipeline, alloc->h.domain);

	rec->n_blocks++;
	if (__builtin_add_overflow(rec->n_samples, alloc->n_samples, &rec->n_samples))
		rec->n_samples = UINT64_MAX;
	if (rec->rate_low <= 0 || rate < rec->rate_low)
		rec->rate_low = rate;
	if (rate > rec->rate_high)
		rec->rate_high = rate;
}

static void on_cycle(struct recording *rec, uint64_t time_ns)
{
	if (!rec->first_cycle_ns || time_ns < rec->first_cycle_ns)
		rec->first_cycle_ns = time_ns;
	if (time_ns > rec->last_cycle_ns)
		rec->last_cycle_ns = time_ns;
}

static int on_event(struct sink *s, const struct hs_event *event, const struct stack *stack)
{
	struct recording *rec = (struct recording *)s;

	(void)stack;
	if (event->type == HS_REC_ALLOC)
		on_alloc(rec, event->alloc);
	else if (event->type == HS_REC_MAJOR_CYCLE)
		on_cycle(rec, event->h->time_ns);
	else if (event->type == HS_REC_EXIT)
		rec->has_exited = true;
	if (event->h->time_ns && (!rec->begin_ns || event->h->time_ns < rec->begin_ns))
		rec->begin_ns = event->h->time_ns;
	if (event->h->time_ns > rec->end_ns)
		rec->end_ns = event->h->time_ns;
	return 0;
}

static int on_flush(struct sink *s)
{
	(void)s;
	return 0;
}

static void on_free(struct sink *s)
{
	(void)s;
}

static const struct sink_ops ops = {
	.json = on_json,
	.stack = on_stack,
	.event = on_event,
	.flush = on_flush,
	.free = on_free,
};

/* ---- header and summary ---- */

/* Cleaned, and kept. NULL: not told, or no memory, which a report can do without. */
static const char *text_of(struct recording *rec, const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_string(value))
		return NULL;
	return text_pool__intern(rec->texts, json_string_value(value), json_string_length(value));
}

static void learn_header(struct recording *rec)
{
	const json_t *header = rec->replay.header, *depth;
	uint64_t time = time_of(header);
	int64_t pid = integer_of(header, "pid");

	if (time)
		rec->begin_ns = time;
	rec->pid = pid > 0 ? (uint64_t)pid : 0;
	rec->wall_offset = integer_of(header, "wall_offset");
	rec->command = text_of(rec, header, "command");
	rec->exe = text_of(rec, header, "exe");
	rec->ocaml = text_of(rec, header, "ocaml");
	rec->track = text_of(rec, header, "track");
	depth = json_object_get(header, "stack_depth");
	rec->has_no_stacks = json_is_integer(depth) && !json_integer_value(depth);
}

/* Words that a domain, or the sum of several, allocated between base and end; NAN: not told. */
static double words_between(const json_t *domain)
{
	static const struct {
		const char *base, *end;
		int sign;
	} counters[] = {
		{ "base_minor_words", "end_minor_words", 1 },
		{ "base_major_words", "end_major_words", 1 },
		{ "base_promoted_words", "end_promoted_words", -1 },
	};
	double words = 0;

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		const json_t *base = json_object_get(domain, counters[i].base);
		const json_t *end = json_object_get(domain, counters[i].end);

		if (!json_is_integer(base) || !json_is_integer(end))
			return NAN;
		words += counters[i].sign *
			 ((double)json_integer_value(end) - (double)json_integer_value(base));
	}
	return words;
}

static bool has_base(const json_t *domain)
{
	return integer_of(domain, "base_minor_words") || integer_of(domain, "base_major_words") ||
	       integer_of(domain, "base_minor_collections");
}

static void learn_summary(struct recording *rec)
{
	const json_t *summary = rec->replay.summary, *domain;
	const json_t *folded = json_object_get(summary, "folded");
	uint64_t time = time_of(summary);
	size_t i;

	rec->words = NAN;
	if (!summary)
		return;
	/* When the program has exited, that was the end; heapsonde notices it later. */
	if (time > rec->begin_ns && !rec->has_exited)
		rec->end_ns = time;
	if (!rec->stopped_ns && integer_of(summary, "sampled_until") > 0)
		rec->stopped_ns = (uint64_t)integer_of(summary, "sampled_until");
	rec->reason = text_of(rec, summary, "reason");
	rec->is_whole = rec->reason && !strcmp(rec->reason, "target exited");
	rec->words = 0;
	json_array_foreach(json_object_get(summary, "domains"), i, domain)
	{
		if (!json_is_true(json_object_get(domain, "sampled")))
			continue;
		rec->words += words_between(domain);
		rec->is_whole = rec->is_whole && !has_base(domain);
	}
	if (json_is_object(folded)) {
		rec->words += words_between(folded);
		rec->is_whole = rec->is_whole && !has_base(folded);
	}
	if (!(rec->words > 0))
		rec->words = NAN;
}

/* ---- all of it ---- */

int recording__read(struct recording *rec, const char *path, const struct heap_options *options,
		    void (*progress)(void *ctx, uint64_t done, uint64_t total), void *progress_ctx,
		    struct hs_error *err)
{
	static const struct heap_options none;
	int ret;

	memset(rec, 0, sizeof(*rec));
	rec->sink.ops = &ops;
	rec->words = NAN;
	rec->texts = text_pool__new();
	if (!rec->texts)
		return hs_error__set(err, -ENOMEM, "out of memory");
	rec->path = text_pool__intern(rec->texts, path, strlen(path));
	rec->replay.path = path;
	rec->replay.sink = &rec->sink;
	rec->replay.heap_options = options ? options : &none;
	rec->replay.progress = progress;
	rec->replay.progress_ctx = progress_ctx;
	ret = replay__run(&rec->replay, err);
	if (ret)
		return ret;
	if (!rec->replay.heap)
		return hs_error__set(err, -ENODATA,
				     "%s was cut off before its header: nothing is in it",
				     rec->path);
	learn_header(rec);
	learn_summary(rec);
	rec->follows = replay__follows(&rec->replay);
	if (!rec->n_blocks)
		rec->rate_low = rec->rate_high = rec->replay.pipeline.rate;
	if (rec->end_ns < rec->begin_ns)
		rec->end_ns = rec->begin_ns;
	return 0;
}

void recording__deinit(struct recording *rec)
{
	replay__deinit(&rec->replay);
	text_pool__free(rec->texts);
	memset(rec, 0, sizeof(*rec));
}

double recording__unseen_rate(const struct recording *rec)
{
	return rec->replay.pipeline.lowest_rate;
}

struct amount recording__missing(const struct recording *rec, const struct tally *t,
				 enum rows_metric metric)
{
	return heap__missing(heap__lost_samples(rec->replay.heap), t, metric != ROWS_ALLOC);
}

uint64_t recording__until_ns(const struct recording *rec)
{
	return rec->stopped_ns > rec->begin_ns && rec->stopped_ns < rec->end_ns ? rec->stopped_ns
										: rec->end_ns;
}

double recording__seconds(const struct recording *rec)
{
	double seconds = (double)(recording__until_ns(rec) - rec->begin_ns) / NS_PER_S;

	/* Something to divide by, also for a capture that was cut after its first record. */
	return seconds > 1e-9 ? seconds : 1e-9;
}
