/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The values of the maps that both sides touch, besides the counters of
 * records.h: the profile, which user space describes to the kernel, and tracked
 * blocks, which it looks through at the end. One header for both sides.
 */
#ifndef HEAPSONDE_TABLES_H
#define HEAPSONDE_TABLES_H

#include <linux/types.h>

/* Bits of hs_profile.flags. */
#define HS_PROFILE_SAMPLING 1u    /* report allocations */
#define HS_PROFILE_LIFETIMES 2u   /* follow the sampled blocks */
#define HS_PROFILE_ALL_DOMAINS 4u /* cover domains that are not listed */
#define HS_PROFILE_ONE_USER 8u    /* only while the process is of user `uid` */

/* A sampling rate: 2^-tier * keep_p / 2^32 samples per word. */
struct hs_rate {
	__u64 keep_p; /* probability of keeping a tier's sample, in 2^-32 */
	__u32 tier;   /* SONDE_TIERS: no sampling, counters only */
	__u32 seq;    /* its number, counted up from 0; HS_RATE_RETIRED */
};

/* No domain may begin to sample at this rate: its probe is being detached. */
#define HS_RATE_RETIRED (~0u)

/* Rates that may be in force at once, each in some domain. */
#define HS_RATES 16

/*
 * What a profile is to the kernel: a variable that user space writes while the
 * programs run. A rate is written before rate_seq says so, and its slot is not
 * written again while a domain samples at it.
 */
struct hs_profile {
	__u32 number;   /* of the profile, >= 1 */
	__u32 flags;    /* HS_PROFILE_* */
	__u32 depth;    /* frames per stack, <= SONDE_STACK_MAX */
	__u32 heaps;    /* bit h: report blocks born in enum hs_heap h */
	__u32 sources;  /* bit s: report blocks of enum sonde_source s */
	__u32 rate_seq; /* the newest rate, in rates[rate_seq % HS_RATES] */
	__u32 uid;      /* if HS_PROFILE_ONE_USER */
	__u32 reserved;
	__u64 min_words; /* smallest block to report, without its header */
	__u64 max_words; /* largest */
	struct hs_rate rates[HS_RATES];
};

_Static_assert(sizeof(struct hs_rate) == 16, "hs rate");
_Static_assert(sizeof(struct hs_profile) == 48 + 16 * HS_RATES, "hs profile");

/* Value of the map `blocks`: a tracked block, on one list or the other. */
struct hs_block {
	__u64 addr; /* of the first field; if HS_BLOCK_DEAD or _LOST, when that was found */
	__u64 id;
	__u32 next; /* index, 0 = end */
	__u32 flags;
};

#define HS_BLOCK_MAJOR 1u  /* in the major heap */
#define HS_BLOCK_UNTOLD 2u /* promoted, and user space not yet told */
#define HS_BLOCK_DEAD 4u   /* dead, and user space not yet told */
#define HS_BLOCK_LOST 8u   /* its fate will never be known, and user space not yet told */

/* There is nothing more to find out about it. */
#define HS_BLOCK_OVER (HS_BLOCK_DEAD | HS_BLOCK_LOST)

_Static_assert(sizeof(struct hs_block) == 24, "hs block");

#endif /* HEAPSONDE_TABLES_H */
