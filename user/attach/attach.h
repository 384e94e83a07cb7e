/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attaching: from a target and a wish to running BPF programs, and back.
 *
 * In:   struct target (target.h), what the kernel offers (kernel.h).
 * Out:  the ring buffer and the counters, for user/collect.
 *
 * Nothing is written to the target: attaching raises its semaphores, which the
 * kernel lowers again when the links go, by detaching or by our death.
 */
#ifndef HEAPSONDE_ATTACH_H
#define HEAPSONDE_ATTACH_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/records.h"
#include "user/attach/kernel.h"
#include "user/attach/target.h"
#include "user/common/error.h"

/* A sampling rate per word, as the tier to attach and what to keep of it. */
struct tier_choice {
	unsigned int tier; /* 2^-tier is the lowest tier rate >= the wish */
	uint64_t keep_p;   /* in 2^-32, for bpf/thin.h */
	double rate;       /* the rate in force: 2^-tier * keep_p / 2^32 */
};

/*
 * Choose for a rate in (0, 1]. 0, or -ERANGE outside of it or where the rate is
 * too low to be told from 0 (below 2^-56).
 */
int tier_choice__make(double rate, struct tier_choice *out);

/*
 * How children are made for detaching (detach.c): nothing shared, no signal at their end,
 * and a mark that tells a sandbox what they are for.
 */
#define HOLDER_CLONE_FLAGS CLONE_UNTRACED

/* Kernel memory by default. */
#define ATTACH_RING_BYTES (32u << 20)
#define ATTACH_MAX_BLOCKS (1u << 19)
#define ATTACH_MAX_STACKS (1u << 16)

/* What is wished for; all sizes are upper bounds on kernel memory. */
struct attach_options {
	uint32_t number;    /* of the profile, in its records; >= 1 */
	bool counters_only; /* the GC probes alone, no sampling */
	bool one_user;      /* only while the process is of user `uid` */
	uid_t uid;
	struct tier_choice tier;
	uint32_t stack_depth; /* frames, 0 .. SONDE_STACK_MAX */
	bool lifetimes;
	uint32_t heaps;          /* bit h: enum hs_heap */
	uint32_t sources;        /* bit s: enum sonde_source */
	uint64_t min_words;      /* smallest block, without its header */
	uint64_t max_words;      /* largest; 0: any */
	const uint32_t *domains; /* unique ids; NULL: all, later ones included */
	size_t n_domains;
	uint32_t ring_bytes; /* a power of two times the page size; 0: default */
	uint32_t max_blocks; /* tracked blocks at once; 0: default */
	uint32_t max_stacks; /* stacks remembered; 0: default */
};

struct attachment;

/*
 * Load the programs and attach them to t (borrowed; must outlive *out). On
 * failure nothing is left attached. Errors: those of libbpf, with a text that
 * says what to do; -EOPNOTSUPP the process runs another file than its path leads to
 * (registry__check_counted).
 */
int attachment__new(struct attachment **out, const struct target *t,
		    const struct attach_options *options, const struct kernel_features *kernel,
		    struct hs_error *err);

/*
 * Change the rate while sampling. The probe of the new tier is attached at once;
 * each domain goes over at its next minor collection, which HS_REC_RATE tells. On
 * failure the old rate stays. Errors: -EALREADY not sampling; -EBUSY so many
 * changes are under way that HS_RATES different rates are in force; those of
 * attaching.
 */
int attachment__set_rate(struct attachment *a, const struct tier_choice *tier,
			 struct hs_error *err);

/*
 * Detach the probes of tiers at which no domain samples any more. To be called
 * now and then after a change of rate. Returns how many rates are in force.
 */
int attachment__settle(struct attachment *a);

/*
 * End sampling: allocations are reported no more, and the probes of the tiers and
 * of the stack depth are detached. Lifetimes and counters go on. Harmless when
 * done before.
 */
void attachment__stop_sampling(struct attachment *a);

/*
 * Detach all probes. Samples, counters and lifetimes stand still together. The ring buffer
 * and the counters stay readable. Harmless when already detached.
 */
void attachment__detach(struct attachment *a);

/* Detach and unload. NULL is fine. */
void attachment__free(struct attachment *a);

/* File descriptors of the maps; owned by a. */
int attachment__ring_fd(const struct attachment *a);
int attachment__domains_fd(const struct attachment *a);
int attachment__blocks_fd(const struct attachment *a);

/* Entries of the map `blocks`. */
uint32_t attachment__max_blocks(const struct attachment *a);

/* The profile's number. */
uint32_t attachment__number(const struct attachment *a);

/* The rate of a domain with this rate_seq, samples per word; 0: counters only. */
double attachment__rate(const struct attachment *a, uint32_t seq);

/* Index of the first block that no living domain owns; 0: none. */
uint32_t attachment__orphans(const struct attachment *a);

/* Losses that belong to no domain, by cause. */
void attachment__losses(const struct attachment *a, uint64_t lost[HS_LOSS_CAUSES]);

/*
 * How often the kernel did not run one of the programs although its probe was
 * hit. Errors: those of bpf(2).
 */
int attachment__missed(const struct attachment *a, uint64_t *missed);

#endif /* HEAPSONDE_ATTACH_H */
