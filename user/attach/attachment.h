/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of an attachment, for attach.c, detach.c and rates.c.
 */
#ifndef HEAPSONDE_ATTACHMENT_H
#define HEAPSONDE_ATTACHMENT_H

#include <bpf/libbpf.h>

#include "bpf/tables.h"
#include "heapsonde.skel.h"
#include "user/attach/attach.h"

#define GC_LINKS 6
#define ATTACHMENT_LINKS (GC_LINKS + 1 + SONDE_TIERS)

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

/* Links to be closed together; {0} is an empty one. Not those of two attachments. */
struct detach_list {
	struct bpf_link *links[ATTACHMENT_LINKS];
	size_t n;
};

/* Take over *link, which is NULL afterwards and may be before. */
void detach_list__add(struct detach_list *l, struct bpf_link **link);

/*
 * Close all of them. Afterwards their probes have gone, and the list is empty; also if we
 * are killed meanwhile, unless there were no processes to be had (see detach.c).
 * multi: they are uprobe_multi links, as in attachment.use_multi.
 */
void detach_list__run(struct detach_list *l, bool multi);

/*
 * Enter the domains that live now, before anything fires: so idle ones are known
 * too, and where only counters are wanted they count from here. What is no domain is left out.
 * Errors: -ESRCH, the process has ended; -EFAULT, -EPROTO, it shows what cannot be read; -E2BIG,
 * it says that it has more than the map has room for.
 */
int domains__enter(struct attachment *a, const struct attach_options *o);

#endif /* HEAPSONDE_ATTACHMENT_H */
