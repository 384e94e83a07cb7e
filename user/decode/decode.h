/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one place that trusts nothing: from bytes to events.
 *
 * In:   bytes that claim to be a record of bpf/records.h, out of the ring buffer
 *       or out of a capture.
 * Out:  struct hs_event, every field of which has been checked, for user/track.
 */
#ifndef HEAPSONDE_DECODE_H
#define HEAPSONDE_DECODE_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/records.h"

/* A checked record. The pointers point into the caller's bytes. */
struct hs_event {
	enum hs_record_type type;
	union {
		const struct hs_record *h; /* always valid */
		const struct hs_rec_alloc *alloc;
		const struct hs_rec_stack *stack;
		const struct hs_rec_block *block;   /* promote, dealloc, unknown */
		const struct hs_rec_domain *domain; /* spawn, terminate, exit, major cycle */
		const struct hs_rec_rate *rate;
	};
};

/*
 * Check len_bytes bytes at data (8-byte aligned) and describe them in *out. The
 * record may be shorter than len_bytes (its own size_bytes tells), never longer.
 * 0, or -EBADMSG if it is no record that the kernel side could have written.
 */
int decode__record(const void *data, size_t len_bytes, struct hs_event *out);

/* The rate that a rate record tells: samples per word, in (0, 1]. */
double decode__rate(const struct hs_rec_rate *rec);

/* The name of a cause of loss in records and messages; static string. */
const char *decode__loss_name(enum hs_loss cause);

/*
 * Does this cause mean that something is missing from the records (true), or
 * only that something came late or twice (false)?
 */
bool decode__loss_is_real(enum hs_loss cause);

/* "normal", "marshal", …; source as in enum sonde_source; static string. */
const char *decode__source_name(unsigned int source);

#endif /* HEAPSONDE_DECODE_H */
