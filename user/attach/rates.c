/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changing the rate of an attachment; see attach.h.
 *
 * In:   a rate, the table of domains.
 * Out:  slots of hs_profile.rates, probes of tiers attached and detached.
 *
 * Every domain goes over by itself, at a moment when its counters and its samples
 * agree (bpf/counters.h). Until the last has done so the probes of the old tier stay
 * attached; a program that is hit looks which tier its domain is at.
 */
#include <errno.h>
#include <math.h>

#include <bpf/bpf.h>

#include "user/attach/attachment.h"

/* Bit i: a living domain samples at the rate in slot i. Negative errno: unknown. */
static int rates_in_force(const struct attachment *a, uint32_t *slots)
{
	int fd = attachment__domains_fd(a);
	struct hs_domain_key key, *previous = NULL;
	struct hs_domain d;
	int err;

	*slots = 0;
	while (!(err = bpf_map_get_next_key(fd, previous, &key))) {
		previous = &key;
		if (bpf_map_lookup_elem(fd, &key, &d))
			return -EAGAIN; /* it has just been taken away: the next key is unsure */
		if (d.flags & HS_DOMAIN_COVERED && d.flags & HS_DOMAIN_BASED &&
		    !(d.flags & HS_DOMAIN_TERMINATED))
			*slots |= 1u << d.rate_seq % HS_RATES;
	}
	return err == -ENOENT ? 0 : err; /* that is the end; after another one slots would lack */
}

int attachment__set_rate(struct attachment *a, const struct tier_choice *tier, struct hs_error *err)
{
	struct hs_profile *p = attachment__profile(a);
	uint32_t seq = p->rate_seq + 1, slots;
	struct hs_rate *rate = &p->rates[seq % HS_RATES];
	int ret;

	if (!(p->flags & HS_PROFILE_SAMPLING) || a->counters_only)
		return hs_error__set(err, -EALREADY, "the profile does not sample");
	if (rates_in_force(a, &slots) || slots & 1u << seq % HS_RATES)
		return hs_error__set(err, -EBUSY,
				     "too many changes of rate at once: some domain has not yet "
				     "gone over to an earlier one (it does at its next minor "
				     "collection)");
	ret = attachment__attach_tier(a, tier->tier, err);
	if (ret)
		return ret;
	rate->keep_p = tier->keep_p;
	rate->tier = tier->tier;
	__atomic_store_n(&rate->seq, seq, __ATOMIC_RELEASE);
	__atomic_store_n(&p->rate_seq, seq, __ATOMIC_RELEASE);
	return 0;
}

/*
 * A rate is retired first and looked for in the domains after that: one that has
 * begun with it in between is seen.
 */
int attachment__settle(struct attachment *a)
{
	struct hs_profile *p = attachment__profile(a);
	uint32_t newest = p->rate_seq % HS_RATES, tiers = 0, slots;
	struct detach_list unused = { 0 };
	uint32_t seqs[HS_RATES];
	int n = 0;

	for (uint32_t i = 0; i < HS_RATES; i++) {
		seqs[i] = p->rates[i].seq;
		if (i != newest)
			__atomic_store_n(&p->rates[i].seq, HS_RATE_RETIRED, __ATOMIC_SEQ_CST);
	}
	if (rates_in_force(a, &slots))
		slots = ~0u; /* later */
	slots |= 1u << newest;
	for (uint32_t i = 0; i < HS_RATES; i++) {
		if (seqs[i] == HS_RATE_RETIRED || !(slots & 1u << i))
			continue;
		__atomic_store_n(&p->rates[i].seq, seqs[i], __ATOMIC_SEQ_CST);
		if (p->rates[i].tier < SONDE_TIERS)
			tiers |= 1u << p->rates[i].tier;
		n++;
	}
	for (int k = 0; k < SONDE_TIERS; k++)
		if (!(tiers & 1u << k))
			detach_list__add(&unused, &a->tiers[k]);
	detach_list__run(&unused, a->use_multi);
	return n;
}

double attachment__rate(const struct attachment *a, uint32_t seq)
{
	const struct hs_rate *rate = &attachment__profile(a)->rates[seq % HS_RATES];

	if (rate->tier >= SONDE_TIERS)
		return 0;
	return ldexp((double)rate->keep_p, -32 - (int)rate->tier);
}
