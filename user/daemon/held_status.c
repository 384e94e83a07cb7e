/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can be told of a held profile; see held.h.
 *
 * In:   the profile and its readers.
 * Out:  JSON as docs/protocol.md has it.
 */
#include <stdio.h>
#include <string.h>

#include "user/daemon/held.h"
#include "user/sinks/json.h"

json_t *held__command(const struct target *t)
{
	char text[COMMAND_MAX_BYTES + 1];

	/* A character that is cut in two becomes U+FFFD. */
	snprintf(text, sizeof(text), "%s", t->command);
	return json__text(text);
}

json_t *held__output_error(const struct held *h)
{
	int err = readers__output_error(h->readers);

	return err ? json_string(strerror(-err)) : json_null();
}

json_t *held__lost(const struct held *h)
{
	json_t *lost = profile_json__lost(h->profile);
	const struct consumer_losses of_output = readers__output_losses(h->readers);

	if (lost && consumer_losses__to_json(&of_output, lost)) {
		json_decref(lost);
		return NULL;
	}
	return lost;
}

static const char *state_name(const struct held *h)
{
	switch (h->state) {
	case HELD_RUNNING:
		return h->profile->state == PROFILE_SAMPLING ? "sampling" : "stopped";
	case HELD_ENDING:
		return h->is_discarding ? "discarded" : "stopped";
	case HELD_FINISHED:
		return "finished";
	case HELD_DISCARDED:
		break;
	}
	return "discarded";
}

static json_t *listed(const struct profile_options *o)
{
	json_t *array;

	if (!o->domains)
		return json_null();
	array = json_array();
	for (size_t i = 0; i < o->attach.n_domains; i++)
		json_array_append_new(array, json_integer(o->domains[i]));
	return array;
}

static uint64_t samples(const struct profile *p)
{
	return domain_book__samples(p->book);
}

/* What it was started with. */
static json_t *wishes(const struct held *h)
{
	const struct profile *p = h->profile;
	const struct profile_options *o = &h->request.options;

	return json_pack("{s:I, s:I, s:I, s:o, s:i, s:s, s:b, s:b, s:o, s:I}", "profile",
			 (json_int_t)h->request.profile, "pid", (json_int_t)p->target->pid, "uid",
			 (json_int_t)h->request.uid, "command", held__command(p->target),
			 "stack_depth", (int)o->attach.stack_depth, "track", o->track,
			 "counters_only", h->request.counters_only, "bound", h->request.bound,
			 "listed", listed(o), "time", (json_int_t)p->begin_ns);
}

json_t *held__status(const struct held *h, bool is_full)
{
	const struct profile *p = h->profile;
	json_t *o, *now;

	if (!p) {
		o = json_copy(h->final);
		if (o)
			json_object_set_new(o, "state", json_string(state_name(h)));
		if (o && !is_full)
			json_object_del(o, "domains");
		return o;
	}
	o = wishes(h);
	now = json_pack(
		"{s:s, s:o, s:f, s:i, s:I, s:I, s:f, s:I, s:o, s:o, s:o}", "state", state_name(h),
		"reason", p->reason ? json_string(end_reason__text(p->reason)) : json_null(),
		"rate", h->request.counters_only ? 0.0 : p->rate, "rates", p->n_rates, "records",
		(json_int_t)p->pipeline.n_allocs, "samples", (json_int_t)samples(p), "live_words",
		p->pipeline.sites ? heap__total(p->pipeline.sites)->live.words : 0.0, "followers",
		(json_int_t)readers__n_followers(h->readers), "lost", held__lost(h), "output_bytes",
		readers__has_output(h->readers)
			? json_integer((json_int_t)readers__output_bytes(h->readers))
			: json_null(),
		"output_error", held__output_error(h));
	if (!o || !now || json_object_update(o, now)) {
		json_decref(o);
		o = NULL;
	}
	json_decref(now);
	if (o && is_full)
		json_object_set_new(o, "domains", domain_book__to_json(p->book));
	return o;
}
