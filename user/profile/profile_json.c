/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of a profile that have no fixed form: header, profile, summary.
 *
 * In:   the profile.
 * Out:  JSON objects, for the sink. Members: docs/records.md.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "user/collect/collect.h"
#include "user/common/clock.h"
#include "user/profile/profile.h"
#include "user/sinks/json.h"

static json_int_t wall_offset_ns(void)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	return (json_int_t)wall.tv_sec * 1000000000 + wall.tv_nsec - (json_int_t)clock__now_ns();
}

/* More than any program has that is not made for it. */
#define MAPPINGS_MAX 256

static json_t *hex(const uint8_t *bytes, size_t n)
{
	char text[2 * 64 + 1];

	if (!n || 2 * n >= sizeof(text))
		return json_null();
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return json_string(text);
}

static int add_mapping(void *ctx, const struct symbolizer_mapping *m)
{
	json_t *o = json_pack("{s:I, s:I, s:I, s:o, s:o}", "start", (json_int_t)m->start, "end",
			      (json_int_t)m->end, "offset", (json_int_t)m->offset, "file",
			      json__text(m->file), "build_id", hex(m->build_id, m->n_build_id));

	return json_array_append_new(ctx, o) ? -ENOMEM : 0;
}

/* Beyond INT64_MAX, in the kernel's half, there are no files. */
static json_t *mappings(const struct symbolizer *s)
{
	json_t *array = json_array();

	if (array && symbolizer__mappings(s, MAPPINGS_MAX, add_mapping, array)) {
		json_decref(array);
		return NULL;
	}
	return array;
}

static json_t *host(void)
{
	char name[HOST_NAME_MAX + 1] = "";

	return gethostname(name, sizeof(name) - 1) ? json_null() : json__text(name);
}

json_t *profile_json__header(const struct profile *p)
{
	const struct attach_options *a = &p->options->attach;
	const struct target *t = p->target;

	return json_pack(
		"{s:s, s:i, s:s, s:s, s:I, s:o, s:o, s:s, s:f, s:i, s:I, s:s, s:s, s:I, s:I, "
		"s:o, s:o}",
		"type", "header", "version", 1, "heapsonde", HEAPSONDE_VERSION, "kernel",
		p->kernel->release, "pid", (json_int_t)t->pid, "command", json__text(t->command),
		"exe", json__text(t->exe), "ocaml", t->registry.ocaml_version, "rate", a->tier.rate,
		"tier", (int)a->tier.tier, "stack_depth", (json_int_t)a->stack_depth, "track",
		p->options->track, "clock", "CLOCK_MONOTONIC", "time", (json_int_t)p->begin_ns,
		"wall_offset", wall_offset_ns(), "host", host(), "mappings",
		mappings(p->pipeline.symbolizer));
}

static json_t *listed_domains(const struct attach_options *a)
{
	json_t *domains = json_array();

	for (size_t i = 0; i < a->n_domains; i++)
		json_array_append_new(domains, json_integer(a->domains[i]));
	return domains;
}

json_t *profile_json__profile(const struct profile *p)
{
	const struct attach_options *a = &p->options->attach;
	bool is_first = p->state == PROFILE_SAMPLING && !p->n_changes;
	/* Of a stop when it began: from then on things are left out, before this is written. */
	uint64_t time_ns = is_first                       ? p->begin_ns
			   : p->state == PROFILE_SAMPLING ? clock__now_ns()
							  : p->until_ns;
	json_t *o = json_pack("{s:s, s:I, s:f, s:s, s:I}", "type", "profile", "profile",
			      (json_int_t)a->number, "rate", p->rate, "state",
			      p->state == PROFILE_SAMPLING ? "sampling" : "stopped", "time",
			      (json_int_t)time_ns);

	if (o && p->state != PROFILE_SAMPLING)
		json_object_set_new(o, "reason", json_string(end_reason__text(p->reason)));
	if (o && a->domains)
		json_object_set_new(o, "domains", listed_domains(a));
	return o;
}

json_t *profile_json__lost(const struct profile *p)
{
	json_t *lost = domain_book__losses_to_json(p->book, true);
	const struct {
		const char *name;
		uint64_t n;
	} ours[] = {
		{ "missed_hits", p->missed },
		{ "malformed", collector__malformed(p->collector) },
		{ "stack_unknown", p->pipeline.stacks_unknown },
	};

	for (size_t i = 0; lost && i < sizeof(ours) / sizeof(ours[0]); i++)
		if (ours[i].n)
			json_object_set_new(lost, ours[i].name,
					    json_integer((json_int_t)ours[i].n));
	return lost;
}

json_t *profile_json__summary(const struct profile *p)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "type", "summary",
			 "reason", end_reason__text(p->reason), "time", (json_int_t)clock__now_ns(),
			 "sampled_until", (json_int_t)p->until_ns, "allocs",
			 (json_int_t)p->pipeline.n_allocs, "domains", domain_book__to_json(p->book),
			 "folded", domain_book__folded_to_json(p->book), "lost",
			 profile_json__lost(p), "degraded",
			 domain_book__losses_to_json(p->book, false));
}
