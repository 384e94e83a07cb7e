/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many major cycles have ended, in one count for all domains.
 *
 * In:   each domain's own count, from its records: it begins with the domain, or long
 *       before the recording.
 * Out:  the cycles that have ended since the recording began, as far as records tell.
 *
 * A domain's records come in order, those of different domains do not: as a cycle ends,
 * one has told its deaths and the end of the cycle when another has not yet told its
 * deaths. So what happens in a domain is dated by that domain's count.
 */
#ifndef HEAPSONDE_CYCLES_H
#define HEAPSONDE_CYCLES_H

#include <stdbool.h>
#include <stdint.h>

struct cycle_count;

/* Errors: -ENOMEM. */
int cycle_count__new(struct cycle_count **out);

/* NULL is fine. */
void cycle_count__free(struct cycle_count *c);

/*
 * A domain says that so many cycles have ended for it. is_end: because one has just ended.
 * Where a domain is new its count says how far it is ahead or behind, and nothing about
 * cycles, unless it is the first one to say that one ended: so a cycle may be missed when
 * domains come and go, but none is counted that was not.
 */
void cycle_count__told(struct cycle_count *c, uint32_t domain, uint64_t n_own, bool is_end);

/* The domain has terminated. */
void cycle_count__forget(struct cycle_count *c, uint32_t domain);

/* Has this domain told its count? */
bool cycle_count__knows(const struct cycle_count *c, uint32_t domain);

/* Cycles that have ended, in all; and as far as a domain has told (in all, if it is not known). */
uint32_t cycle_count__all(const struct cycle_count *c);
uint32_t cycle_count__of(const struct cycle_count *c, uint32_t domain);

#endif /* HEAPSONDE_CYCLES_H */
