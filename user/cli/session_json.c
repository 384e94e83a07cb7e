/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records that a session writes besides events.
 *
 * In:   struct session.
 * Out:  JSON objects, for the sink. docs/records.md describes them.
 */
#include <string.h>
#include <time.h>

#include "user/cli/record.h"
#include "user/sinks/json.h"

static json_int_t wall_offset_ns(void)
{
	struct timespec wall, mono;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	return ((json_int_t)wall.tv_sec - mono.tv_sec) * 1000000000 + (wall.tv_nsec - mono.tv_nsec);
}

json_t *session_json__header(const struct session *s)
{
	const struct attach_options *a = &s->options->attach;
	const struct target *t = s->target;

	return json_pack(
		"{s:s, s:i, s:s, s:s, s:I, s:o, s:o, s:s, s:f, s:i, s:I, s:s, s:s, s:I, s:I}",
		"type", "header", "version", 1, "heapsonde", HEAPSONDE_VERSION, "kernel",
		s->kernel.release, "pid", (json_int_t)t->pid, "command", json__text(t->command),
		"exe", json__text(t->exe), "ocaml", t->registry.ocaml_version, "rate", a->tier.rate,
		"tier", (int)a->tier.tier, "stack_depth", (json_int_t)a->stack_depth, "track",
		s->options->track, "clock", "CLOCK_MONOTONIC", "time", (json_int_t)s->begin_ns,
		"wall_offset", wall_offset_ns());
}

json_t *session_json__profile(const struct session *s)
{
	const struct attach_options *a = &s->options->attach;
	json_t *domains, *o;

	o = json_pack("{s:s, s:i, s:f, s:s, s:I}", "type", "profile", "profile", 1, "rate",
		      a->tier.rate, "state", "sampling", "time", (json_int_t)s->begin_ns);
	if (!o || !a->domains)
		return o;
	domains = json_array();
	for (size_t i = 0; i < a->n_domains; i++)
		json_array_append_new(domains, json_integer(a->domains[i]));
	json_object_set_new(o, "domains", domains);
	return o;
}

json_t *session_json__loss(uint32_t domain, enum hs_loss cause, uint64_t n)
{
	return json_pack("{s:s, s:o, s:s, s:I, s:I}", "type", "loss", "domain",
			 domain == DOMAIN_NONE ? json_null() : json_integer(domain), "cause",
			 decode__loss_name(cause), "count", (json_int_t)n, "time",
			 (json_int_t)session__now_ns());
}

static const char *reason_text(const struct session *s)
{
	switch (s->reason) {
	case END_INTERRUPTED:
		return "interrupted";
	case END_DURATION:
		return "duration";
	case END_TARGET_EXITED:
		return "target exited";
	case END_TARGET_EXECED:
		return "target executed another program";
	case END_ERROR:
	case END_NONE:
		break;
	}
	return "error";
}

json_t *session_json__summary(const struct session *s, uint64_t missed)
{
	const struct pipeline *p = &s->pipeline;
	json_t *lost = domain_book__losses_to_json(s->book, true);
	const struct {
		const char *name;
		uint64_t n;
	} ours[] = {
		{ "missed_hits", missed },
		{ "malformed", collector__malformed(s->collector) },
		{ "stack_unknown", p->stacks_unknown },
	};

	for (size_t i = 0; lost && i < sizeof(ours) / sizeof(ours[0]); i++)
		if (ours[i].n)
			json_object_set_new(lost, ours[i].name,
					    json_integer((json_int_t)ours[i].n));
	return json_pack("{s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "type", "summary", "reason",
			 reason_text(s), "time", (json_int_t)session__now_ns(), "allocs",
			 (json_int_t)p->n_allocs, "domains", domain_book__to_json(s->book),
			 "folded", domain_book__folded_to_json(s->book), "lost", lost, "degraded",
			 domain_book__losses_to_json(s->book, false));
}
