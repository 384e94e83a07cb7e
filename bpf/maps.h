/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The maps, and what user space sets before loading.
 *
 * In:   configuration and map sizes from user/attach/attach.c.
 * Out:  the ring buffer (records.h), read by user/collect; the per-domain
 *       counters, read by user/collect while all this runs.
 *
 * No map is per-CPU: a uprobe program can be preempted, and another task's
 * program can run on the same CPU meanwhile.
 */
#ifndef HEAPSONDE_MAPS_H
#define HEAPSONDE_MAPS_H

#include <linux/bpf.h>
#include <linux/ptrace.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/records.h"
#include "bpf/tables.h"
#include "runtime/abi.h"

/* Does the kernel run the GC programs sleepable, so that a page which is not
 * there can be faulted in? */
const volatile bool cfg_sleepable = true;

/*
 * Since 6.13 the stack of a KPROBE program of 64 bytes or more lies in per-CPU
 * memory of the program, on the ground that such a program never runs twice on one
 * CPU. That holds for kprobes but not for uprobes, which are preempted, or sleep:
 * another thread that runs the same program then overwrites the stack. A program
 * with a tail call in it keeps the kernel's stack. So each has one, in a branch
 * that the verifier knows to be dead, which is why it needs no map.
 */
const volatile bool cfg_never = false;

#define NO_PRIVATE_STACK(ctx)                                                                      \
	do {                                                                                       \
		if (cfg_never)                                                                     \
			bpf_tail_call(ctx, NULL, 0);                                               \
	} while (0)

/*
 * The process, by the PID that user space knows it by. The kernel runs the programs for
 * no other one; and bpf_get_current_pid_tgid, which counts in the initial PID namespace,
 * would give another number where heapsonde itself runs in a container.
 */
const volatile __u32 cfg_tgid = 0;

/* Entries of `blocks`, entry 0 included, which is never used. */
const volatile __u32 cfg_max_blocks = 2;

/* Records to user space, which looks every few hundredths of a second: to wake
 * it for each record would cost the target more than the record itself. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 23);
} ring SEC(".maps");

/* Its size, for ring_has_room. */
const volatile __u32 cfg_ring_bytes = 1 << 23;

/*
 * When the ring buffer fills up, allocations are given up first, while there is
 * room for what becomes of the blocks that were reported; last of all the few
 * records about domains. A record may be written if less than so many
 * sixteenths are in use.
 */
#define RING_ALLOC 12
#define RING_LIFETIME 15

static __always_inline bool ring_has_room(__u32 sixteenths)
{
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) <
	       (__u64)cfg_ring_bytes / 16 * sixteenths;
}

/* Counters and lists of each domain. A domain's entry is changed only by the
 * thread that holds this domain's lock in the OCaml runtime, so its fields need
 * no atomics. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct hs_domain_key);
	__type(value, struct hs_domain);
} domains SEC(".maps");

/* Tracked blocks, on the lists of their domains or on the free list. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct hs_block);
} blocks SEC(".maps");

/* Hashes of the stacks that user space has. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1 << 16);
	__type(key, __u64);
	__type(value, __u32);
} stacks SEC(".maps");

/* The profile that all this is for; see tables.h. */
struct hs_profile profile;

/* Id of the last block reported, counted up. */
__u64 last_id;

/*
 * Heads of lists that several domains share: an index in the low half, and in
 * the high half a number that changes with each removal, so that a compare-and-
 * swap cannot take an old head for the present one.
 */
__u64 free_blocks;   /* entries of `blocks` given back */
__u32 fresh_blocks;  /* entries of `blocks` never used so far, counted up */
__u64 orphan_blocks; /* tracked major blocks of domains that have terminated */

/* Set by user space before it detaches: from then on nothing is done any more, so that
 * samples, counters and lifetimes stand still together, in whichever order the probes
 * go. (Without the ones others would lead astray: of a compaction that was not
 * followed, the end of the next major cycle tells deaths that were none.) */
bool stopped;

static __always_inline bool is_stopped(void)
{
	return *(volatile bool *)&stopped;
}

/* Losses that cannot be told of any domain, by cause. */
__u64 lost_anywhere[HS_LOSS_CAUSES];

#endif /* HEAPSONDE_MAPS_H */
