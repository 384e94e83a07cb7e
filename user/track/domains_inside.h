/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the book of domains, for the files that are one with it.
 *
 * In:   domains.c, which keeps it.
 * Out:  domains_json.c, which shows it.
 */
#ifndef HEAPSONDE_DOMAINS_INSIDE_H
#define HEAPSONDE_DOMAINS_INSIDE_H

#include "user/track/domains.h"

struct domain_book {
	struct domain_entry *entries; /* by unique id; DOMAIN_NONE last, if at all */
	size_t n_entries;
	size_t room;
	uint32_t next_change;    /* unique id: where domain_book__each_change goes on */
	size_t n_folded;         /* terminated domains without an entry */
	struct hs_domain folded; /* their sums */
};

/* Does the profile sample this domain? */
static inline bool is_sampled(const struct hs_domain *d)
{
	return d->flags & HS_DOMAIN_COVERED && d->flags & HS_DOMAIN_BASED;
}

#endif /* HEAPSONDE_DOMAINS_INSIDE_H */
