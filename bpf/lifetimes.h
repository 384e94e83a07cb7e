/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lifetimes: what becomes of the sampled blocks.
 *
 * In:   blocks from sampling.h; the GC probes, each at a moment when headers tell
 *       the truth (runtime/hooks.c).
 * Out:  HS_REC_PROMOTE, HS_REC_DEALLOC, HS_REC_UNKNOWN records.
 *
 * Each domain has a list of its young blocks and one of its major blocks, linked
 * through `blocks`. A walk takes a list off its head, looks at every block and
 * puts it on the list where it belongs now, or frees it. Only the thread that
 * holds the domain's lock walks or changes them. Lists of terminated domains go
 * to `orphan_blocks`, from where the next domain to end a major cycle takes them.
 *
 * When the ring buffer is full an event is kept with its block and told at the
 * next collection: events are late then, not lost.
 */
#ifndef HEAPSONDE_LIFETIMES_H
#define HEAPSONDE_LIFETIMES_H

#include "bpf/counters.h"

/* bpf_loop's own limit; more than any table of blocks. A walk ends where its list does,
 * and all walks of one firing when they have looked at as many blocks as the table has. */
#define WALK_MAX (1u << 23)

/* Tries of a compare-and-swap before something else is done. */
#define SWAP_TRIES 16

static __always_inline struct hs_block *block_at(__u32 index)
{
	return index ? bpf_map_lookup_elem(&blocks, &index) : NULL;
}

/* ---- shared lists ---- */

/* Put the chain first … last in front of a shared list. Returns 0, or -1 if other
 * CPUs were always faster. */
static __always_inline int shared_push(__u64 *head, __u32 first, __u32 last)
{
	struct hs_block *b = block_at(last);

	if (!b)
		return -1;
	for (int i = 0; i < SWAP_TRIES; i++) {
		__u64 old = *(volatile __u64 *)head;

		b->next = (__u32)old;
		if (__sync_val_compare_and_swap(head, old, (old >> 32) << 32 | first) == old)
			return 0;
	}
	return -1;
}

/* An unused entry of `blocks`, or 0. */
static __always_inline __u32 block_alloc(void)
{
	for (int i = 0; i < SWAP_TRIES; i++) {
		__u64 old = *(volatile __u64 *)&free_blocks;
		struct hs_block *b = block_at((__u32)old);
		__u64 new;

		if (!b)
			break;
		new = ((old >> 32) + 1) << 32 | b->next;
		if (__sync_val_compare_and_swap(&free_blocks, old, new) == old)
			return (__u32)old;
	}
	if (*(volatile __u32 *)&fresh_blocks + 1 < cfg_max_blocks) {
		__u32 index = __sync_fetch_and_add(&fresh_blocks, 1) + 1;

		if (index < cfg_max_blocks)
			return index;
	}
	return 0;
}

/* ---- a domain's lists ---- */

static __always_inline void young_push(struct hs_domain *d, struct hs_block *b, __u32 index)
{
	b->next = d->young_head;
	d->young_head = index;
}

static __always_inline void major_push(struct hs_domain *d, struct hs_block *b, __u32 index)
{
	if (!d->major_head)
		d->major_tail = index;
	b->next = d->major_head;
	d->major_head = index;
}

/* Begin to follow a block. 0, or -1 if there is no room, counted. */
static __always_inline int block_track(struct hs_domain *d, __u64 addr, __u64 id, bool is_young)
{
	__u32 index = block_alloc();
	struct hs_block *b = block_at(index);

	if (!b) {
		domain_lost(d, HS_LOSS_BLOCKS_FULL, 1);
		return -1;
	}
	b->addr = addr;
	b->id = id;
	b->flags = is_young ? 0 : HS_BLOCK_MAJOR;
	if (is_young)
		young_push(d, b, index);
	else
		major_push(d, b, index);
	d->tracked++;
	return 0;
}

/* ---- walks ---- */

struct walk {
	struct hs_domain *d;
	__u64 time_ns;
	__u32 tid;
	__u32 unique_id;
	__u32 colour;     /* header bits that mean "dead" or "moved" in this walk */
	__u32 free_first; /* chain of entries to be given back at the end */
	__u32 free_last;
	__u32 is_adopting; /* the list comes from another domain */
};

/* Read a word of the process: plainly, or by faulting the page in. */
static __always_inline int read_word(__u64 *word, __u64 addr)
{
	if (!bpf_probe_read_user(word, sizeof(*word), (void *)addr))
		return 0;
	if (cfg_sleepable)
		return bpf_copy_from_user(word, sizeof(*word), (void *)addr) ? -1 : 0;
	return -1;
}

/* Tell user space about a block. 0, or -1 if the ring buffer is full. */
static __always_inline int block_tell(struct walk *w, const struct hs_block *b,
				      enum hs_record_type type, __u64 time_ns)
{
	struct hs_rec_block *rec;

	if (!ring_has_room(RING_LIFETIME))
		return -1;
	rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);
	if (!rec)
		return -1;
	record_begin_at(&rec->h, type, sizeof(*rec), w->unique_id, w->tid, time_ns);
	rec->id = b->id;
	rec->heap = b->flags & HS_BLOCK_MAJOR ? HS_HEAP_MAJOR : HS_HEAP_MINOR;
	rec->reserved = 0;
	bpf_ringbuf_submit(rec, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline void block_free(struct walk *w, struct hs_block *b, __u32 index)
{
	if (!w->free_first)
		w->free_last = index;
	b->next = w->free_first;
	w->free_first = index;
	w->d->tracked--;
}

/*
 * Tell what is still to be told of a block, in order: its promotion, its end.
 * A block about which nothing more will come is freed; any other goes to the
 * major list.
 */
static __always_inline void block_settle(struct walk *w, struct hs_block *b, __u32 index)
{
	if (b->flags & HS_BLOCK_UNTOLD) {
		/* Not after its end, if that had to wait too. */
		__u64 time_ns = b->flags & HS_BLOCK_OVER ? b->addr : w->time_ns;

		if (block_tell(w, b, HS_REC_PROMOTE, time_ns)) {
			domain_lost(w->d, HS_LOSS_EVENT_RING_FULL, 1);
			goto keep;
		}
		b->flags &= ~HS_BLOCK_UNTOLD;
	}
	if (b->flags & HS_BLOCK_OVER) {
		enum hs_record_type type =
			b->flags & HS_BLOCK_DEAD ? HS_REC_DEALLOC : HS_REC_UNKNOWN;

		if (!block_tell(w, b, type, b->addr)) {
			block_free(w, b, index);
			return;
		}
		domain_lost(w->d, HS_LOSS_EVENT_RING_FULL, 1);
	}
keep:
	major_push(w->d, b, index);
}

/* A block whose header cannot be read: its fate will never be known. */
static __always_inline void block_give_up(struct walk *w, struct hs_block *b, __u32 index)
{
	domain_lost(w->d, HS_LOSS_FATE_UNKNOWN, 1);
	/* Not told, it would be taken for alive for ever: so this waits as well. */
	b->flags |= HS_BLOCK_LOST;
	b->addr = w->time_ns;
	block_settle(w, b, index);
}

static __always_inline void block_dead(struct walk *w, struct hs_block *b)
{
	b->flags |= HS_BLOCK_DEAD;
	b->addr = w->time_ns;
}

/* Next block of the list that is being walked. */
static __always_inline struct hs_block *walk_next(struct walk *w, __u32 *index)
{
	struct hs_block *b;

	*index = w->d->cursor;
	b = block_at(*index);
	if (!b || !w->d->walk_left)
		return NULL;
	w->d->walk_left--;
	w->d->cursor = b->next;
	if (w->is_adopting)
		w->d->tracked++;
	return b;
}

/* A block that has moved: its first field is its new address. 0 or -1. */
static __always_inline int block_follow(struct hs_block *b)
{
	__u64 addr;

	if (read_word(&addr, b->addr) || !addr || addr & 7)
		return -1;
	b->addr = addr;
	return 0;
}

/*
 * After a minor collection: header 0 means promoted, and the first field is the
 * new address; any other header means dead. Header 1 is a promotion under way,
 * which cannot be after the barrier.
 */
static long minor_step(__u32 i, struct walk *w)
{
	struct hs_block *b;
	__u64 header;
	__u32 index;

	(void)i;
	b = walk_next(w, &index);
	if (!b)
		return 1;
	if (read_word(&header, b->addr - sizeof(header)) || header == 1) {
		block_give_up(w, b, index);
		return 0;
	}
	if (header == 0) {
		if (block_follow(b)) {
			block_give_up(w, b, index);
			return 0;
		}
		b->flags |= HS_BLOCK_MAJOR | HS_BLOCK_UNTOLD;
	} else {
		block_dead(w, b);
	}
	block_settle(w, b, index);
	return 0;
}

#define HEADER_COLOUR 0x300u

/* As a major cycle ends: what is not marked is dead. */
static long major_step(__u32 i, struct walk *w)
{
	struct hs_block *b;
	__u64 header;
	__u32 index;

	(void)i;
	b = walk_next(w, &index);
	if (!b)
		return 1;
	if (!(b->flags & HS_BLOCK_OVER)) {
		if (read_word(&header, b->addr - sizeof(header))) {
			block_give_up(w, b, index);
			return 0;
		}
		if ((header & HEADER_COLOUR) == w->colour)
			block_dead(w, b);
	}
	block_settle(w, b, index);
	return 0;
}

/* In a compaction: a block that has moved is marked at its old place, and its
 * first field is its new address. */
static long compact_step(__u32 i, struct walk *w)
{
	struct hs_block *b;
	__u64 header;
	__u32 index;

	(void)i;
	b = walk_next(w, &index);
	if (!b)
		return 1;
	if (!(b->flags & HS_BLOCK_OVER)) {
		if (read_word(&header, b->addr - sizeof(header)) ||
		    ((header & HEADER_COLOUR) == w->colour && block_follow(b))) {
			block_give_up(w, b, index);
			return 0;
		}
	}
	major_push(w->d, b, index);
	return 0;
}

static __always_inline void walk_begin(struct walk *w, struct hs_domain *d,
				       const struct sonde_gc *gc)
{
	w->d = d;
	w->time_ns = bpf_ktime_get_ns();
	w->tid = (__u32)bpf_get_current_pid_tgid();
	w->unique_id = gc->unique_id;
	w->colour = 0;
	w->free_first = 0;
	w->free_last = 0;
	w->is_adopting = 0;
	/* In a map, for the verifier, which would follow a count of the stack down. */
	d->walk_left = cfg_max_blocks;
}

static __always_inline void walk_end(struct walk *w)
{
	if (w->free_first && shared_push(&free_blocks, w->free_first, w->free_last))
		/* The entries are out of use until the programs are unloaded. */
		domain_lost(w->d, HS_LOSS_BLOCKS_FULL, 1);
}

/* Take the list of young blocks; promoted ones go to the major list. */
static __always_inline void walk_young(struct walk *w)
{
	w->d->cursor = w->d->young_head;
	w->d->young_head = 0;
	if (w->d->cursor)
		bpf_loop(WALK_MAX, minor_step, w, 0);
}

/* Take the list of major blocks and rebuild it. */
#define WALK_MAJOR(w, step)                                                                        \
	do {                                                                                       \
		(w)->d->cursor = (w)->d->major_head;                                               \
		(w)->d->major_head = 0;                                                            \
		if ((w)->d->cursor)                                                                \
			bpf_loop(WALK_MAX, step, w, 0);                                            \
	} while (0)

/* Hand the major blocks of a domain that goes over to whoever comes next. */
static __always_inline void orphan_major(struct hs_domain *d)
{
	__u32 first = d->major_head;

	if (!first)
		return;
	if (shared_push(&orphan_blocks, first, d->major_tail)) {
		/* They stay here, until user space says so (user/collect/untold.c). */
		domain_lost(d, HS_LOSS_FATE_UNKNOWN, d->tracked);
		return;
	}
	d->major_head = 0;
	d->tracked = 0;
}

/* The same for what terminated domains have left: it is this domain's then. */
#define WALK_ORPHANS(w, step)                                                                      \
	do {                                                                                       \
		if (!*(volatile __u64 *)&orphan_blocks)                                            \
			break;                                                                     \
		(w)->d->cursor = (__u32)__sync_lock_test_and_set(&orphan_blocks, 0);               \
		(w)->is_adopting = 1;                                                              \
		bpf_loop(WALK_MAX, step, w, 0);                                                    \
	} while (0)

#endif /* HEAPSONDE_LIFETIMES_H */
