/* SPDX-License-Identifier: BSD-2-Clause */
/* Checking records; see decode.h. */
#include "user/decode/decode.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>

#include "runtime/abi.h"

/* Numbers are signed 64-bit ones in every output (JSON among them). */
static bool is_number(uint64_t n)
{
	return n <= INT64_MAX;
}

static int check_alloc(const struct hs_rec_alloc *r)
{
	if (r->id == 0 || !is_number(r->id) || r->n_samples == 0 || !is_number(r->n_samples) ||
	    !is_number(r->size_words))
		return -EBADMSG;
	if (r->source >= SONDE_SRC_COUNT || r->heap > HS_HEAP_MAJOR || r->is_tracked > 1)
		return -EBADMSG;
	if (r->depth > SONDE_STACK_MAX || (r->depth == 0) != (r->stack_hash == 0))
		return -EBADMSG;
	return 0;
}

static int check_stack(const struct hs_rec_stack *r)
{
	if (r->depth == 0 || r->depth > SONDE_STACK_MAX || r->hash == 0)
		return -EBADMSG;
	if (r->h.size_bytes != sizeof(*r) + r->depth * sizeof(r->frames[0]))
		return -EBADMSG;
	return 0;
}

static int check_block(const struct hs_rec_block *r)
{
	if (r->id == 0 || !is_number(r->id) || r->heap > HS_HEAP_MAJOR)
		return -EBADMSG;
	return 0;
}

static int check_counts(const struct hs_counts *c)
{
	if (!is_number(c->minor_words) || !is_number(c->promoted_words) ||
	    !is_number(c->major_words) || !is_number(c->minor_collections) ||
	    !is_number(c->major_collections))
		return -EBADMSG;
	return 0;
}

static int check_rate(const struct hs_rec_rate *r)
{
	if (r->tier >= SONDE_TIERS || r->keep_p == 0 || r->keep_p > 1ull << 32)
		return -EBADMSG;
	return check_counts(&r->counts);
}

int decode__record(const void *data, size_t len_bytes, struct hs_event *out)
{
	const struct hs_record *h = data;
	size_t want;

	if (len_bytes < sizeof(*h) || h->size_bytes < sizeof(*h) || h->size_bytes > len_bytes)
		return -EBADMSG;
	if (!is_number(h->time_ns))
		return -EBADMSG;
	switch (h->type) {
	case HS_REC_ALLOC:
		want = sizeof(struct hs_rec_alloc);
		break;
	case HS_REC_STACK:
		/* Its own check compares the size with the depth. */
		if (h->size_bytes < sizeof(struct hs_rec_stack))
			return -EBADMSG;
		want = h->size_bytes;
		break;
	case HS_REC_PROMOTE:
	case HS_REC_DEALLOC:
	case HS_REC_UNKNOWN:
		want = sizeof(struct hs_rec_block);
		break;
	case HS_REC_DOMAIN_SPAWN:
	case HS_REC_DOMAIN_TERMINATE:
	case HS_REC_EXIT:
	case HS_REC_MAJOR_CYCLE:
		want = sizeof(struct hs_rec_domain);
		break;
	case HS_REC_RATE:
		want = sizeof(struct hs_rec_rate);
		break;
	default:
		return -EBADMSG;
	}
	if (h->size_bytes != want)
		return -EBADMSG;

	out->type = h->type;
	out->h = h;
	switch (out->type) {
	case HS_REC_ALLOC:
		return check_alloc(out->alloc);
	case HS_REC_STACK:
		return check_stack(out->stack);
	case HS_REC_PROMOTE:
	case HS_REC_DEALLOC:
	case HS_REC_UNKNOWN:
		return check_block(out->block);
	case HS_REC_RATE:
		return check_rate(out->rate);
	default:
		return check_counts(&out->domain->counts);
	}
}

double decode__rate(const struct hs_rec_rate *rec)
{
	return ldexp((double)rec->keep_p, -32 - (int)rec->tier);
}

const char *decode__loss_name(enum hs_loss cause)
{
	switch (cause) {
	case HS_LOSS_RING_FULL:
		return "ring_full";
	case HS_LOSS_STACK_RING_FULL:
		return "stack_ring_full";
	case HS_LOSS_BLOCKS_FULL:
		return "blocks_full";
	case HS_LOSS_STACKS_FULL:
		return "stacks_resent";
	case HS_LOSS_READ_FAILED:
		return "read_failed";
	case HS_LOSS_FATE_UNKNOWN:
		return "fate_unknown";
	case HS_LOSS_EVENT_RING_FULL:
		return "events_delayed";
	case HS_LOSS_EVENTS_DROPPED:
		return "events_dropped";
	case HS_LOSS_DOMAINS_FULL:
		return "domains_full";
	case HS_LOSS_DOMAINS_SAMPLES:
		return "domains_full_samples";
	case HS_LOSS_STACK_READ:
		return "stack_read_failed";
	case HS_LOSS_GC_READ:
		return "gc_read_failed";
	case HS_LOSS_CAUSES:
		break;
	}
	return "unknown";
}

bool decode__loss_is_real(enum hs_loss cause)
{
	return cause != HS_LOSS_STACKS_FULL && cause != HS_LOSS_EVENT_RING_FULL;
}

const char *decode__source_name(unsigned int source)
{
	static const char *const names[SONDE_SRC_COUNT] = { "normal", "marshal", "custom",
							    "map_file" };

	return source < SONDE_SRC_COUNT ? names[source] : "unknown";
}
