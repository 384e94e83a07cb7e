/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The liar's probes: the same notes, sites, semaphores and registry as runtime/sites.c
 * makes, and whatever registers are asked for.
 *
 * In:   registers, addresses of structures that may be none.
 * Out:  traps, while somebody is attached.
 */
#include "tests/programs/liar.h"
#include "runtime/probes.h"

#define PROBES __attribute__((section(".probes"), used, visibility("hidden")))

PROBES volatile uint16_t liar_sem_alloc[SONDE_TIERS + 3];
PROBES volatile uint16_t liar_sem_stack[SONDE_STACK_CLASSES];
PROBES volatile uint16_t liar_sem_gc[GC_PROBES];

struct sonde_domain_info *liar_slots[8];

/* The frame descriptors of OCaml 5.3, as liar_stacks.c makes them up. */
PROBES struct sonde_registry liar_registry = {
	.abi_version = SONDE_ABI_VERSION,
	.size_bytes = sizeof(struct sonde_registry),
	.ocaml_version = "5.3.0",
	.domains = (uintptr_t)liar_slots,
	.max_domains = N_ELEMENTS(liar_slots),
	.fd_retaddr_bytes = 8,
	.fd_frame_data = 8,
	.fd_num_live = 10,
	.fd_live_ofs = 12,
};

__attribute__((noinline)) void fire_alloc(unsigned int tier, const struct registers *r)
{
#define TIER(k)                                                                                    \
	case k:                                                                                    \
		SONDE_SITE_BATCH("alloc_" #k, "liar_sem_alloc + 2 * " #k, r->samples, r->bytes,    \
				 r->unique_id, r->tier, r->now_ns, r->tid);                        \
		break;
	switch (tier) {
		TIER(0)
		TIER(1)
		TIER(2)
		TIER(3)
		TIER(4)
		TIER(5) TIER(6) TIER(7) TIER(8) TIER(9) TIER(10) TIER(11) TIER(12) TIER(13) TIER(14)
			TIER(15) TIER(16) TIER(17) TIER(18) TIER(19) TIER(20) TIER(21) TIER(22)
				TIER(23) TIER(24)
	}
#undef TIER
}

void fire_all_tiers(struct registers r)
{
	uint64_t flags = r.tier & ~(uint64_t)UINT32_MAX;

	for (unsigned int k = 0; k < SONDE_TIERS; k++) {
		r.tier = flags | k;
		if (liar_sem_alloc[k])
			fire_alloc(k, &r);
	}
}

__attribute__((noinline)) void fire_gc(enum gc_probe probe, const void *gc)
{
#define GC_PROBE(id, index, name)                                                                  \
	case id:                                                                                   \
		_Static_assert(id == index, "the assembler needs the number");                     \
		SONDE_SITE(name, "liar_sem_gc + 2 * " #index, gc, sizeof(struct sonde_gc));        \
		break;
	switch (probe) {
		GC_PROBE(MINOR_END, 0, "minor_end")
		GC_PROBE(MAJOR_END, 1, "major_end")
		GC_PROBE(COMPACT, 2, "compact")
		GC_PROBE(DOMAIN_SPAWN, 3, "domain_spawn")
		GC_PROBE(DOMAIN_TERMINATE, 4, "domain_terminate")
		GC_PROBE(GC_EXIT, 5, "exit")
	case GC_PROBES:
		break;
	}
#undef GC_PROBE
}

__attribute__((used, noinline)) static void never_executed(void){
#define NEVER(name, sem) __asm__ volatile(SONDE_SITE_BYTES SONDE_NOTE(name, sem, ""));
	NEVER("stack_16", "liar_sem_stack") NEVER("stack_32", "liar_sem_stack + 2")
		NEVER("stack_64", "liar_sem_stack + 4") NEVER("stack_128", "liar_sem_stack + 6")
			NEVER("stack_256", "liar_sem_stack + 8")
				NEVER("stack_512", "liar_sem_stack + 10")
					NEVER("stack_1024", "liar_sem_stack + 12")
						NEVER("registry", "liar_registry")
#undef NEVER
}

uint32_t tiers_up(void)
{
	uint32_t mask = 0;

	for (unsigned int k = 0; k < SONDE_TIERS; k++)
		mask |= (uint32_t)(liar_sem_alloc[k] != 0) << k;
	return mask;
}

static void write_some(volatile uint16_t *sems, size_t n, uint16_t value, int only_those_up)
{
	for (size_t i = 0; i < n; i++)
		if (sems[i] || !only_those_up)
			sems[i] = value;
}

void write_semaphores(uint16_t value, int only_those_up)
{
	write_some(liar_sem_alloc, SONDE_TIERS, value, only_those_up);
	write_some(liar_sem_stack, SONDE_STACK_CLASSES, value, only_those_up);
	write_some(liar_sem_gc, GC_PROBES, value, only_those_up);
}
