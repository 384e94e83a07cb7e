/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of an attachment, for attach.c and rates.c.
 */
#ifndef HEAPSONDE_ATTACHMENT_H
#define HEAPSONDE_ATTACHMENT_H

#include <bpf/libbpf.h>

#include "bpf/tables.h"
#include "heapsonde.skel.h"
#include "user/attach/attach.h"

#define GC_LINKS 6

struct attachment {
	const struct target *target; /* borrowed */
	struct heapsonde_bpf *skel;
	struct bpf_link *gc[GC_LINKS]; /* in the order of attaching */
	struct bpf_link *stack;
	struct bpf_link *tiers[SONDE_TIERS];
	bool counters_only;
	bool use_multi; /* uprobe_multi links instead of perf ones */
	bool skip_nop;  /* attach at the nop10 that follows the nop */
};

/* What the programs consult; see bpf/tables.h. */
static inline struct hs_profile *attachment__profile(const struct attachment *a)
{
	return &a->skel->bss->profile;
}

/* Attach the probe of a tier, unless it is. Errors: those of libbpf, with a text. */
int attachment__attach_tier(struct attachment *a, unsigned int tier, struct hs_error *err);

/* *link NULL is fine; it is NULL afterwards. */
void attachment__detach_link(struct bpf_link **link);

#endif /* HEAPSONDE_ATTACHMENT_H */
