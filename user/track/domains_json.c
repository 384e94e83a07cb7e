/* SPDX-License-Identifier: BSD-2-Clause */
/* The book of domains as JSON, for the summary; see domains.h. */
#include "user/decode/decode.h"
#include "user/sinks/json.h"
#include "user/track/domains_inside.h"

/* Add what was counted to o, which this takes over. NULL if memory is short. */
static json_t *with_counts(json_t *o, const struct hs_domain *d, const struct hs_counts *end)
{
	json_t *rest;

	if (!o || json__add_counts(o, "", &d->now) || json__add_counts(o, "base_", &d->base) ||
	    json__add_counts(o, "end_", end))
		goto fail;
	rest = json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I}", "samples_hit", (json_int_t)d->samples_hit,
		"samples_left_out", (json_int_t)d->samples_left_out, "samples_kept",
		(json_int_t)d->samples_kept, "samples_lost", (json_int_t)d->lost[HS_LOSS_RING_FULL],
		"records", (json_int_t)d->records_kept, "tracked", (json_int_t)d->tracked);
	if (!rest || json_object_update(o, rest)) {
		json_decref(rest);
		goto fail;
	}
	json_decref(rest);
	return o;
fail:
	json_decref(o);
	return NULL;
}

/*
 * Sampled blocks that a domain may have had ready and not handed over: all but one of
 * a batch (runtime/abi.h), if it was still running, as far as its records say.
 */
static uint32_t waiting_max(const struct hs_domain *d)
{
	if (!is_sampled(d) || d->flags & (HS_DOMAIN_TERMINATED | HS_DOMAIN_EXITED))
		return 0;
	return SONDE_BATCH_MAX - 1;
}

uint64_t domain_book__waiting_max(const struct domain_book *b)
{
	uint64_t blocks = 0;

	for (size_t i = 0; i < b->n_entries; i++)
		blocks += waiting_max(&b->entries[i].now);
	return blocks;
}

static json_t *entry_to_json(const struct domain_entry *e)
{
	const struct hs_domain *d = &e->now;
	bool has_rate = is_sampled(d) && e->rate > 0;

	return with_counts(
		json_pack("{s:I, s:s, s:b, s:o, s:I}", "domain", (json_int_t)e->unique_id, "state",
			  d->flags & HS_DOMAIN_TERMINATED ? "terminated" : "alive", "sampled",
			  is_sampled(d), "rate", has_rate ? json_real(e->rate) : json_null(),
			  "waiting_max", (json_int_t)waiting_max(d)),
		d, d->flags & HS_DOMAIN_ENDED ? &d->end : &d->now);
}

json_t *domain_book__folded_to_json(const struct domain_book *b)
{
	if (!b->n_folded)
		return json_null();
	return with_counts(json_pack("{s:I}", "count", (json_int_t)b->n_folded), &b->folded,
			   &b->folded.end);
}

json_t *domain_book__to_json(const struct domain_book *b)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < b->n_entries; i++) {
		if (b->entries[i].unique_id == DOMAIN_NONE)
			continue;
		if (json_array_append_new(array, entry_to_json(&b->entries[i]))) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

json_t *domain_book__losses_to_json(const struct domain_book *b, bool want_real)
{
	json_t *object = json_object();

	for (int cause = 0; object && cause < HS_LOSS_CAUSES; cause++) {
		uint64_t n = domain_book__lost(b, cause);

		if (n && decode__loss_is_real(cause) == want_real &&
		    json_object_set_new(object, decode__loss_name(cause),
					json_integer((json_int_t)n))) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}
