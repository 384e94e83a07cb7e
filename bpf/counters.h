/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domains: finding the entry of the one that fires, its exact counters, its
 * losses.
 *
 * In:   struct sonde_gc, from the GC probes.
 * Out:  struct hs_domain in the map `domains`.
 */
#ifndef HEAPSONDE_COUNTERS_H
#define HEAPSONDE_COUNTERS_H

#include "bpf/maps.h"

static const struct hs_domain new_domain;

static __always_inline struct hs_profile *profile_of(const struct hs_domain *d)
{
	__u32 index = d->profile;

	return bpf_map_lookup_elem(&profiles, &index);
}

static __always_inline __u32 current_tgid(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}

/*
 * The entry of a domain, made if there is none. A domain met for the first time
 * is covered if the profile covers all; listed ones were entered by user space,
 * children of a covered one by the spawn probe. NULL: no room, counted.
 */
static __always_inline struct hs_domain *domain_get(__u32 unique_id, __u32 domain_id)
{
	struct hs_domain_key key = { .tgid = current_tgid(), .unique_id = unique_id };
	struct hs_profile *profile;
	struct hs_domain *d;

	d = bpf_map_lookup_elem(&domains, &key);
	if (!d) {
		bpf_map_update_elem(&domains, &key, (void *)&new_domain, BPF_NOEXIST);
		d = bpf_map_lookup_elem(&domains, &key);
		if (!d) {
			__sync_fetch_and_add(&lost_anywhere[HS_LOSS_DOMAINS_FULL], 1);
			return NULL;
		}
		d->domain_id = domain_id;
		profile = profile_of(d);
		if (profile && profile->flags & HS_PROFILE_ALL_DOMAINS)
			d->flags |= HS_DOMAIN_COVERED;
	}
	d->tid = (__u32)bpf_get_current_pid_tgid();
	return d;
}

/* Something of this domain was lost; n in the unit of the cause (records.h). */
static __always_inline void domain_lost(struct hs_domain *d, enum hs_loss cause, __u64 n)
{
	d->lost[cause] += n;
}

/*
 * Take over the counters of a GC event. The first one at which the domain
 * samples for us is the base: what is allocated from there on is sampled. Where
 * only counters are wanted, user space has set the base of domains that it found,
 * and any other counts from its first event.
 */
static __always_inline void domain_count(struct hs_domain *d, const struct sonde_gc *gc)
{
	struct hs_profile *profile = profile_of(d);

	if (*(volatile bool *)&stopped)
		return;
	d->now.minor_words = gc->minor_words;
	d->now.promoted_words = gc->promoted_words;
	d->now.major_words = gc->major_words;
	d->now.minor_collections = gc->minor_collections;
	d->now.major_collections = gc->major_collections;
	if (d->flags & HS_DOMAIN_BASED || !profile)
		return;
	if (profile->tier >= SONDE_TIERS || gc->tier_mask & 1u << (profile->tier & 31)) {
		d->base = d->now;
		d->flags |= HS_DOMAIN_BASED;
	}
}

/* The beginning of every record. */
static __always_inline void record_begin(struct hs_record *h, enum hs_record_type type,
					 __u32 size_bytes, __u32 profile, __u32 domain)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	h->type = type;
	h->size_bytes = size_bytes;
	h->time_ns = bpf_ktime_get_ns();
	h->profile = profile;
	h->domain = domain;
	h->tgid = pid_tgid >> 32;
	h->tid = (__u32)pid_tgid;
}

/* Tell user space about the domain itself. */
static __always_inline void domain_tell(struct hs_domain *d, const struct sonde_gc *gc,
					enum hs_record_type type)
{
	struct hs_rec_domain *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);

	if (!rec) {
		domain_lost(d, HS_LOSS_EVENTS_DROPPED, 1);
		return;
	}
	record_begin(&rec->h, type, sizeof(*rec), 0, gc->unique_id);
	rec->domain_id = gc->domain_id;
	rec->parent = gc->parent_unique_id;
	rec->counts = d->now;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
}

#endif /* HEAPSONDE_COUNTERS_H */
