// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * What runs in the kernel: one program per probe.
 *
 * In:   the probes of a process with heapsonde's runtime (runtime/abi.h).
 * Out:  ring-buffer records and per-domain counters (records.h).
 *
 * A sample's way: it comes to hs_alloc in a batch (batch.h), which thins it to the
 * profile's rate (sampling.h), sends its stack if it is new (stacks.h), sends the alloc
 * record and puts the block on its domain's list; hs_minor_end, hs_major_end and hs_compact
 * (lifetimes.h) find out what becomes of it.
 */
#include "bpf/sampling.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("uprobe")
int hs_alloc(struct pt_regs *ctx)
{
	NO_PRIVATE_STACK(ctx);
	return batch_fire(ctx);
}

/* Attached to the stack_<n> probes only to raise their semaphores. */
SEC("uprobe")
int hs_nothing(struct pt_regs *ctx)
{
	(void)ctx;
	return 0;
}

/*
 * What all GC programs begin with: what the probe shows, and the domain, which has let the
 * thread in and must be left again.
 */
static __always_inline struct hs_domain *gc_read(struct pt_regs *ctx, struct sonde_gc *gc)
{
	struct hs_domain *d;

	NO_PRIVATE_STACK(ctx);
	if (is_stopped() || !user_is_right())
		return NULL;
	if (bpf_probe_read_user(gc, sizeof(*gc), (void *)PT_REGS_PARM1(ctx)) || !gc_is_sane(gc)) {
		lie_seen(HS_LOSS_GC_READ, 1);
		return NULL;
	}
	d = domain_get(gc);
	if (d && !domain_enter(d)) {
		lie_seen(HS_LOSS_GC_READ, 1);
		return NULL;
	}
	if (d)
		d->tid = (__u32)bpf_get_current_pid_tgid();
	return d;
}

/* And most go on with this: its counters up to date, its rate the one that is wanted. */
static __always_inline struct hs_domain *gc_enter(struct pt_regs *ctx, struct sonde_gc *gc)
{
	struct hs_domain *d = gc_read(ctx, gc);

	if (d) {
		counts_take(d, gc);
		rate_update(d, gc);
	}
	return d;
}

SEC("uprobe.s")
int hs_minor_end(struct pt_regs *ctx)
{
	struct hs_domain *d;
	struct sonde_gc gc;
	struct walk w;

	d = gc_enter(ctx, &gc);
	if (!d)
		return 0;
	walk_begin(&w, d, &gc);
	walk_young(&w);
	walk_end(&w);
	if (gc.flags & SONDE_GC_TERMINATING)
		orphan_major(d);
	domain_leave(d);
	return 0;
}

/*
 * A major cycle has ended, and what it did to the domain's blocks has been told. Every
 * domain says so while the profile samples, for blocks go from one to another; later
 * those that still follow some (had_blocks: before this cycle).
 *
 * Where a death of this cycle has had to wait (n_delayed: how many had until now), or
 * there is no room, nothing is said: the domain's next record has the number of cycles. Nor is
 * anything where the number has not grown, or is not one, by what the process says.
 */
static __always_inline void cycle_tell(const struct walk *w, const struct sonde_gc *gc,
				       bool had_blocks, __u64 n_delayed, __u64 n_before)
{
	struct hs_domain *d = w->d;

	if (is_stopped() || d->now.major_collections <= n_before)
		return;
	if (!(profile_flags() & HS_PROFILE_SAMPLING) && !had_blocks && !w->is_adopting)
		return;
	if (d->lost[HS_LOSS_EVENT_RING_FULL] != n_delayed || !ring_has_room(RING_LIFETIME) ||
	    domain_send(d, gc, HS_REC_MAJOR_CYCLE))
		domain_lost(d, HS_LOSS_EVENT_RING_FULL, 1);
}

/* All major blocks are looked at, those of terminated domains too. */
SEC("uprobe.s")
int hs_major_end(struct pt_regs *ctx)
{
	struct hs_domain *d;
	struct sonde_gc gc;
	bool had_blocks;
	__u64 n_delayed, n_before;
	struct walk w;

	d = gc_read(ctx, &gc);
	if (!d)
		return 0;
	n_before = d->now.major_collections;
	counts_take(d, &gc);
	rate_update(d, &gc);
	had_blocks = d->tracked > 0;
	n_delayed = d->lost[HS_LOSS_EVENT_RING_FULL];
	walk_begin(&w, d, &gc);
	w.colour = gc.colour_unmarked;
	WALK_MAJOR(&w, major_step);
	WALK_ORPHANS(&w, major_step);
	walk_end(&w);
	cycle_tell(&w, &gc, had_blocks, n_delayed, n_before);
	domain_leave(d);
	return 0;
}

SEC("uprobe.s")
int hs_compact(struct pt_regs *ctx)
{
	struct hs_domain *d;
	struct sonde_gc gc;
	struct walk w;

	d = gc_enter(ctx, &gc);
	if (!d)
		return 0;
	walk_begin(&w, d, &gc);
	w.colour = gc.colour_marked;
	WALK_MAJOR(&w, compact_step);
	WALK_ORPHANS(&w, compact_step);
	walk_end(&w);
	domain_leave(d);
	return 0;
}

SEC("uprobe")
int hs_domain_spawn(struct pt_regs *ctx)
{
	struct hs_domain *d;
	struct sonde_gc gc;

	d = gc_read(ctx, &gc);
	if (!d)
		return 0;
	counts_take(d, &gc);
	domain_tell(d, &gc, HS_REC_DOMAIN_SPAWN);
	rate_update(d, &gc);
	domain_leave(d);
	return 0;
}

/* The last word of a domain. Its blocks went at its last minor collection. */
SEC("uprobe.s")
int hs_domain_terminate(struct pt_regs *ctx)
{
	struct hs_domain *d;
	struct sonde_gc gc;
	struct walk w;

	d = gc_enter(ctx, &gc);
	if (!d)
		return 0;
	walk_begin(&w, d, &gc);
	walk_young(&w);
	walk_end(&w);
	orphan_major(d);
	domain_tell(d, &gc, HS_REC_DOMAIN_TERMINATE);
	/* Last of all: user space may take the entry away from here on. Nobody leaves it, so
	 * that nobody comes in. */
	barrier();
	d->flags |= HS_DOMAIN_TERMINATED;
	return 0;
}

SEC("uprobe")
int hs_exit(struct pt_regs *ctx)
{
	struct hs_domain *d;
	struct sonde_gc gc;

	d = gc_enter(ctx, &gc);
	if (!d)
		return 0;
	domain_tell(d, &gc, HS_REC_EXIT);
	d->flags |= HS_DOMAIN_EXITED;
	domain_leave(d);
	return 0;
}
