/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a probed process shows to the outside: probe names, the structures that
 * the probes point at, and the registry that describes the process.
 *
 * In:   filled by runtime/ inside the profiled process.
 * Out:  read by bpf/ (through the probe's first argument) and by user/attach
 *       (through /proc/PID/mem).
 *
 * One header for all three sides. Every field has a fixed width and every
 * offset is asserted, because the three sides are built by different compilers
 * at different times: change anything here and raise SONDE_ABI_VERSION.
 */
#ifndef SONDE_ABI_H
#define SONDE_ABI_H

#include <linux/types.h>

#define SONDE_ABI_VERSION 3

/* The provider of all probes in the ELF notes. */
#define SONDE_PROVIDER "ocaml"

/*
 * Sampling tiers: the probe alloc_<k> fires for each block hit by a Bernoulli
 * process with probability 2^-k per word, k = 0 .. SONDE_TIERS - 1.
 */
#define SONDE_TIERS 25

/*
 * Stack classes: while the semaphore of stack_<n> is up, at least n frames are
 * captured per sample. The classes are 16 << i, i = 0 .. SONDE_STACK_CLASSES - 1.
 */
#define SONDE_STACK_CLASSES 7
#define SONDE_STACK_MIN 16
#define SONDE_STACK_MAX 1024

/* Where a sampled block came from: Gc.Memprof.allocation_source. */
enum sonde_source {
	SONDE_SRC_NORMAL = 0,
	SONDE_SRC_MARSHAL = 1,
	SONDE_SRC_CUSTOM = 2,
	SONDE_SRC_MAP_FILE = 3,
	SONDE_SRC_COUNT
};

/*
 * One sampled block. An observer is told of young blocks in batches, because a
 * trap costs more than all else that is done with a sample.
 */
struct sonde_sample {
	__u64 block;       /* address of the block's first field (an OCaml value) */
	__u64 size_words;  /* without the header; off-heap words for custom */
	__u64 n_samples;   /* samples of this tier in the block, >= 1 */
	__u64 stack_hash;  /* 64-bit hash of its frames, 0 when depth is 0 */
	/*
	 * Where its frames are, eight bytes each, innermost first. A frame is a
	 * backtrace slot of the runtime: the address of a frame descriptor, or
	 * of a debuginfo entry with tag 2.
	 */
	__u64 frames;
	__u64 time_ns;     /* CLOCK_MONOTONIC, as the process sees it */
	__u8 source;       /* enum sonde_source */
	__u8 is_young;     /* 1: in the minor heap of this domain */
	__u16 depth;       /* number of frames */
	__u32 reserved;
};

/*
 * What every alloc_<k> probe shows, in registers: one domain's samples of tier
 * k since the last time, in the order of their allocation, all by one thread.
 *
 * A batch is handed over at the latest: with its 32nd sample, with the first
 * sample after SONDE_BATCH_NS, with a block that is not young, before the GC
 * probes, before a blocking section, and when another thread of the domain
 * allocates. So what has not been handed over is less than 32 young blocks of
 * a domain that is running, or was killed while it ran.
 */
#define SONDE_ARG_SAMPLES rdi   /* the first of SONDE_BATCH_MAX struct sonde_sample */
#define SONDE_ARG_BYTES rsi     /* of those that count, from the first */
#define SONDE_ARG_UNIQUE_ID rdx /* Domain.id of the domain, never reused */
#define SONDE_ARG_TIER rcx      /* in the low half k; in the high half SONDE_BATCH_* */
#define SONDE_ARG_NOW_NS r8     /* on the clock of time_ns: samples have an age */
#define SONDE_ARG_TID r9        /* thread that allocated, as the process sees it */

#define SONDE_BATCH_MAX 32
#define SONDE_BATCH_NS 1000000

/* The thread that fires is the one that allocated. A thread's first batch is. */
#define SONDE_BATCH_OWN 1u

/* Flags of struct sonde_gc. */
#define SONDE_GC_TERMINATING 1u /* the domain is on its way out */

/*
 * The state of one domain at a GC event: argument 1 (rdi) of minor_end,
 * major_end, compact, domain_spawn, domain_terminate and exit. All counts run
 * from the domain's creation.
 */
struct sonde_gc {
	__u32 unique_id;
	__u32 domain_id;
	__u32 parent_unique_id; /* of the spawning domain; own id for the first one */
	__u32 flags;            /* SONDE_GC_* */
	__u32 tier_mask;        /* bit k: the domain samples for tier k since the
				 * last minor collection or before */
	__u32 colour_unmarked;  /* header bits 8-9 of a block not marked in the
				 * cycle that ends, in place (not shifted down) */
	__u32 colour_marked;    /* the same for marked; at compact: "moved away" */
	__u32 reserved;
	__u64 minor_words;      /* allocated in the minor heap, headers included */
	__u64 promoted_words;   /* promoted by this domain, headers included */
	__u64 major_words;      /* allocated in the major heap, promoted included */
	__u64 minor_collections;
	__u64 major_collections;
};

/*
 * Public head of a domain's state in the process, reachable from the registry.
 * A slot is never freed; `live` says whether a domain runs in it.
 */
struct sonde_domain_info {
	__u32 unique_id; /* ~0 until the domain has first allocated or collected */
	__u32 domain_id;
	__u32 live;
	__u32 tid; /* OS thread that created the domain, as the process sees it */
	__u64 unique_id_addr; /* where the runtime keeps it, a 32-bit integer */
	__u64 gc_addr;        /* of its struct sonde_gc, as of its last collection */
};

/*
 * The process's description of itself. Its address stands as the semaphore of
 * the probe `registry`, which is never executed; the first field is a real
 * semaphore, so that a tool which attaches to every probe does no harm.
 */
struct sonde_registry {
	__u16 semaphore;
	__u16 abi_version;
	__u32 size_bytes; /* of this structure */
	char ocaml_version[16];
	__u64 domains;    /* address of max_domains pointers to sonde_domain_info */
	__u32 max_domains;
	/* Layout of the runtime's frame descriptors, in bytes. */
	__u16 fd_retaddr_bytes; /* 8: absolute address; 4: signed, relative */
	__u16 fd_frame_data;    /* offset of the flags word */
	__u16 fd_num_live;
	__u16 fd_live_ofs;
	__u32 reserved;
};

#define SONDE_ASSERT(name, cond) _Static_assert(cond, "sonde abi: " name)
SONDE_ASSERT("sample", sizeof(struct sonde_sample) == 56);
SONDE_ASSERT("sample.source", __builtin_offsetof(struct sonde_sample, source) == 48);
SONDE_ASSERT("gc", sizeof(struct sonde_gc) == 72);
SONDE_ASSERT("gc.minor_words", __builtin_offsetof(struct sonde_gc, minor_words) == 32);
SONDE_ASSERT("domain_info", sizeof(struct sonde_domain_info) == 32);
SONDE_ASSERT("registry", sizeof(struct sonde_registry) == 48);
SONDE_ASSERT("registry.domains", __builtin_offsetof(struct sonde_registry, domains) == 24);
SONDE_ASSERT("registry.fd", __builtin_offsetof(struct sonde_registry, fd_retaddr_bytes) == 36);

#endif /* SONDE_ABI_H */
