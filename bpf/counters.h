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

/* The profile's flags, which user space may change at any moment. */
static __always_inline __u32 profile_flags(void)
{
	return *(volatile __u32 *)&profile.flags;
}

/*
 * Is the process still the one that its user may have profiled? It may have executed
 * the same program again with the rights of another (sudo): same PID, same file, so
 * the probes are still attached until user space notices.
 */
static __always_inline bool user_is_right(void)
{
	return !(profile_flags() & HS_PROFILE_ONE_USER) ||
	       (__u32)bpf_get_current_uid_gid() == profile.uid;
}

/* What can be nothing but a lie, and belongs to no domain; n in the unit of the cause. */
static __always_inline void lie_seen(enum hs_loss cause, __u64 n)
{
	__sync_fetch_and_add(&lost_anywhere[cause], n);
}

/*
 * Two threads of an OCaml program never run for one domain at a time; those of a
 * program that lies may, and its lists would become circles. So the second is turned
 * away. False: it is to do nothing. Nobody is let in again after the end of a domain.
 */
static __always_inline bool domain_enter(struct hs_domain *d)
{
	return !__sync_lock_test_and_set(&d->is_entered, 1);
}

static __always_inline void domain_leave(struct hs_domain *d)
{
	barrier();
	*(volatile __u32 *)&d->is_entered = 0;
}

/* The entry of a domain, or NULL: it is not known yet. */
static __always_inline struct hs_domain *domain_find(__u32 unique_id)
{
	struct hs_domain_key key = { .tgid = cfg_tgid, .unique_id = unique_id };

	return bpf_map_lookup_elem(&domains, &key);
}

/*
 * Make an entry. A domain met for the first time is covered if the profile covers
 * all, or its parent: those that there were at the start were entered by user space,
 * so this one has come since. NULL: no room, counted.
 */
static __always_inline struct hs_domain *domain_new(const struct sonde_gc *gc)
{
	struct hs_domain_key key = { .tgid = cfg_tgid, .unique_id = gc->unique_id };
	struct hs_domain *d, *parent;

	bpf_map_update_elem(&domains, &key, (void *)&new_domain, BPF_NOEXIST);
	d = bpf_map_lookup_elem(&domains, &key);
	if (!d) {
		__sync_fetch_and_add(&lost_anywhere[HS_LOSS_DOMAINS_FULL], 1);
		return NULL;
	}
	d->domain_id = gc->domain_id;
	parent = domain_find(gc->parent_unique_id);
	if (profile_flags() & HS_PROFILE_ALL_DOMAINS ||
	    (parent && parent->flags & HS_DOMAIN_COVERED))
		d->flags |= HS_DOMAIN_COVERED;
	return d;
}

/* The entry of the domain that fires a GC probe. NULL: no room, counted. */
static __always_inline struct hs_domain *domain_get(const struct sonde_gc *gc)
{
	struct hs_domain *d = domain_find(gc->unique_id);

	if (!d)
		d = domain_new(gc);
	return d;
}

/* Numbers are signed ones in every output; no id is that of a domain without one. */
static __always_inline bool gc_is_sane(const struct sonde_gc *gc)
{
	const __u64 max = ~0ull >> 1;

	return gc->unique_id != ~0u && gc->minor_words <= max && gc->promoted_words <= max &&
	       gc->major_words <= max && gc->minor_collections <= max &&
	       gc->major_collections <= max;
}

/* Something of this domain was lost; n in the unit of the cause (records.h). */
static __always_inline void domain_lost(struct hs_domain *d, enum hs_loss cause, __u64 n)
{
	d->lost[cause] += n;
}

/* The beginning of a record about a domain, of a time and by a thread. */
static __always_inline void record_begin_at(struct hs_record *h, enum hs_record_type type,
					    __u32 size_bytes, __u32 domain, __u32 tid,
					    __u64 time_ns)
{
	h->type = type;
	h->size_bytes = size_bytes;
	h->time_ns = time_ns;
	h->profile = profile.number;
	h->domain = domain;
	h->tgid = cfg_tgid;
	h->tid = tid;
}

/* The same, of now and by the current thread. */
static __always_inline void record_begin(struct hs_record *h, enum hs_record_type type,
					 __u32 size_bytes, __u32 domain)
{
	record_begin_at(h, type, size_bytes, domain, (__u32)bpf_get_current_pid_tgid(),
			bpf_ktime_get_ns());
}

/* Send a record about the domain itself. 0, or -1: the ring buffer is full. */
static __always_inline int domain_send(const struct hs_domain *d, const struct sonde_gc *gc,
				       enum hs_record_type type)
{
	struct hs_rec_domain *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);

	if (!rec)
		return -1;
	record_begin(&rec->h, type, sizeof(*rec), gc->unique_id);
	rec->domain_id = gc->domain_id;
	rec->parent = gc->parent_unique_id;
	rec->counts = d->now;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* The same for what is told once and never again. */
static __always_inline void domain_tell(struct hs_domain *d, const struct sonde_gc *gc,
					enum hs_record_type type)
{
	if (domain_send(d, gc, type))
		domain_lost(d, HS_LOSS_EVENTS_DROPPED, 1);
}

/* ---- rates ---- */

/* Say from which rate on the domain's samples are. 0, or -1: no room, not now. */
static __always_inline int rate_tell(const struct hs_domain *d, const struct sonde_gc *gc,
				     const struct hs_rate *rate)
{
	struct hs_rec_rate *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);

	if (!rec)
		return -1;
	record_begin(&rec->h, HS_REC_RATE, sizeof(*rec), gc->unique_id);
	rec->keep_p = rate->keep_p;
	rec->tier = rate->tier;
	rec->reserved = 0;
	rec->counts = d->now;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* Does the domain sample for this rate's tier, or count where only that is wanted? */
static __always_inline bool rate_is_on(const struct hs_rate *rate, const struct sonde_gc *gc)
{
	return rate->tier >= SONDE_TIERS || gc->tier_mask & 1u << (rate->tier & 31);
}

/* Begin to sample at this rate, or go over to it. */
static __always_inline void rate_take(struct hs_domain *d, const struct sonde_gc *gc,
				      const struct hs_rate *rate, __u32 seq)
{
	/* User space takes the first rate for granted, which is slot 0's. */
	if (seq && rate_tell(d, gc, rate))
		return;
	d->rate_seq = seq;
	if (d->flags & HS_DOMAIN_BASED)
		return;
	d->base = d->now;
	/* No sample of it is older. */
	d->batch_ns = bpf_ktime_get_ns();
	d->flags |= HS_DOMAIN_BASED;
}

/*
 * A domain that does not sample yet begins with the newest rate whose tier it
 * samples for: what it allocates from this event on is sampled, so its counters are
 * the base.
 */
static __always_inline void rate_join(struct hs_domain *d, const struct sonde_gc *gc)
{
	__u32 newest = *(volatile __u32 *)&profile.rate_seq;

	for (__u32 back = 0; back < HS_RATES && back <= newest; back++) {
		__u32 seq = newest - back;
		struct hs_rate *rate = &profile.rates[seq % HS_RATES];

		if (*(volatile __u32 *)&rate->seq != seq || !rate_is_on(rate, gc))
			continue;
		rate_take(d, gc, rate, seq);
		return;
	}
}

/* One that does goes over to the newest rate at once, or at a later collection. */
static __always_inline void rate_follow(struct hs_domain *d, const struct sonde_gc *gc)
{
	__u32 newest = *(volatile __u32 *)&profile.rate_seq;
	struct hs_rate *rate = &profile.rates[newest % HS_RATES];

	if (d->rate_seq != newest && rate_is_on(rate, gc))
		rate_take(d, gc, rate, newest);
}

/* Counters do not go back, whatever the process says. */
static __always_inline void count_take(__u64 *count, __u64 now)
{
	if (now > *count)
		*count = now;
}

/*
 * Take over the counters of a GC event. When the profile has been stopped, those
 * before the first event after that are the last ones that were sampled.
 */
static __always_inline void counts_take(struct hs_domain *d, const struct sonde_gc *gc)
{
	if (d->flags & HS_DOMAIN_BASED && !(d->flags & HS_DOMAIN_ENDED) &&
	    !(profile_flags() & HS_PROFILE_SAMPLING)) {
		d->end = d->now;
		d->flags |= HS_DOMAIN_ENDED;
	}
	count_take(&d->now.minor_words, gc->minor_words);
	count_take(&d->now.promoted_words, gc->promoted_words);
	count_take(&d->now.major_words, gc->major_words);
	count_take(&d->now.minor_collections, gc->minor_collections);
	count_take(&d->now.major_collections, gc->major_collections);
}

/*
 * Go by the rate that is wanted. To be called after counts_take: at a GC event the
 * process has looked at its semaphores, so counters and samples agree there.
 */
static __always_inline void rate_update(struct hs_domain *d, const struct sonde_gc *gc)
{
	if (!(profile_flags() & HS_PROFILE_SAMPLING) || !(d->flags & HS_DOMAIN_COVERED))
		return;
	if (d->flags & HS_DOMAIN_BASED)
		rate_follow(d, gc);
	else
		rate_join(d, gc);
}

#endif /* HEAPSONDE_COUNTERS_H */
