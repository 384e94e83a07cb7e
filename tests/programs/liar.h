/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of the liar share (liar.c says what it is for).
 *
 *   liar.c           the commands, and what is checked at the end
 *   liar_sites.c     probes, semaphores, registry: those of runtime/, without an OCaml
 *   liar_honest.c    a domain that tells nothing but the truth
 *   liar_values.c    lies in registers and structures
 *   liar_stacks.c    lies in call stacks, frame tables and names
 *   liar_heap.c      lies in headers, and in how many threads run for a domain
 *   liar_domains.c   lies about domains, the registry and the semaphores
 */
#ifndef LIAR_H
#define LIAR_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/abi.h"

#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

/* Unique ids. All others are made up by whoever needs them. */
#define HONEST_DOMAIN 1u
#define LYING_DOMAIN 2u
#define RANDOM_DOMAINS 1000u /* and 31 more */
#define MANY_DOMAINS 100000u

/* ---- liar_sites.c ---- */

enum gc_probe { MINOR_END, MAJOR_END, COMPACT, DOMAIN_SPAWN, DOMAIN_TERMINATE, GC_EXIT, GC_PROBES };

/* What an alloc_<k> probe shows. */
struct registers {
	uint64_t samples, bytes, unique_id, tier, now_ns, tid;
};

extern struct sonde_registry liar_registry;
extern struct sonde_domain_info *liar_slots[8];

/* Fire alloc_<tier>, whatever the registers say; an observer may be there or not. */
void fire_alloc(unsigned int tier, const struct registers *r);
/* The same as an honest domain would: on all tiers that are watched. */
void fire_all_tiers(struct registers r);
void fire_gc(enum gc_probe probe, const void *gc);
/* Bit k: somebody watches tier k. */
uint32_t tiers_up(void);
/* Write this value into each semaphore; or only into those that are not 0. */
void write_semaphores(uint16_t value, int only_those_up);

/* ---- liar_honest.c ---- */

uint64_t now_ns(void);
uint32_t own_tid(void);
/* The state of a domain as a GC probe shows it, as it is before it has done anything. */
struct sonde_gc new_gc(uint32_t unique_id);
/* Spawn a domain, if it has not been, and have it look at the semaphores. */
void begin_domain(uint32_t unique_id);
/* The registers for n samples of a domain, without a lie in them. */
struct registers honest_registers(const struct sonde_sample *samples, unsigned int n,
				  uint32_t unique_id);
/* Let n blocks live and die; counts what was told. n: a multiple of 4. */
void be_honest(unsigned int n);
/* Print how much was told: "honest ALLOCS PROMOTES YOUNG_DEATHS MAJOR_DEATHS". */
void print_honest(void);

/* ---- random numbers, from a fixed seed ---- */

uint64_t random_u64(void);
static inline uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_u64() % n);
}
/* Null, unmapped, non-canonical, the kernel's, misaligned, forbidden: one of these. */
uint64_t wild_address(void);
extern const size_t n_wild_addresses;
uint64_t wild_address_at(size_t i);

/* ---- the lies; each returns when it has told n of them ---- */

/* Lies that are seen through at once: samples, and batches that are none; GC events. */
extern uint64_t lies_seen_through, gc_lies_seen_through;

void lie_plainly(void); /* liar_values.c */
void lie_at_random(unsigned int n);
void lie_of_stacks(unsigned int n, const char *kind); /* liar_stacks.c */
void lie_of_tables(unsigned int n);
void make_mappings(unsigned int n);
void lie_of_headers(unsigned int n); /* liar_heap.c */
void lie_of_places(unsigned int n);
void lie_from_threads(unsigned int n);
void lie_of_domains(unsigned int n, const char *kind); /* liar_domains.c */
void lie_in_registry(const char *kind);

/* ---- liar.c ---- */

_Noreturn void die(const char *what);

#endif /* LIAR_H */
