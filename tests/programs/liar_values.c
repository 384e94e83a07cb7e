/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lies in registers and in the structures that they point at.
 *
 * In:   how many.
 * Out:  probes fired; lies_seen_through and gc_lies_seen_through, for those that can be nothing but
 * lies.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/programs/liar.h"

#define PAGE 4096u

uint64_t lies_seen_through, gc_lies_seen_through;

/* xorshift64*, so that each run tells the same. */
uint64_t random_u64(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 2685821657736338717u;
}

static uint64_t unmapped_page(void)
{
	static uint64_t page;

	if (!page) {
		void *p = mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || mprotect(p, PAGE, PROT_NONE) ||
		    munmap((char *)p + PAGE, PAGE))
			die("mmap");
		page = (uintptr_t)p + PAGE;
	}
	return page;
}

const size_t n_wild_addresses = 14;

/* Nothing can be read at any of these. */
uint64_t wild_address_at(size_t i)
{
	const uint64_t fixed[] = {
		0,
		8,
		PAGE - 8,
		0x7ffffffff000u,
		0x800000000000u,     /* not canonical */
		0xdead000000000000u, /* neither */
		0x0100000000000000u,
		0xffff888000000000u, /* the kernel's */
		0xffffffff81000000u,
		0xfffffffffffff000u,
		UINT64_MAX - 7,
	};

	if (i < N_ELEMENTS(fixed))
		return fixed[i];
	switch (i - N_ELEMENTS(fixed)) {
	case 0:
		return unmapped_page();
	case 1:
		return unmapped_page() + 1;
	default:
		return unmapped_page() - 8; /* nobody may read it */
	}
}

uint64_t wild_address(void)
{
	return wild_address_at(random_below((uint32_t)n_wild_addresses));
}

static struct sonde_sample good_sample(void)
{
	static const uint64_t frames[2] = { 32, 40 };

	return (struct sonde_sample){ .block = (uintptr_t)frames,
				      .size_words = 2,
				      .n_samples = 1,
				      .stack_hash = 815,
				      .frames = (uintptr_t)frames,
				      .time_ns = now_ns(),
				      .depth = 2 };
}

/* ---- what is seen through ---- */

static void lie_of_batches(void)
{
	static const uint64_t lengths[] = { 0,
					    1,
					    55,
					    57,
					    33 * sizeof(struct sonde_sample),
					    (uint64_t)1 << 32 | 56,
					    (uint64_t)1 << 63,
					    UINT64_MAX };
	struct sonde_sample samples[SONDE_BATCH_MAX];
	struct registers r;

	for (unsigned int i = 0; i < SONDE_BATCH_MAX; i++)
		samples[i] = good_sample();
	for (size_t i = 0; i < N_ELEMENTS(lengths); i++) {
		r = honest_registers(samples, 1, LYING_DOMAIN);
		r.bytes = lengths[i];
		fire_all_tiers(r);
		lies_seen_through++;
	}
	for (unsigned int n = 1; n <= SONDE_BATCH_MAX; n++)
		for (size_t i = 0; i < n_wild_addresses; i++) {
			r = honest_registers(NULL, n, LYING_DOMAIN);
			r.samples = wild_address_at(i);
			fire_all_tiers(r);
			lies_seen_through += n;
		}
}

static void lie_of_sample(struct sonde_sample s)
{
	fire_all_tiers(honest_registers(&s, 1, LYING_DOMAIN));
	lies_seen_through++;
}

static void lie_of_samples(void)
{
	const uint64_t n_samples[] = { 0, 4, ((uint64_t)1 << 28) + 1, UINT64_MAX };
	const uint64_t sizes[] = { 0, (uint64_t)1 << 54, (uint64_t)1 << 63, UINT64_MAX };
	const uint16_t depths[] = { SONDE_STACK_MAX + 1, UINT16_MAX };
	struct sonde_sample s;

#define LIE(field, value) (s = good_sample(), s.field = (value), lie_of_sample(s))
	for (size_t i = 0; i < N_ELEMENTS(n_samples); i++)
		LIE(n_samples, n_samples[i]);
	for (size_t i = 0; i < N_ELEMENTS(sizes); i++)
		LIE(size_words, sizes[i]);
	for (size_t i = 0; i < N_ELEMENTS(depths); i++)
		LIE(depth, depths[i]);
	for (unsigned int source = SONDE_SRC_COUNT; source <= UINT8_MAX; source++)
		LIE(source, (uint8_t)source);
	for (unsigned int is_young = 2; is_young <= UINT8_MAX; is_young++)
		LIE(is_young, (uint8_t)is_young);
	for (uint64_t byte = 1; byte < 8; byte++)
		LIE(block, s.block + byte);
	/* Frames, but no hash of them. */
	LIE(stack_hash, 0);
#undef LIE
}

static void lie_of_gc(struct sonde_gc gc)
{
	for (int probe = 0; probe < GC_PROBES; probe++)
		fire_gc(probe, &gc);
	gc_lies_seen_through += GC_PROBES;
}

static void lie_of_gcs(void)
{
	struct sonde_gc gc;

	for (size_t i = 0; i < n_wild_addresses; i++)
		for (int probe = 0; probe < GC_PROBES; probe++) {
			fire_gc(probe, (void *)wild_address_at(i));
			gc_lies_seen_through++;
		}
	/* The id of those that have none, and counts that no program reaches. */
	lie_of_gc(new_gc(UINT32_MAX));
#define LIE(field, value) (gc = new_gc(LYING_DOMAIN), gc.field = (value), lie_of_gc(gc))
	LIE(minor_words, UINT64_MAX);
	LIE(promoted_words, (uint64_t)1 << 63);
	LIE(major_words, UINT64_MAX);
	LIE(minor_collections, UINT64_MAX - 1);
	LIE(major_collections, (uint64_t)1 << 63);
#undef LIE
}

void lie_plainly(void)
{
	begin_domain(LYING_DOMAIN);
	lie_of_batches();
	lie_of_samples();
	lie_of_gcs();
}

/* ---- what may be anything ---- */

static uint64_t random_number(void)
{
	switch (random_below(4)) {
	case 0:
		return wild_address();
	case 1:
		return random_u64();
	case 2:
		return random_u64() >> random_below(64);
	default:
		return random_below(64);
	}
}

static void random_bytes(void *to, size_t n)
{
	for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
		uint64_t word = random_number();

		memcpy((char *)to + i, &word, sizeof(word));
	}
}

/* A sample that is taken for one half of the time. */
static struct sonde_sample random_sample(uint64_t *memory, size_t n)
{
	struct sonde_sample s;

	random_bytes(&s, sizeof(s));
	if (random_below(2)) {
		s.block = random_below(2) ? (uintptr_t)&memory[1 + random_below((uint32_t)n - 2)]
					  : wild_address() & ~(uint64_t)7;
		s.n_samples = 1 + (random_u64() >> (36 + random_below(28)));
		s.size_words = 1 + (s.size_words >> 10);
		s.n_samples = s.n_samples < s.size_words ? s.n_samples : s.size_words;
		s.source = (uint8_t)random_below(SONDE_SRC_COUNT);
		s.is_young = (uint8_t)random_below(2);
		s.depth = (uint16_t)random_below(SONDE_STACK_MAX + 1);
		s.frames = random_below(2) ? (uintptr_t)memory : s.frames;
		s.stack_hash = random_below(100);
	}
	return s;
}

static void random_batch(uint64_t *memory, size_t n)
{
	struct sonde_sample samples[6];
	unsigned int k = random_below(SONDE_TIERS);
	struct registers r;

	for (unsigned int i = 0; i < N_ELEMENTS(samples); i++)
		samples[i] = random_sample(memory, n);
	if (random_below(2)) {
		r = honest_registers(samples, 1 + random_below(N_ELEMENTS(samples)),
				     RANDOM_DOMAINS + random_below(32));
		r.tid = random_below(2) ? r.tid : random_u64();
		fire_all_tiers(r);
	} else {
		random_bytes(&r, sizeof(r));
		fire_alloc(k, &r);
	}
}

static void random_gc(void)
{
	struct sonde_gc gc = new_gc(0);
	uint32_t mask = gc.tier_mask;

	random_bytes(&gc, sizeof(gc));
	/* One that terminates must not come back, or the order of the records would be no order. */
	gc.unique_id = RANDOM_DOMAINS + random_below(32);
	gc.flags = 0;
	gc.tier_mask = random_below(4) ? mask : gc.tier_mask;
	gc.colour_unmarked = random_below(4) << 8;
	gc.colour_marked = random_below(4) << 8;
	if (random_below(2))
		for (__u64 *c = &gc.minor_words; c <= &gc.major_collections; c++)
			*c = random_u64() >> (1 + random_below(63));
	/* A domain that exits may do so again and again. */
	fire_gc((enum gc_probe[]){ MINOR_END, MAJOR_END, COMPACT, GC_EXIT }[random_below(4)],
		random_below(8) ? (void *)&gc : (void *)random_number());
}

void lie_at_random(unsigned int n)
{
	enum { WORDS = 4096 };
	static uint64_t memory[WORDS];

	for (unsigned int i = 0; i < n; i++) {
		memory[random_below(WORDS)] = random_number();
		if (random_below(3))
			random_batch(memory, WORDS);
		else
			random_gc();
	}
}
