/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does a domain sample already? See held.h.
 *
 * In:   a held profile, the domains that another one wants.
 * Out:  an error that names the domain.
 */
#include <errno.h>
#include <stdlib.h>

#include "user/collect/collect.h"
#include "user/daemon/held.h"

static const struct hs_domain *find_domain(const struct domain_stat *stats, int n, uint32_t id)
{
	for (int i = 0; i < n; i++)
		if (stats[i].unique_id == id)
			return &stats[i].d;
	return NULL;
}

/* The unique id of the parent of a domain that lives; id if that is not known. */
static uint32_t parent_of(const struct target *t, const struct sonde_domain_info *live, int n,
			  uint32_t id)
{
	struct sonde_gc gc;

	for (int i = 0; i < n; i++)
		if (live[i].unique_id == id && !target__counts(t, &live[i], &gc))
			return gc.parent_unique_id;
	return id;
}

/* The domains of a profile, as the kernel knows them, and those that live. */
struct domains {
	const struct target *target;
	struct domain_stat *known;
	struct sonde_domain_info *live;
	int n_known, n_live;
};

/*
 * Does this domain sample? One that the kernel has not heard of, because it has done
 * nothing yet, will join if its parent has, and so on.
 */
static bool does_sample(const struct domains *d, uint32_t id)
{
	for (int steps = 0; steps <= d->n_live; steps++) {
		const struct hs_domain *known = find_domain(d->known, d->n_known, id);
		uint32_t parent;

		if (known)
			return known->flags & HS_DOMAIN_COVERED &&
			       !(known->flags & HS_DOMAIN_TERMINATED);
		parent = parent_of(d->target, d->live, d->n_live, id);
		if (parent == id)
			return false;
		id = parent;
	}
	return false;
}

/* One of the wanted domains that samples already. */
static bool find_conflict(const struct domains *d, const struct profile_options *wanted,
			  uint32_t *id)
{
	size_t n = wanted->domains ? wanted->attach.n_domains : (size_t)d->n_known;

	for (size_t i = 0; i < n; i++) {
		*id = wanted->domains ? wanted->domains[i] : d->known[i].unique_id;
		if (does_sample(d, *id))
			return true;
	}
	return false;
}

int held__check_conflict(const struct held *h, const struct profile_options *o,
			 struct hs_error *err)
{
	struct domains d = { 0 };
	uint32_t id;
	int ret = 0;

	if (h->state != HELD_RUNNING || h->profile->state != PROFILE_SAMPLING ||
	    h->request.counters_only || o->attach.counters_only)
		return 0;
	d.target = h->profile->target;
	if (!h->request.options.domains)
		return hs_error__set(err, -EBUSY,
				     "the domains of process %d sample for profile %u already",
				     d.target->pid, h->request.profile);
	/* In this order: who is new in the second has joined one of the first. */
	d.n_known = counters__read(h->profile->attachment, d.target->pid, &d.known);
	d.n_live = d.n_known < 0 ? 0 : target__domains(d.target, &d.live);
	if (d.n_known < 0 || d.n_live < 0)
		ret = hs_error__set(err, d.n_known < 0 ? d.n_known : d.n_live,
				    "cannot read the domains of profile %u", h->request.profile);
	else if (find_conflict(&d, o, &id))
		ret = hs_error__set(err, -EBUSY,
				    "domain %u of process %d samples for profile %u already", id,
				    d.target->pid, h->request.profile);
	free(d.known);
	free(d.live);
	return ret;
}
