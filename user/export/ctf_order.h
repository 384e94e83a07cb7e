/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events in the order of their times.
 *
 * In:   events as a recording has them: each domain's nearly in order, those of different
 *       domains not, and some late because a buffer was full.
 * Out:  the same in the order of time, those of the same time as they came in.
 *
 * So many events are held back, whatever their times. What comes later than after that
 * many others cannot be put in order any more.
 */
#ifndef HEAPSONDE_CTF_ORDER_H
#define HEAPSONDE_CTF_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/export/ctf_writer.h"

#define CTF_ORDER_EVENTS 131072u

/* A sampled block that may have further events. */
struct ctf_block {
	uint64_t id;      /* its number in the trace, when its allocation has been written */
	uint64_t last_us; /* time of its last event so far */
	uint16_t stream;
	bool can_promote; /* it is in the minor heap */
	bool is_dead;
};

enum ctf_what { CTF_WHAT_ALLOC, CTF_WHAT_PROMOTE, CTF_WHAT_COLLECT, CTF_WHAT_FORGET };

struct ctf_timed {
	uint64_t time_us;
	uint64_t number;         /* set by ctf_order__put: how many came before */
	struct ctf_block *block; /* NULL: an alloc that nothing follows */
	union {
		struct ctf_alloc alloc;
		uint64_t block_id; /* of others: as the recording has it */
	};
	enum ctf_what what;
	uint16_t stream;
};

struct ctf_order;

/* Errors: -ENOMEM. */
int ctf_order__new(struct ctf_order **out);

/* NULL is fine. */
void ctf_order__free(struct ctf_order *o);

bool ctf_order__is_full(const struct ctf_order *o);
bool ctf_order__is_empty(const struct ctf_order *o);

/* Take in an event; there must be room. */
void ctf_order__put(struct ctf_order *o, const struct ctf_timed *event);

/* The earliest one, to *event; there must be one. */
void ctf_order__take(struct ctf_order *o, struct ctf_timed *event);

#endif /* HEAPSONDE_CTF_ORDER_H */
