/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file that speedscope (the flame graph in a browser) has for its own.
 *
 * In:   the cells of the sampled heap.
 * Out:  a JSON file: the frames, then for each metric a profile of kind "sampled", whose
 *       samples are the stacks that have words, outermost frame first, and whose weights
 *       are their bytes.
 *
 * It is printed piece by piece: only names go through jansson.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "user/export/ordered.h"
#include "user/export/export.h"
#include "user/export/ids.h"
#include "user/sinks/json.h"

#define WORD_BYTES 8
/* Integers; beyond 2^53 with an exponent, because readers refuse integers of 64 bits and more. */
#define NUMBER "%.17g"
#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

/* In the order of the file; what speedscope shows as the profile's name. */
static const struct {
	enum rows_metric metric;
	const char *name;
} profiles[] = {
	{ ROWS_ALLOC, "allocated" },
	{ ROWS_LIVE, "live, of what was allocated since the recording began" },
	{ ROWS_PROMOTED, "promoted" },
	{ ROWS_SURVIVORS, "survivors of major cycles, of what was allocated since then" },
};

enum { N_PROFILES = sizeof(profiles) / sizeof(profiles[0]) };

/* One stack: its frames as numbers, and what it weighs. */
struct weighed {
	size_t first; /* in `frames` of struct scope */
	size_t n;
	double bytes[N_PROFILES]; /* integers */
};

struct scope {
	FILE *f;
	struct id_table *ids;
	uint32_t *frames; /* of all stacks, outermost first */
	size_t n_frames;
	size_t room;
	struct weighed *stacks;
	size_t n_stacks;
};

/* A JSON string with its quotes. -ENOMEM. */
static int print_text(FILE *f, const char *text)
{
	json_t *string = json__text(text);
	char *quoted = json_dumps(string, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

	json_decref(string);
	if (!quoted)
		return -ENOMEM;
	fputs(quoted, f);
	free(quoted);
	return 0;
}

/* ---- frames ---- */

static int print_frame(struct scope *s, const struct hs_location *l, bool is_first)
{
	int err;

	fputs(is_first ? "\n{\"name\":" : ",\n{\"name\":", s->f);
	err = print_text(s->f, ordered__function(l));
	if (!err && l->file) {
		fputs(",\"file\":", s->f);
		err = print_text(s->f, l->file);
	}
	if (l->line)
		fprintf(s->f, ",\"line\":%" PRIu32, l->line);
	putc('}', s->f);
	return err;
}

/*
 * Note a frame as the next one of its stack, and print it if it is new. A frame is a
 * function, a file and a line, so that a function that allocates in two places has two.
 */
static int take_frame(struct scope *s, const struct hs_location *l)
{
	/* Names are interned: equal ones have the same address. */
	const uint64_t key[] = { (uintptr_t)l->function, (uintptr_t)l->file, l->line };
	bool is_new;
	int64_t id = id_table__of(s->ids, key, sizeof(key), &is_new);

	if (id < 0)
		return (int)id;
	if (s->n_frames == s->room) {
		size_t room = s->room ? 2 * s->room : 4096;
		uint32_t *grown = realloc(s->frames, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		s->frames = grown;
		s->room = room;
	}
	s->frames[s->n_frames++] = (uint32_t)id;
	return is_new ? print_frame(s, l, !id) : 0;
}

static int take_stack(struct scope *s, const struct heap_cell *cell)
{
	const struct hs_location placeholder = { .function = ordered__placeholder(cell) };
	int err = 0;

	if (placeholder.function)
		return take_frame(s, &placeholder);
	for (uint32_t i = cell->stack->depth; i-- > 0 && !err;) {
		const struct stack_frame *frame = &cell->stack->frames[i];

		for (size_t j = frame->n_locations; j-- > 0 && !err;)
			err = take_frame(s, &frame->locations[j]);
	}
	return err;
}

static double bytes_of(const struct amount *amount)
{
	double bytes = rint(amount->words * WORD_BYTES);

	return bytes > 0 ? bytes : 0;
}

static int take_cells(struct scope *s, const struct heap_cell *const *cells, size_t n)
{
	struct tally sum;
	int err = 0;

	for (size_t i = 0, next; i < n && !err; i = next) {
		struct weighed *w = &s->stacks[s->n_stacks++];

		next = ordered__same_stack(cells, n, i, &sum);
		w->first = s->n_frames;
		err = take_stack(s, cells[i]);
		w->n = s->n_frames - w->first;
		for (int k = 0; k < N_PROFILES; k++)
			w->bytes[k] = bytes_of(rows__amount(&sum, profiles[k].metric));
	}
	return err;
}

static int print_frames(struct scope *s, const struct heap *h)
{
	const struct heap_cell **cells = NULL;
	long n = ordered__cells(&cells, h);
	int err;

	if (n < 0)
		return (int)n;
	s->stacks = calloc((size_t)n + 1, sizeof(*s->stacks));
	err = s->stacks ? take_cells(s, cells, (size_t)n) : -ENOMEM;
	free(cells);
	return err;
}

/* ---- profiles ---- */

static void print_sample(const struct scope *s, const struct weighed *w)
{
	putc('[', s->f);
	for (size_t i = 0; i < w->n; i++)
		fprintf(s->f, i ? ",%" PRIu32 : "%" PRIu32, s->frames[w->first + i]);
	putc(']', s->f);
}

static int print_profile(const struct scope *s, int k)
{
	const char *comma = "\n";
	double total = 0;
	int err;

	for (size_t i = 0; i < s->n_stacks; i++)
		total += s->stacks[i].bytes[k];
	fputs("{\"type\":\"sampled\",\"name\":", s->f);
	err = print_text(s->f, profiles[k].name);
	fprintf(s->f, ",\"unit\":\"bytes\",\"startValue\":0,\"endValue\":" NUMBER ",\"samples\":[",
		total);
	for (size_t i = 0; i < s->n_stacks; i++) {
		if (s->stacks[i].bytes[k] <= 0)
			continue;
		fputs(comma, s->f);
		comma = ",\n";
		print_sample(s, &s->stacks[i]);
	}
	fputs("],\"weights\":[", s->f);
	comma = "\n";
	for (size_t i = 0; i < s->n_stacks; i++) {
		if (s->stacks[i].bytes[k] <= 0)
			continue;
		fprintf(s->f, "%s" NUMBER, comma, s->stacks[i].bytes[k]);
		comma = ",\n";
	}
	fputs("]}", s->f);
	return err;
}

/* What the capture does not tell has no profile: an empty one would say that it is nothing. */
static bool is_known(const struct replay *r, int k)
{
	struct hs_error err;

	return !replay__can_answer(r, profiles[k].metric, &err);
}

/* The number of the metric's profile in the file. */
static int active_profile(const struct replay *r, enum rows_metric metric)
{
	int n = 0;

	for (int k = 0; k < N_PROFILES; k++) {
		if (profiles[k].metric == metric)
			return n;
		n += is_known(r, k);
	}
	return 0;
}

static int print_all(struct scope *s, const struct replay *r, const struct export_options *o)
{
	const char *command = json_string_value(json_object_get(r->header, "command"));
	int err = id_table__new(&s->ids);

	if (err)
		return err;
	fputs("{\"$schema\":\"" SCHEMA "\",\"exporter\":\"heapsonde " HEAPSONDE_VERSION
	      "\",\n\"name\":",
	      s->f);
	err = print_text(s->f, command ? command : o->input ? o->input : "heapsonde");
	fprintf(s->f, ",\"activeProfileIndex\":%d,\n\"shared\":{\"frames\":[",
		active_profile(r, o->metric));
	if (!err)
		err = print_frames(s, r->heap);
	fputs("]},\n\"profiles\":[", s->f);
	for (int k = 0; k < N_PROFILES && !err; k++) {
		if (!is_known(r, k))
			continue;
		fputs(k ? ",\n" : "\n", s->f);
		err = print_profile(s, k);
	}
	fputs("]}\n", s->f);
	return err;
}

static int speedscope_write(FILE *f, const struct replay *r, const struct export_options *o,
			    struct hs_error *err)
{
	struct scope s = { .f = f };
	int ret = print_all(&s, r, o);

	id_table__free(s.ids);
	free(s.frames);
	free(s.stacks);
	return ret ? hs_error__set(err, ret, "cannot write: %s", strerror(-ret)) : 0;
}

const struct exporter export_speedscope = {
	.name = "speedscope",
	.about = "JSON for speedscope, with all metrics",
	.suffix = ".speedscope.json",
	.metrics = EXPORT_METRICS_ALL,
	.write = speedscope_write,
};
