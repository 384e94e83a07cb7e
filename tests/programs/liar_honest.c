/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The domain of the liar that tells the truth: what it tells must all be there, whatever the
 * others say.
 *
 * In:   how many blocks are to live and die.
 * Out:  probes fired as runtime/ would have; what was told, for the test to compare.
 *
 * Half of the blocks die young, half are promoted. Of these half are dead at the next major
 * cycle, and the others at the one after that.
 */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/programs/liar.h"

/* Header: 2 words, the colour in bits 8 and 9. */
#define UNMARKED 0x100u
#define MARKED 0x000u
#define HEADER(colour) (2u << 10 | (colour))

#define YOUNG_MAX 1024u

struct block {
	uint64_t header, field, other;
};

static struct block young[YOUNG_MAX], major[YOUNG_MAX];
static struct sonde_gc gc;
static uint64_t allocs, promotes, young_deaths, major_deaths;

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint32_t own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

struct sonde_gc new_gc(uint32_t unique_id)
{
	return (struct sonde_gc){ .unique_id = unique_id,
				  .parent_unique_id = unique_id,
				  .tier_mask = tiers_up(),
				  .colour_unmarked = UNMARKED,
				  .colour_marked = MARKED };
}

void begin_domain(uint32_t unique_id)
{
	static uint32_t begun[8];
	struct sonde_gc gc = new_gc(unique_id);
	size_t i = 0;

	while (i < N_ELEMENTS(begun) - 1 && begun[i] && begun[i] != unique_id)
		i++;
	if (!begun[i])
		fire_gc(DOMAIN_SPAWN, &gc);
	begun[i] = unique_id;
	fire_gc(MINOR_END, &gc);
}

struct registers honest_registers(const struct sonde_sample *samples, unsigned int n,
				  uint32_t unique_id)
{
	return (struct registers){ .samples = (uintptr_t)samples,
				   .bytes = n * sizeof(*samples),
				   .unique_id = unique_id,
				   .tier = (uint64_t)SONDE_BATCH_OWN << 32,
				   .now_ns = now_ns(),
				   .tid = own_tid() };
}

static void allocate(unsigned int n)
{
	static const uint64_t frames[3] = { 8, 16, 24 };
	struct sonde_sample samples[SONDE_BATCH_MAX];

	for (unsigned int i = 0; i < n; i++) {
		young[i] = (struct block){ HEADER(MARKED), 1, 1 };
		samples[i % SONDE_BATCH_MAX] = (struct sonde_sample){
			.block = (uintptr_t)&young[i].field,
			.size_words = 2,
			.n_samples = 3,
			.stack_hash = 4711,
			.frames = (uintptr_t)frames,
			.time_ns = now_ns(),
			.is_young = 1,
			.depth = 3,
		};
		if (i % SONDE_BATCH_MAX == SONDE_BATCH_MAX - 1 || i == n - 1)
			fire_all_tiers(
				honest_registers(samples, i % SONDE_BATCH_MAX + 1, HONEST_DOMAIN));
	}
	allocs += n;
	gc.minor_words += 3 * (uint64_t)n;
}

static void collect_minor(unsigned int n, struct block *to)
{
	for (unsigned int i = 0; i < n; i += 2) {
		to[i] = (struct block){ HEADER(i % 4 ? MARKED : UNMARKED), 1, 1 };
		young[i].header = 0;
		young[i].field = (uintptr_t)&to[i].field;
	}
	promotes += n / 2;
	young_deaths += n / 2;
	gc.promoted_words += 3 * (uint64_t)(n / 2);
	gc.major_words += 3 * (uint64_t)(n / 2);
	gc.minor_collections++;
	fire_gc(MINOR_END, &gc);
}

static void collect_major(unsigned int n)
{
	gc.major_collections++;
	fire_gc(MAJOR_END, &gc);
	major_deaths += n;
}

void be_honest(unsigned int n)
{
	struct sonde_gc now = new_gc(HONEST_DOMAIN);

	gc.unique_id = gc.parent_unique_id = HONEST_DOMAIN;
	gc.tier_mask = now.tier_mask;
	gc.colour_unmarked = UNMARKED;
	gc.colour_marked = MARKED;
	if (!gc.minor_collections)
		fire_gc(DOMAIN_SPAWN, &gc);
	/* The semaphores are looked at in a minor collection. */
	gc.minor_collections++;
	fire_gc(MINOR_END, &gc);
	for (unsigned int left = n, part; left; left -= part) {
		part = left < YOUNG_MAX ? left : YOUNG_MAX;
		allocate(part);
		collect_minor(part, major);
		collect_major((part + 3) / 4);
		for (unsigned int i = 0; i < part; i += 2)
			major[i].header = HEADER(UNMARKED);
		collect_major(part / 2 - (part + 3) / 4);
	}
}

void print_honest(void)
{
	printf("honest %lu %lu %lu %lu\n", allocs, promotes, young_deaths, major_deaths);
	allocs = promotes = young_deaths = major_deaths = 0;
}
