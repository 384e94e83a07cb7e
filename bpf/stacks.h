/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Call stacks: each is sent across the ring buffer once.
 *
 * In:   frames and their hash, as the process captured them (struct sonde_sample).
 * Out:  HS_REC_STACK records, always before the sample that refers to them.
 *
 * The hash comes from the process: a process that lies about it confuses only
 * its own stacks. A stack is remembered only after its record was submitted, so
 * one that was lost is sent again with the next sample; one that finds no room
 * in the table is sent every time, which user space recognises.
 */
#ifndef HEAPSONDE_STACKS_H
#define HEAPSONDE_STACKS_H

#include "bpf/batch.h"

/*
 * bpf_ringbuf_reserve wants a constant size: one of three, so that the usual
 * stack does not take the room of the longest. The record says its true size.
 *
 * The size is checked here, whatever the caller has checked: clang would drop that,
 * as it sees the caller, but the verifier of 6.1 does not remember it. barrier_var
 * keeps the check, and the read after it to what was checked.
 */
#define STACK_SEND(name, max_frames)                                                               \
	static __noinline int name(const struct batch *b, const struct sonde_sample *s,            \
				   __u32 depth)                                                    \
	{                                                                                          \
		struct hs_rec_stack *rec;                                                          \
		__u64 bytes = depth * sizeof(__u64);                                               \
                                                                                                   \
		barrier_var(bytes);                                                                \
		if (!b || !s || bytes > (max_frames) * sizeof(__u64))                              \
			return -1;                                                                 \
		rec = bpf_ringbuf_reserve(&ring, sizeof(*rec) + (max_frames) * sizeof(__u64), 0);  \
		if (!rec) {                                                                        \
			domain_lost(b->d, HS_LOSS_STACK_RING_FULL, 1);                             \
			return -1;                                                                 \
		}                                                                                  \
		batch_record(b, s, &rec->h, HS_REC_STACK, sizeof(*rec) + bytes);                   \
		rec->hash = s->stack_hash;                                                         \
		rec->depth = depth;                                                                \
		rec->reserved = 0;                                                                 \
		if (bpf_probe_read_user(rec->frames, bytes, (void *)s->frames)) {                  \
			bpf_ringbuf_discard(rec, BPF_RB_NO_WAKEUP);                                \
			domain_lost(b->d, HS_LOSS_STACK_READ, 1);                                  \
			return -1;                                                                 \
		}                                                                                  \
		bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);                                         \
		return 0;                                                                          \
	}

STACK_SEND(stack_send_32, 32)
STACK_SEND(stack_send_128, 128)
STACK_SEND(stack_send_1024, SONDE_STACK_MAX)

/* Make sure that user space has this stack, or count why not. */
static __always_inline void stack_tell(const struct batch *b, const struct sonde_sample *s,
				       __u32 depth)
{
	__u64 hash = s->stack_hash;
	__u32 seen = 1;
	int err;

	if (bpf_map_lookup_elem(&stacks, &hash))
		return;
	if (depth <= 32)
		err = stack_send_32(b, s, depth);
	else if (depth <= 128)
		err = stack_send_128(b, s, depth);
	else
		err = stack_send_1024(b, s, depth);
	if (err)
		return;
	if (bpf_map_update_elem(&stacks, &hash, &seen, BPF_ANY))
		domain_lost(b->d, HS_LOSS_STACKS_FULL, 1);
}

#endif /* HEAPSONDE_STACKS_H */
