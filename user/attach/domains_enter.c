/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The domains that there are when a profile begins; see attachment.h.
 *
 * In:   what the process shows of its domains (user/attach/registry.h), which may be anything.
 * Out:  their entries in the map `domains`.
 */
#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "user/attach/attachment.h"

/* What the process shows of a domain: is it one, and are these counts? */
static bool is_sane(const struct sonde_domain_info *domain, const struct sonde_gc *gc)
{
	return domain->unique_id != UINT32_MAX && gc->minor_words <= INT64_MAX &&
	       gc->promoted_words <= INT64_MAX && gc->major_words <= INT64_MAX &&
	       gc->minor_collections <= INT64_MAX && gc->major_collections <= INT64_MAX;
}

static bool is_listed(const struct attach_options *o, uint32_t unique_id)
{
	if (!o->domains)
		return true;
	for (size_t i = 0; i < o->n_domains; i++)
		if (o->domains[i] == unique_id)
			return true;
	return false;
}

int domains__enter(struct attachment *a, const struct attach_options *o)
{
	int fd = bpf_map__fd(a->skel->maps.domains), n, err = 0;
	struct sonde_domain_info *live = NULL;

	n = target__domains(a->target, &live);
	if (n < 0)
		return n;
	for (int i = 0; i < n && !err; i++) {
		struct hs_domain_key key = { .tgid = (uint32_t)a->target->pid,
					     .unique_id = live[i].unique_id };
		struct hs_domain d = { .domain_id = live[i].domain_id };
		struct sonde_gc gc;

		if (is_listed(o, live[i].unique_id))
			d.flags |= HS_DOMAIN_COVERED;
		if (target__counts(a->target, &live[i], &gc) || !is_sane(&live[i], &gc))
			continue;
		d.now.minor_words = gc.minor_words;
		d.now.promoted_words = gc.promoted_words;
		d.now.major_words = gc.major_words;
		d.now.minor_collections = gc.minor_collections;
		d.now.major_collections = gc.major_collections;
		if (o->counters_only) {
			d.base = d.now;
			d.flags |= HS_DOMAIN_BASED;
		}
		err = bpf_map_update_elem(fd, &key, &d, BPF_ANY);
	}
	free(live);
	return err;
}
