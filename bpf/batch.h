/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Batches: the samples that a sampling probe shows at once, and whose they are.
 *
 * In:   the registers at an alloc_<k> probe (runtime/abi.h).
 * Out:  struct batch, and the beginnings of the records about its samples.
 */
#ifndef HEAPSONDE_BATCH_H
#define HEAPSONDE_BATCH_H

#include "bpf/counters.h"

/* Samples that are read at once: a read costs more than what it copies, and the stack
 * has 512 bytes for all. A power of two, for the verifier. */
#define BATCH_CHUNK 4

struct batch {
	struct hs_domain *d;
	__u64 samples;     /* address of the first */
	__u64 keep_p;      /* probability of keeping a sample, in 2^-32 */
	__u64 now_ns;      /* our clock */
	__u64 now_seen_ns; /* the process's clock */
	__u64 oldest_ns;   /* no sample was taken before, by our clock */
	__u64 n;           /* samples */
	__u32 unique_id;   /* of the domain */
	__u32 tid;         /* of the thread that allocated */
	__u32 tier;
	struct sonde_sample chunk[BATCH_CHUNK]; /* samples that have been read */
};

/*
 * The thread that allocated. Another may fire for it, and what the process calls it
 * may be its name in a PID namespace, so it has been remembered when it last fired.
 */
static __always_inline __u32 batch_tid(struct hs_domain *d, bool is_own, __u32 seen_tid)
{
	if (is_own || !seen_tid) {
		d->owner_tid = (__u32)bpf_get_current_pid_tgid();
		d->owner_seen_tid = seen_tid;
	}
	return d->owner_seen_tid == seen_tid ? d->owner_tid : seen_tid;
}

/* What the registers say. 0, or -1: nonsense. */
static __always_inline int batch_read(struct batch *b, const struct pt_regs *ctx)
{
	__u64 bytes = ctx->SONDE_ARG_BYTES;

	b->samples = ctx->SONDE_ARG_SAMPLES;
	b->n = bytes / sizeof(struct sonde_sample);
	b->unique_id = (__u32)ctx->SONDE_ARG_UNIQUE_ID;
	b->tier = (__u32)ctx->SONDE_ARG_TIER;
	b->now_seen_ns = ctx->SONDE_ARG_NOW_NS;
	return b->n && b->n <= SONDE_BATCH_MAX && bytes == b->n * sizeof(struct sonde_sample) ? 0
											      : -1;
}

/*
 * The time of a sample by our clock: the process's may be another one (a time
 * namespace), so only ages count. A process that lies gets no time that is in the
 * future, or before the samples that it has shown already.
 */
static __always_inline __u64 batch_time(const struct batch *b, const struct sonde_sample *s)
{
	__u64 age_ns = b->now_seen_ns - s->time_ns;

	return age_ns <= b->now_ns - b->oldest_ns ? b->now_ns - age_ns : b->oldest_ns;
}

/* The beginning of a record about a sample. */
static __always_inline void batch_record(const struct batch *b, const struct sonde_sample *s,
					 struct hs_record *h, enum hs_record_type type,
					 __u32 size_bytes)
{
	record_begin_at(h, type, size_bytes, b->unique_id, b->tid, batch_time(b, s));
}

#endif /* HEAPSONDE_BATCH_H */
