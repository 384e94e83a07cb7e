/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lies about domains, and in what the process shows of itself: the registry.
 *
 * In:   how many, of which kind.
 * Out:  probes fired; the registry changed.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/programs/liar.h"

/* One sample, so that there is something to lose. */
static void sample_in(uint32_t domain)
{
	static const uint64_t frames[1] = { 56 };
	static uint64_t block[2] = { 2 << 10, 1 };
	const struct sonde_sample s = { .block = (uintptr_t)&block[1],
					.size_words = 2,
					.n_samples = 1,
					.stack_hash = 77,
					.frames = (uintptr_t)frames,
					.time_ns = now_ns(),
					.is_young = 1,
					.depth = 1 };

	fire_all_tiers(honest_registers(&s, 1, domain));
}

static void live_and_die(uint32_t domain, int terminates)
{
	struct sonde_gc gc = new_gc(domain);

	gc.domain_id = domain * 2654435761u;
	gc.parent_unique_id = HONEST_DOMAIN;
	gc.minor_words = gc.minor_collections = 1;
	fire_gc(DOMAIN_SPAWN, &gc);
	fire_gc(MINOR_END, &gc);
	sample_in(domain);
	gc.flags = terminates ? SONDE_GC_TERMINATING : 0;
	if (terminates) {
		fire_gc(MINOR_END, &gc);
		fire_gc(DOMAIN_TERMINATE, &gc);
	}
}

void lie_of_domains(unsigned int n, const char *kind)
{
	struct sonde_gc gc = new_gc(LYING_DOMAIN);
	static const uint32_t few[] = { 7, UINT32_MAX - 1, 8, UINT32_MAX, 6, 1u << 31, 7, 5 };

	for (unsigned int i = 0; i < n; i++) {
		if (!strcmp(kind, "many")) /* each lives and dies */
			live_and_die(MANY_DOMAINS + i, 1);
		else if (!strcmp(kind, "descending"))
			live_and_die(2000000000u - i, 1);
		else if (!strcmp(kind, "spawned")) { /* and none ever ends */
			gc.unique_id = 3000000000u + i;
			fire_gc(DOMAIN_SPAWN, &gc);
		} else /* a few, that come back after their end */
			live_and_die(few[i % N_ELEMENTS(few)], random_below(4) > 0);
	}
}

/* ---- registry ---- */

static struct sonde_domain_info honest_info;
static struct sonde_gc honest_gc;

/* Slots as many as may be, which all lead to the one domain that they say is there. */
static void many_slots(uint64_t slot)
{
	const size_t bytes = 65536 * sizeof(uint64_t);
	static uint64_t *slots;

	if (!slots)
		slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	if (slots == MAP_FAILED)
		die("mmap");
	for (size_t i = 0; i < 65536; i++)
		slots[i] = slot;
	liar_registry.domains = (uintptr_t)slots;
	liar_registry.max_domains = 65536;
}

/* Each slot a domain of its own: more than any OCaml has. */
static void many_infos(void)
{
	const size_t n = 65536;
	struct sonde_domain_info *infos = mmap(NULL, n * sizeof(*infos), PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (infos == MAP_FAILED)
		die("mmap");
	many_slots(0);
	for (size_t i = 0; i < n; i++) {
		infos[i] = honest_info;
		infos[i].unique_id = MANY_DOMAINS + (uint32_t)i;
		((uint64_t *)liar_registry.domains)[i] = (uintptr_t)&infos[i];
	}
}

void lie_in_registry(const char *kind)
{
	honest_gc = new_gc(HONEST_DOMAIN);
	honest_info = (struct sonde_domain_info){ .unique_id = HONEST_DOMAIN,
						  .live = 1,
						  .tid = own_tid(),
						  .unique_id_addr = (uintptr_t)&honest_info,
						  .gc_addr = (uintptr_t)&honest_gc };
	memset(liar_slots, 0, sizeof(liar_slots));
	liar_slots[0] = &honest_info;
	liar_registry.domains = (uintptr_t)liar_slots;
	liar_registry.max_domains = N_ELEMENTS(liar_slots);
	liar_registry.abi_version = SONDE_ABI_VERSION;
	liar_registry.size_bytes = sizeof(liar_registry);
	strcpy(liar_registry.ocaml_version, "5.3.0");
	if (!strcmp(kind, "count"))
		liar_registry.max_domains = UINT32_MAX;
	else if (!strcmp(kind, "self")) /* it is its own table, and each slot the registry */
		many_slots((uintptr_t)&liar_registry);
	else if (!strcmp(kind, "same"))
		many_slots((uintptr_t)&honest_info);
	else if (!strcmp(kind, "many"))
		many_infos();
	else if (!strcmp(kind, "kernel"))
		many_slots(0xffff888000000000u);
	else if (!strcmp(kind, "version"))
		liar_registry.abi_version = UINT16_MAX;
	else if (!strcmp(kind, "text"))
		memset(liar_registry.ocaml_version, 0x1b, sizeof(liar_registry.ocaml_version));
	else if (!strcmp(kind, "nobody")) { /* an id that is nowhere, counts that are no counts */
		honest_info.unique_id = UINT32_MAX;
		honest_info.unique_id_addr = 0xffff888000000000u;
	} else if (!strcmp(kind, "counts")) {
		honest_gc.minor_words = honest_gc.major_words = UINT64_MAX;
		honest_gc.promoted_words = (uint64_t)1 << 63;
	}
}
