/* SPDX-License-Identifier: BSD-2-Clause */
/* See attach_notes.h. */
#include "user/cli/attach_notes.h"
#include "user/common/units.h"

#include <stdlib.h>

#include "user/cli/cli.h"
#include "user/common/say.h"

void attach_notes__target(const struct target *t, const struct kernel_features *kernel)
{
	bool is_multi = kernel->uprobe_multi && kernel->uprobe_multi_by_pid;
	struct sonde_domain_info *domains = NULL;
	int n;

	if (!say__is_on(SAY_DETAILS))
		return;
	n = target__domains(t, &domains);
	free(domains);
	say__detail("PID %d runs %s, OCaml %.*s, %d domain%s", t->pid, t->exe,
		    (int)sizeof(t->registry.ocaml_version), t->registry.ocaml_version,
		    n > 0 ? n : 0, n == 1 ? "" : "s");
	say__detail("kernel %s: %s, GC programs %s, %s", kernel->release,
		    is_multi ? "uprobe_multi links" : "perf uprobes, one by one",
		    kernel->sleepable_uprobe ? "may fault pages in" : "cannot fault pages in",
		    kernel->nop10 ? "probes can be optimized" : "each probe is a trap");
}

void attach_notes__attached(const struct attach_options *a, uint64_t took_ns)
{
	char rate[UNITS_RATE_CHARS];

	if (a->counters_only) {
		say__detail("GC probes attached in %.1f ms", (double)took_ns / 1e6);
		return;
	}
	units__rate(a->tier.rate, rate);
	say__detail("attached in %.1f ms: rate %s (probe alloc_%u), %u frames a stack",
		    (double)took_ns / 1e6, rate, a->tier.tier, a->stack_depth);
	say__detail("kernel memory: ring buffer of %u bytes, up to %u blocks, %u stacks",
		    a->ring_bytes ? a->ring_bytes : ATTACH_RING_BYTES,
		    a->max_blocks ? a->max_blocks : ATTACH_MAX_BLOCKS,
		    a->max_stacks ? a->max_stacks : ATTACH_MAX_STACKS);
}
