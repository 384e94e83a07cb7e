/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The book of domains: their counters and losses, past their end.
 *
 * In:   the kernel's table of domains (user/collect/collect.h), read now and then.
 * Out:  what changed since the last time, for loss and counters records and `stat`;
 *       all of it, for the summary.
 */
#ifndef HEAPSONDE_DOMAINS_H
#define HEAPSONDE_DOMAINS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "user/collect/collect.h"

/* Losses that belong to no domain stand under this id. */
#define DOMAIN_NONE UINT32_MAX

/* What a counters record says of a domain. */
struct domain_counters {
	struct hs_counts counts;
	uint64_t samples_kept; /* as in struct hs_domain */
	uint64_t tracked;
};

struct domain_entry {
	uint32_t unique_id;
	struct hs_domain now;
	struct hs_domain before;     /* at the previous domain_book__update */
	struct domain_counters told; /* what is known of it outside */
	double rate;                 /* in force, or the last one; 0: not sampled */
};

struct domain_book;

/* Errors: -ENOMEM. */
int domain_book__new(struct domain_book **out);

/* NULL is fine. */
void domain_book__free(struct domain_book *b);

/*
 * Read the kernel's table for process tgid; forget there what has terminated.
 * Errors: -ENOMEM.
 */
int domain_book__update(struct domain_book *b, const struct attachment *a, pid_t tgid);

/* The entries, by unique id; owned by b, valid until the next update. */
size_t domain_book__entries(const struct domain_book *b, const struct domain_entry **out);

/* How many domains have no entry any more; *sums: their counters. */
size_t domain_book__folded(const struct domain_book *b, struct hs_counts *sums);

/* Does the profile cover this domain, and is it there? */
bool domain_entry__is_covered(const struct domain_entry *e);

/* Have all domains that the profile covered terminated (and was there one)? */
bool domain_book__all_gone(const struct domain_book *b);

/*
 * Call each(ctx, domain, cause, n) for what was lost between the last two
 * updates; n in the unit of the cause. Stops at the first non-zero return and
 * returns it.
 */
int domain_book__each_loss(const struct domain_book *b,
			   int (*each)(void *ctx, uint32_t domain, enum hs_loss cause, uint64_t n),
			   void *ctx);

/*
 * Call each(ctx, domain, counters) for the domains whose counters differ from what was
 * told of them last, and take them for told. As of the previous update, and of
 * DOMAIN_COUNTERS_MAX domains at most, going on next time where this one stopped; with
 * is_last as of the last update, of all. Stops at the first non-zero return and
 * returns it.
 */
#define DOMAIN_COUNTERS_MAX 256
int domain_book__each_change(struct domain_book *b, bool is_last,
			     int (*each)(void *ctx, uint32_t domain,
					 const struct domain_counters *counters),
			     void *ctx);

/* The counts that domains have now need not be told: they had them before. */
void domain_book__skip_counts(struct domain_book *b);

/* Samples kept, over all domains and the whole time. */
uint64_t domain_book__samples(const struct domain_book *b);

/* How much was lost by this cause, over all domains and the whole time. */
uint64_t domain_book__lost(const struct domain_book *b, enum hs_loss cause);

/*
 * Sampled blocks that may be missing at most because their domains had not handed them
 * over yet: of domains that were neither seen to terminate nor to exit.
 */
uint64_t domain_book__waiting_max(const struct domain_book *b);

/*
 * For the summary record: an array of domains; the sums of terminated domains that
 * are too many to keep apart, or JSON null; an object of losses by cause that are
 * real (want_real) or only delays. New references, NULL if memory is short.
 */
json_t *domain_book__to_json(const struct domain_book *b);
json_t *domain_book__folded_to_json(const struct domain_book *b);
json_t *domain_book__losses_to_json(const struct domain_book *b, bool want_real);

#endif /* HEAPSONDE_DOMAINS_H */
