/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sampling: which of the tier's samples are this profile's, and the record that
 * each makes.
 *
 * In:   the samples that an alloc_<k> probe shows (runtime/abi.h).
 * Out:  HS_REC_ALLOC records; blocks for lifetimes.h, stacks for stacks.h.
 */
#ifndef HEAPSONDE_SAMPLING_H
#define HEAPSONDE_SAMPLING_H

#include "bpf/lifetimes.h"
#include "bpf/stacks.h"

#define HS_RANDOM_U32() bpf_get_prandom_u32()
#include "bpf/thin.h"

/* More samples than this in one block are taken for nonsense. */
#define N_SAMPLES_MAX (1ull << 28)

/* More than this in one block are not tried one by one. */
#define TRIALS_MAX (1u << 16)

/* Nor is there a larger block: the size field of a header has 54 bits. */
#define SIZE_WORDS_MAX ((1ull << 54) - 1)

struct thinning {
	__u64 p;
	__u64 n_left;
	__u64 n_kept;
};

/*
 * Not static: the verifier then looks at this loop once, by itself, and not again
 * at each way through its callers, which would be too many for it.
 */
__noinline __u32 thin_word(__u32 n_trials, __u64 p)
{
	return hs_thin_word(n_trials, p);
}

static long thin_step(__u32 i, struct thinning *t)
{
	__u32 n = t->n_left < HS_TRIALS_PER_WORD ? t->n_left : HS_TRIALS_PER_WORD;

	(void)i;
	t->n_kept += thin_word(n, t->p);
	t->n_left -= n;
	return t->n_left == 0;
}

/*
 * Binomial(n, p), p in 2^-32. Of more than TRIALS_MAX the expected number, one more or less
 * by chance so that it is unbiased: who says that a block has 2^28 samples would else have
 * us draw for a second, and the spread left out is below a 256th.
 */
static __always_inline __u64 thin(__u64 n, __u64 p)
{
	struct thinning t = { .p = p, .n_left = n };

	if (p >= HS_P_ONE)
		return n;
	if (n == 1) /* the usual case, by one draw */
		return bpf_get_prandom_u32() < p;
	if (n > TRIALS_MAX)
		return (n * p + bpf_get_prandom_u32()) >> 32;
	bpf_loop(TRIALS_MAX / HS_TRIALS_PER_WORD, thin_step, &t, 0);
	return t.n_kept;
}

/* Each word is sampled once at most, the header too, which memory outside the heap has not. */
static __always_inline bool sample_is_sane(const struct sonde_sample *s)
{
	return s->n_samples >= 1 && s->n_samples <= N_SAMPLES_MAX && s->source < SONDE_SRC_COUNT &&
	       s->is_young <= 1 && s->depth <= SONDE_STACK_MAX && !(s->block & 7) &&
	       (s->stack_hash || !s->depth) && s->size_words >= 1 &&
	       s->size_words <= SIZE_WORDS_MAX &&
	       s->n_samples <= s->size_words + (s->source != SONDE_SRC_CUSTOM);
}

/* Is it a block of the kinds that the profile reports? */
static __always_inline bool is_wanted(const struct sonde_sample *s)
{
	return profile.heaps >> (s->is_young ? HS_HEAP_MINOR : HS_HEAP_MAJOR) & 1 &&
	       profile.sources >> (s->source & 31) & 1 && s->size_words >= profile.min_words &&
	       s->size_words <= profile.max_words;
}

/* Are this domain's samples reported now? Not before its counters have a base. */
static __always_inline bool domain_samples(const struct hs_domain *d)
{
	const __u32 wanted = HS_DOMAIN_COVERED | HS_DOMAIN_BASED;

	return (d->flags & wanted) == wanted && profile_flags() & HS_PROFILE_SAMPLING;
}

/* Report a sample that is kept. 0, or -1: the ring buffer is full. */
static __always_inline int sample_tell(const struct batch *b, const struct sonde_sample *s,
				       __u64 kept)
{
	__u32 depth = s->depth < profile.depth ? s->depth : profile.depth;
	struct hs_rec_alloc *rec;

	if (!ring_has_room(RING_ALLOC))
		return -1;
	if (depth)
		stack_tell(b, s, depth);

	rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);
	if (!rec)
		return -1;
	batch_record(b, s, &rec->h, HS_REC_ALLOC, sizeof(*rec));
	rec->id = __sync_fetch_and_add(&last_id, 1) + 1;
	rec->size_words = s->size_words;
	rec->n_samples = kept;
	rec->stack_hash = depth ? s->stack_hash : 0;
	rec->source = s->source;
	rec->heap = s->is_young ? HS_HEAP_MINOR : HS_HEAP_MAJOR;
	rec->is_tracked = 0;
	rec->reserved8 = 0;
	rec->depth = depth;
	if (profile.flags & HS_PROFILE_LIFETIMES &&
	    !block_track(b->d, s->block, rec->id, s->is_young))
		rec->is_tracked = 1;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

/* A sample of the tier: is it one of the profile's? */
static __always_inline void sample_take(const struct batch *b, const struct sonde_sample *s)
{
	struct hs_domain *d = b->d;
	__u64 kept;

	kept = is_wanted(s) ? thin(s->n_samples, b->keep_p) : 0;
	d->samples_hit += s->n_samples;
	d->samples_left_out += s->n_samples - kept;
	if (!kept)
		return;
	if (sample_tell(b, s, kept)) {
		domain_lost(d, HS_LOSS_RING_FULL, kept);
		return;
	}
	d->samples_kept += kept;
	d->records_kept++;
}

/* The samples from number i on; what is read behind the last one is not looked at. */
static __always_inline int chunk_read(struct batch *b, __u32 i)
{
	return bpf_probe_read_user(b->chunk, sizeof(b->chunk),
				   (void *)(b->samples + i * sizeof(b->chunk[0])));
}

static long batch_step(__u32 i, struct batch *b)
{
	const struct sonde_sample *s = &b->chunk[i % BATCH_CHUNK];

	if (i >= b->n)
		return 1;
	if (i % BATCH_CHUNK == 0 && chunk_read(b, i)) {
		domain_lost(b->d, HS_LOSS_READ_FAILED, b->n - i);
		return 1;
	}
	if (sample_is_sane(s))
		sample_take(b, s);
	else
		domain_lost(b->d, HS_LOSS_READ_FAILED, 1);
	return 0;
}

/* What has been read of the registers, by the thread that the domain has let in. */
static __always_inline void batch_take(struct batch *b, struct hs_domain *d,
				       const struct pt_regs *ctx)
{
	const struct hs_rate *rate = &profile.rates[d->rate_seq % HS_RATES];

	d->tid = (__u32)bpf_get_current_pid_tgid();
	/* While the rate changes the probes of two tiers are attached. */
	if (b->tier != rate->tier)
		return;
	b->d = d;
	b->keep_p = rate->keep_p;
	b->tid = batch_tid(d, ctx->SONDE_ARG_TIER >> 32 & SONDE_BATCH_OWN,
			   (__u32)ctx->SONDE_ARG_TID);
	b->now_ns = bpf_ktime_get_ns();
	b->oldest_ns = d->batch_ns;
	d->batch_ns = b->now_ns;
	bpf_loop(SONDE_BATCH_MAX, batch_step, b, 0);
}

/* The same for a domain that has found no room in the table: its samples are counted. */
static long unplaced_step(__u32 i, struct batch *b)
{
	const struct sonde_sample *s = &b->chunk[i % BATCH_CHUNK];

	if (i >= b->n || (i % BATCH_CHUNK == 0 && chunk_read(b, i)))
		return 1;
	if (sample_is_sane(s) && is_wanted(s))
		__sync_fetch_and_add(&lost_anywhere[HS_LOSS_DOMAINS_SAMPLES],
				     thin(s->n_samples, b->keep_p));
	return 0;
}

/* A domain that has no entry: it does not sample yet, or there was no room. */
static __always_inline void batch_unplaced(struct batch *b)
{
	const __u32 wanted = HS_PROFILE_SAMPLING | HS_PROFILE_ALL_DOMAINS;
	__u32 seq = *(volatile __u32 *)&profile.rate_seq;
	const struct hs_rate *rate = &profile.rates[seq % HS_RATES];

	if (!*(volatile __u64 *)&lost_anywhere[HS_LOSS_DOMAINS_FULL] ||
	    (profile_flags() & wanted) != wanted || b->tier != rate->tier)
		return;
	b->keep_p = rate->keep_p;
	bpf_loop(SONDE_BATCH_MAX, unplaced_step, b, 0);
}

static __always_inline int batch_fire(const struct pt_regs *ctx)
{
	struct hs_domain *d;
	struct batch b;
	int err;

	if (is_stopped() || !user_is_right())
		return 0;
	err = batch_read(&b, ctx);
	/* One that no GC probe has fired for does not sample yet. */
	d = domain_find(b.unique_id);
	if (!d && !err)
		batch_unplaced(&b);
	if (!d || !domain_samples(d))
		return 0;
	if (err || !domain_enter(d)) {
		lie_seen(HS_LOSS_READ_FAILED, err ? 1 : b.n);
		return 0;
	}
	batch_take(&b, d, ctx);
	domain_leave(d);
	return 0;
}

#endif /* HEAPSONDE_SAMPLING_H */
