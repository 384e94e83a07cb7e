/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last events of blocks that found the ring buffer full; see collect.h.
 *
 * In:   the lists of tracked blocks, in the maps `domains` and `blocks`, when no
 *       program changes them any more.
 * Out:  the same events as if the ring buffer had had room.
 */
#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include "bpf/tables.h"
#include "user/collect/collect.h"

#include "user/common/clock.h"

struct untold {
	int blocks_fd;
	pid_t tgid;
	uint32_t profile;
	uint32_t left; /* blocks that may still be told: as many as the table has entries */
	collect_fn each;
	void *ctx;
};

/* Whose blocks, and the thread that ran there last; 0: nobody knows. */
struct owner {
	uint32_t domain;
	uint32_t tid;
};

static int tell(struct untold *u, const struct hs_block *b, const struct owner *owner,
		enum hs_record_type type, uint64_t time_ns)
{
	struct hs_rec_block rec = {
		.h = { .type = type,
		       .size_bytes = sizeof(rec),
		       .time_ns = time_ns,
		       .profile = u->profile,
		       .domain = owner->domain,
		       .tgid = (uint32_t)u->tgid,
		       .tid = owner->tid },
		.id = b->id,
		.heap = b->flags & HS_BLOCK_MAJOR ? HS_HEAP_MAJOR : HS_HEAP_MINOR,
	};
	struct hs_event event = { .type = type, .block = &rec };

	return u->each(u->ctx, &event);
}

/* Follow one list. is_left: its blocks were handed over to nobody. All lists together have no more
 * blocks than the table has entries; the bound is for lists that have become circles. */
static int tell_list(struct untold *u, uint32_t index, const struct owner *owner, bool is_left)
{
	for (; index && u->left; u->left--) {
		struct hs_block b;
		int err = bpf_map_lookup_elem(u->blocks_fd, &index, &b);

		if (err)
			return err == -ENOENT ? 0 : err;
		if (b.flags & HS_BLOCK_UNTOLD)
			err = tell(u, &b, owner, HS_REC_PROMOTE,
				   b.flags & HS_BLOCK_OVER ? b.addr : clock__now_ns());
		if (!err && b.flags & HS_BLOCK_DEAD)
			err = tell(u, &b, owner, HS_REC_DEALLOC, b.addr);
		else if (!err && (b.flags & HS_BLOCK_LOST || is_left))
			err = tell(u, &b, owner, HS_REC_UNKNOWN,
				   b.flags & HS_BLOCK_LOST ? b.addr : clock__now_ns());
		if (err)
			return err;
		index = b.next;
	}
	return 0;
}

int untold__collect(const struct attachment *a, pid_t tgid, collect_fn each, void *ctx)
{
	struct untold u = {
		.blocks_fd = attachment__blocks_fd(a),
		.tgid = tgid,
		.profile = attachment__number(a),
		.left = attachment__max_blocks(a),
		.each = each,
		.ctx = ctx,
	};
	struct domain_stat *stats = NULL;
	int n = counters__read(a, tgid, &stats), err = n < 0 ? n : 0;

	/* Whoever met a full ring may have left its blocks to another since. */
	for (int i = 0; i < n && !err; i++) {
		const struct owner owner = { stats[i].unique_id, stats[i].d.tid };

		err = tell_list(&u, stats[i].d.major_head, &owner,
				stats[i].d.flags & HS_DOMAIN_TERMINATED);
	}
	if (!err)
		err = tell_list(&u, attachment__orphans(a), &(struct owner){ 0, 0 }, false);
	free(stats);
	return err;
}
