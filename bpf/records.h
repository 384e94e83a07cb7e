/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What crosses from the kernel to user space: the ring-buffer records, the
 * per-domain counters and the causes of loss.
 *
 * In:   written by bpf/heapsonde.bpf.c.
 * Out:  read by user/decode (records) and user/collect (counters).
 *
 * One header for both sides, fixed-width fields only, no implicit padding,
 * sizes asserted. The same bytes are what a raw capture holds.
 */
#ifndef HEAPSONDE_RECORDS_H
#define HEAPSONDE_RECORDS_H

#include <linux/types.h>

#define HS_RECORDS_VERSION 3

enum hs_record_type {
	HS_REC_ALLOC = 1,
	HS_REC_STACK = 2,
	HS_REC_PROMOTE = 3,
	HS_REC_DEALLOC = 4,
	HS_REC_UNKNOWN = 5, /* a block whose fate could not be read */
	HS_REC_DOMAIN_SPAWN = 6,
	HS_REC_DOMAIN_TERMINATE = 7,
	HS_REC_EXIT = 8,         /* the process is exiting: last counters of the domain */
	HS_REC_RATE = 9,         /* from here on the domain samples at another rate */
	HS_REC_MAJOR_CYCLE = 10, /* a major cycle has ended; told by each domain */
	HS_REC_TYPE_END
};

/* Every record begins with this. */
struct hs_record {
	__u32 type;       /* enum hs_record_type */
	__u32 size_bytes; /* of the whole record */
	__u64 time_ns;    /* CLOCK_MONOTONIC */
	__u32 profile;
	__u32 domain; /* unique id of the domain that owns the block */
	__u32 tgid;   /* of the process, as heapsonde numbers it in its PID namespace */
	__u32 tid;    /* of the thread, in the initial PID namespace */
};

enum hs_heap { HS_HEAP_MINOR = 0, HS_HEAP_MAJOR = 1 };

struct hs_rec_alloc {
	struct hs_record h;
	__u64 id;         /* of the block, >= 1, unique in its profile */
	__u64 size_words; /* without the header */
	__u64 n_samples;  /* at the profile's rate, >= 1 */
	__u64 stack_hash; /* of the HS_REC_STACK sent before; 0: empty stack */
	__u8 source;      /* enum sonde_source */
	__u8 heap;        /* enum hs_heap */
	__u8 is_tracked;  /* 1: later records for this id may come */
	__u8 reserved8;
	__u32 depth; /* frames of the stack */
};

/* A call stack, sent once (or again, if the kernel forgot it). */
struct hs_rec_stack {
	struct hs_record h;
	__u64 hash;
	__u32 depth; /* frames that follow, >= 1 */
	__u32 reserved;
	__u64 frames[];
};

/* HS_REC_PROMOTE, HS_REC_DEALLOC, HS_REC_UNKNOWN */
struct hs_rec_block {
	struct hs_record h;
	__u64 id;
	__u32 heap; /* enum hs_heap: where the block was when this happened */
	__u32 reserved;
};

/* Exact counts of a domain since its creation, from the GC probes. */
struct hs_counts {
	__u64 minor_words;
	__u64 promoted_words;
	__u64 major_words; /* promoted words included, as in Gc.quick_stat */
	__u64 minor_collections;
	__u64 major_collections;
};

/* HS_REC_DOMAIN_SPAWN, HS_REC_DOMAIN_TERMINATE, HS_REC_EXIT, HS_REC_MAJOR_CYCLE */
struct hs_rec_domain {
	struct hs_record h;
	__u32 domain_id; /* the runtime's slot, reused */
	__u32 parent;    /* unique id of the spawning domain */
	struct hs_counts counts;
};

/*
 * HS_REC_RATE: sent when a domain begins to sample at a rate that is not the
 * profile's first, before any sample at that rate.
 */
struct hs_rec_rate {
	struct hs_record h;
	__u64 keep_p; /* the rate is 2^-tier * keep_p / 2^32 */
	__u32 tier;
	__u32 reserved;
	struct hs_counts counts; /* of the domain, where the rate changes */
};

/*
 * Why something was lost. Names for people: hs_loss_name in user/decode.
 */
enum hs_loss {
	HS_LOSS_RING_FULL = 0,   /* samples not reported: ring buffer full */
	HS_LOSS_STACK_RING_FULL, /* stacks not sent: ring buffer full */
	HS_LOSS_BLOCKS_FULL,     /* blocks not followed: block table full */
	HS_LOSS_STACKS_FULL,     /* stacks sent again: stack table full */
	HS_LOSS_READ_FAILED,     /* sampled blocks not reported: unreadable or malformed */
	HS_LOSS_FATE_UNKNOWN,    /* blocks dropped: header unreadable at a GC */
	HS_LOSS_EVENT_RING_FULL, /* lifetime events delayed: ring buffer full */
	HS_LOSS_EVENTS_DROPPED,  /* domain or exit records not sent */
	HS_LOSS_DOMAINS_FULL,    /* GC events of domains that found no room */
	HS_LOSS_DOMAINS_SAMPLES, /* samples of such domains, not reported */
	HS_LOSS_STACK_READ,      /* stacks not sent: unreadable */
	HS_LOSS_GC_READ,         /* GC events unreadable or malformed */
	HS_LOSS_CAUSES
};

/* Value of the map `domains`, key struct hs_domain_key. */
struct hs_domain_key {
	__u32 tgid;
	__u32 unique_id;
};

#define HS_DOMAIN_COVERED 1u /* the profile samples this domain */
#define HS_DOMAIN_BASED 2u   /* `base` is set */
#define HS_DOMAIN_TERMINATED 4u
#define HS_DOMAIN_ENDED 8u   /* `end` is set */
#define HS_DOMAIN_EXITED 16u /* it has told that the process exits */

struct hs_domain {
	__u32 flags; /* HS_DOMAIN_* */
	__u32 domain_id;
	__u32 rate_seq; /* the rate in force (bpf/tables.h), if BASED */
	__u32 tid;      /* thread seen last */
	/* Lists of tracked blocks: indices into the map `blocks`, 0 = end. */
	__u32 young_head;
	__u32 major_head;
	__u32 major_tail;
	__u32 cursor;     /* of the walk in progress */
	__u32 is_entered; /* a program runs for the domain (domain_enter) */
	__u32 walk_left;  /* blocks that this firing may still look at */
	struct hs_counts now;
	struct hs_counts base; /* when this domain began to sample for us */
	struct hs_counts end;  /* as of the last event before the profile stopped */
	/* The thread whose samples come now, and what the process calls it. */
	__u32 owner_tid;
	__u32 owner_seen_tid;
	__u64 batch_ns; /* when samples last came, or could first have come */
	/* hit = left_out + kept + lost[HS_LOSS_RING_FULL] */
	__u64 samples_hit;      /* n_samples fired by the tier probe */
	__u64 samples_left_out; /* of these, left out by thinning to the rate, and by filters */
	__u64 samples_kept;     /* of these, reported */
	__u64 records_kept;     /* alloc records sent */
	__u64 tracked;          /* blocks on the lists now */
	__u64 lost[HS_LOSS_CAUSES];
};

#define HS_ASSERT(name, cond) _Static_assert(cond, "hs records: " name)
HS_ASSERT("record", sizeof(struct hs_record) == 32);
HS_ASSERT("alloc", sizeof(struct hs_rec_alloc) == 72);
HS_ASSERT("stack", sizeof(struct hs_rec_stack) == 48);
HS_ASSERT("block", sizeof(struct hs_rec_block) == 48);
HS_ASSERT("domain record", sizeof(struct hs_rec_domain) == 80);
HS_ASSERT("rate record", sizeof(struct hs_rec_rate) == 88);
HS_ASSERT("domain", sizeof(struct hs_domain) == 312);
HS_ASSERT("domain.now", __builtin_offsetof(struct hs_domain, now) == 40);

#endif /* HEAPSONDE_RECORDS_H */
