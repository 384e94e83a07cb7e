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

#define SONDE_ABI_VERSION 2

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
 * One sampled block: argument 1 (rdi) of every alloc_<k> probe; argument 2
 * (rsi) is the number of bytes, frames included. The frames follow directly,
 * so that one read copies everything. What precedes them is also in registers,
 * eight bytes each in this order: rdx, rcx, r8, r9, r10, r11. A read of memory
 * costs an observer more than all of them.
 */
struct sonde_sample {
	__u32 unique_id;   /* Domain.id of the allocating domain, never reused */
	__u32 domain_id;   /* the runtime's domain slot, reused */
	__u64 block;       /* address of the block's first field (an OCaml value) */
	__u64 size_words;  /* without the header; off-heap words for custom */
	__u64 n_samples;   /* samples of this tier in the block, >= 1 */
	__u64 stack_hash;  /* 64-bit hash of the frames below, 0 when depth is 0 */
	__u8 source;       /* enum sonde_source */
	__u8 is_young;     /* 1: in the minor heap of this domain */
	__u16 depth;       /* frames below */
	__u32 tier;        /* k of the probe that fires */
	/*
	 * Innermost first. A frame is a backtrace slot of the runtime: the
	 * address of a frame descriptor, or of a debuginfo entry with tag 2.
	 */
	__u64 frames[];
};

/* Words of a sample without its frames: as many as there are registers for it. */
#define SONDE_SAMPLE_WORDS 6

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
SONDE_ASSERT("sample", sizeof(struct sonde_sample) == 8 * SONDE_SAMPLE_WORDS);
SONDE_ASSERT("sample.frames", __builtin_offsetof(struct sonde_sample, frames) == 48);
SONDE_ASSERT("sample.source", __builtin_offsetof(struct sonde_sample, source) == 40);
SONDE_ASSERT("gc", sizeof(struct sonde_gc) == 72);
SONDE_ASSERT("gc.minor_words", __builtin_offsetof(struct sonde_gc, minor_words) == 32);
SONDE_ASSERT("domain_info", sizeof(struct sonde_domain_info) == 32);
SONDE_ASSERT("registry", sizeof(struct sonde_registry) == 48);
SONDE_ASSERT("registry.domains", __builtin_offsetof(struct sonde_registry, domains) == 24);
SONDE_ASSERT("registry.fd", __builtin_offsetof(struct sonde_registry, fd_retaddr_bytes) == 36);

#endif /* SONDE_ABI_H */
