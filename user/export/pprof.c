/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof: a gzipped profile.proto, for `go tool pprof` and what else reads it.
 *
 * In:   the cells of the sampled heap, what the capture says of itself.
 * Out:  a sample for each cell, with the four values of Go's heap profiles; labels
 *       domain and source. docs/export.md tells what they mean.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "user/decode/decode.h"
#include "user/export/ordered.h"
#include "user/export/export.h"
#include "user/export/pprof.h"

#define WORD_BYTES 8
#define DEPTH_MAX SONDE_STACK_MAX

/* The values about what was allocated come first. */
enum { N_VALUES_ALLOC = 2, N_VALUES = 4, N_LABELS = 2 };

static const char *const value_types[N_VALUES][2] = {
	{ "alloc_objects", "count" },
	{ "alloc_space", "bytes" },
	{ "inuse_objects", "count" },
	{ "inuse_space", "bytes" },
};

/* To the nearest integer; what differences of sums left below 0 is nothing. */
static int64_t rounded(double value)
{
	if (!(value > 0))
		return 0;
	return value < 0x1p63 ? (int64_t)llround(value) : INT64_MAX;
}

/* What lives is not known of blocks that were not followed: then it is left out. */
static size_t n_values(const struct replay *r)
{
	return replay__follows(r) ? N_VALUES : N_VALUES_ALLOC;
}

/* ---- what is said once ---- */

static void write_types(struct pprof *p, const struct replay *r, const struct export_options *o)
{
	Perftools__Profiles__ValueType types[N_VALUES],
		period = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
	Perftools__Profiles__Profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__ValueType *list[N_VALUES];
	double rate = heap__rate(r->heap);

	for (int i = 0; i < N_VALUES; i++) {
		perftools__profiles__value_type__init(&types[i]);
		types[i].type = pprof__string(p, value_types[i][0]);
		types[i].unit = pprof__string(p, value_types[i][1]);
		list[i] = &types[i];
	}
	m.n_sample_type = n_values(r);
	m.sample_type = list;
	m.default_sample_type =
		pprof__string(p, o->metric == ROWS_LIVE ? "inuse_space" : "alloc_space");
	if (!(rate > 0))
		rate = json_number_value(json_object_get(r->header, "rate"));
	if (rate > 0) {
		period.type = pprof__string(p, "space");
		period.unit = pprof__string(p, "bytes");
		m.period_type = &period;
		m.period = rounded(WORD_BYTES / rate);
	}
	pprof__write(p, &m);
}

static json_int_t integer_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

static void write_times(struct pprof *p, const struct replay *r)
{
	Perftools__Profiles__Profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	int64_t begin = integer_of(r->header, "time");
	int64_t end = integer_of(r->summary, "time");

	/* A capture that was cut ends with its last event. */
	if (end <= 0)
		end = (int64_t)heap__last_ns(r->heap);
	if (begin > 0 && end > begin)
		m.duration_nanos = end - begin;
	if (begin <= 0 ||
	    __builtin_add_overflow(begin, integer_of(r->header, "wall_offset"), &m.time_nanos))
		m.time_nanos = 0;
	pprof__write(p, &m);
}

static void __attribute__((format(printf, 2, 3))) comment(struct pprof *p, const char *fmt, ...)
{
	Perftools__Profiles__Profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	char *text = NULL;
	int64_t number;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0) {
		text = NULL;
		p->err = p->err ? p->err : -ENOMEM;
	}
	va_end(ap);
	number = pprof__string(p, text);
	free(text);
	m.n_comment = 1;
	m.comment = &number;
	pprof__write(p, &m);
}

static void write_comments(struct pprof *p, const struct replay *r)
{
	const char *command = json_string_value(json_object_get(r->header, "command"));
	const char *version = json_string_value(json_object_get(r->header, "heapsonde"));
	const char *cause;
	json_t *count;

	if (command)
		comment(p, "command: %s", command);
	comment(p, "pid %" JSON_INTEGER_FORMAT ", recorded by heapsonde %s",
		integer_of(r->header, "pid"), version ? version : "(unknown)");
	comment(p, "values are estimates from samples");
	comment(p, "blocks allocated before the recording began are in no figure, inuse included");
	if (r->is_cut)
		comment(p, "the capture was cut off: what came later is missing");
	json_object_foreach (r->lost, cause, count)
		comment(p, "lost: %" JSON_INTEGER_FORMAT " %s", json_integer_value(count), cause);
}

/* ---- samples ---- */

/* The labels of a cell, in labels[]; list[] points to them. Returns how many. */
static size_t label(struct pprof *p, const struct heap_cell *c,
		    Perftools__Profiles__Label labels[N_LABELS],
		    Perftools__Profiles__Label *list[N_LABELS])
{
	for (int i = 0; i < N_LABELS; i++) {
		perftools__profiles__label__init(&labels[i]);
		list[i] = &labels[i];
	}
	labels[0].key = pprof__string(p, "domain");
	if (c->domain == HEAP_DOMAIN_OTHERS) {
		labels[0].str = pprof__string(p, "others");
	} else {
		/* With a unit: readers drop a number 0 that has none. */
		labels[0].num = c->domain;
		labels[0].num_unit = pprof__string(p, "domain");
	}
	labels[1].key = pprof__string(p, "source");
	labels[1].str = pprof__string(p, decode__source_name(c->source));
	return N_LABELS;
}

/* The locations of the stack that was written last: the next cell often has the same. */
struct located {
	const struct heap_cell *cell; /* NULL: none yet */
	size_t n;
	uint64_t ids[DEPTH_MAX];
};

static void locate(struct pprof *p, const struct heap_cell *c, struct located *l)
{
	const char *placeholder = ordered__placeholder(c);

	if (l->cell && l->cell->stack == c->stack && l->cell->is_stack_lost == c->is_stack_lost)
		return;
	l->cell = c;
	if (placeholder) {
		l->ids[0] = pprof__placeholder(p, placeholder);
		l->n = 1;
		return;
	}
	for (l->n = 0; l->n < c->stack->depth && l->n < DEPTH_MAX; l->n++)
		l->ids[l->n] = pprof__location(p, &c->stack->frames[l->n]);
}

static void write_sample(struct pprof *p, const struct heap_cell *c, struct located *l,
			 size_t n_value)
{
	int64_t values[N_VALUES] = {
		rounded(c->tally.allocated.blocks),
		rounded(c->tally.allocated.words * WORD_BYTES),
		rounded(c->tally.live.blocks),
		rounded(c->tally.live.words * WORD_BYTES),
	};
	Perftools__Profiles__Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT;
	Perftools__Profiles__Profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Label labels[N_LABELS], *label_list[N_LABELS];
	Perftools__Profiles__Sample *list = &sample;

	locate(p, c, l);
	sample.n_location_id = l->n;
	sample.location_id = l->ids;
	sample.n_value = n_value;
	sample.value = values;
	sample.n_label = label(p, c, labels, label_list);
	sample.label = label_list;
	m.n_sample = 1;
	m.sample = &list;
	pprof__write(p, &m);
}

static void write_samples(struct pprof *p, const struct replay *r)
{
	const struct heap_cell **cells = NULL;
	long n = ordered__cells(&cells, r->heap);
	struct located located = { .cell = NULL };

	if (n < 0)
		p->err = p->err ? p->err : (int)n;
	for (long i = 0; i < n && !p->err; i++)
		write_sample(p, cells[i], &located, n_values(r));
	free(cells);
}

static int pprof_write(FILE *f, const struct replay *r, const struct export_options *o,
		       struct hs_error *err)
{
	struct pprof p;
	int ret;

	if (!pprof__init(&p, f)) {
		write_types(&p, r, o);
		write_times(&p, r);
		pprof__mappings(&p, r->header);
		write_comments(&p, r);
		write_samples(&p, r);
	}
	ret = p.err ? p.err : gzip__finish(p.out);
	pprof__deinit(&p);
	if (ret)
		return hs_error__set(err, ret, "cannot write the profile: %s", strerror(-ret));
	return 0;
}

const struct exporter export_pprof = {
	.name = "pprof",
	.about = "profile.proto, for go tool pprof",
	.suffix = ".pb.gz",
	.metrics = 1u << ROWS_ALLOC | 1u << ROWS_LIVE,
	.is_binary = true,
	.write = pprof_write,
};
