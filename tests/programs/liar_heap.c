/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lies in headers: words that change while they are read, forwarding pointers to anywhere and
 * in circles, one block sampled again and again; and domains for which several threads run
 * at once.
 *
 * In:   how many.
 * Out:  probes fired.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/programs/liar.h"

enum { WORDS = 2048, THREADS = 4 };

/* Written by a thread of its own all the time. */
static _Atomic uint64_t memory[WORDS];
static atomic_bool is_over;

/* Whatever a header or a first field may be: colours, 0, 1, addresses in here and elsewhere. */
static void *flip(void *unused)
{
	uint64_t state = 4242;

	(void)unused;
	while (!is_over) {
		uint64_t value;

		state = state * 6364136223846793005u + 1442695040888963407u;
		switch (state >> 61) {
		case 0:
			value = 0;
			break;
		case 1:
			value = 1;
			break;
		case 2:
		case 3:
			value = (uintptr_t)&memory[1 + (state >> 33) % (WORDS - 1)];
			break;
		case 4:
			value = 0xffff888000000000u + (state >> 40);
			break;
		case 5:
			value = state;
			break;
		default:
			value = (state >> 40) << 10 | ((state >> 30) & 3) << 8;
		}
		memory[(state >> 16) % WORDS] = value;
	}
	return NULL;
}

static void fire_blocks(uint32_t domain, unsigned int n, uint64_t (*block)(void))
{
	static const uint64_t frames[1] = { 48 };
	struct sonde_sample samples[SONDE_BATCH_MAX];

	for (unsigned int i = 0; i < n; i++)
		samples[i] = (struct sonde_sample){ .block = block(),
						    .size_words = 1 + random_below(100),
						    .n_samples = 1,
						    .stack_hash = 99,
						    .frames = (uintptr_t)frames,
						    .time_ns = now_ns() + random_below(3) - 1,
						    .is_young = (uint8_t)random_below(2),
						    .depth = 1 };
	fire_all_tiers(honest_registers(samples, n, domain));
}

static uint64_t some_word(void)
{
	return (uintptr_t)&memory[1 + random_below(WORDS - 1)];
}

static uint64_t one_word(void)
{
	return (uintptr_t)&memory[1];
}

static void collect(uint32_t domain, unsigned int i)
{
	struct sonde_gc gc = new_gc(domain);

	gc.minor_collections = gc.major_collections = i + 2;
	gc.colour_unmarked = random_below(4) << 8;
	gc.colour_marked = random_below(4) << 8;
	fire_gc((enum gc_probe[]){ MINOR_END, MINOR_END, MAJOR_END, COMPACT }[random_below(4)],
		&gc);
}

void lie_of_headers(unsigned int n)
{
	pthread_t thread;

	begin_domain(LYING_DOMAIN);
	is_over = 0;
	if (pthread_create(&thread, NULL, flip, NULL))
		die("pthread_create");
	for (unsigned int i = 0; i < n; i++) {
		fire_blocks(LYING_DOMAIN, 1 + random_below(SONDE_BATCH_MAX), some_word);
		collect(LYING_DOMAIN, i);
	}
	is_over = 1;
	pthread_join(thread, NULL);
}

/*
 * The same block sampled again and again, and blocks that all move to the place of the first,
 * whose forwarding pointer leads to itself.
 */
void lie_of_places(unsigned int n)
{
	struct sonde_gc gc = new_gc(LYING_DOMAIN);

	begin_domain(LYING_DOMAIN);
	gc.colour_marked = 0x200;
	gc.colour_unmarked = 0x100;
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int w = 0; w < WORDS; w++)
			memory[w] = w % 2 ? (uintptr_t)&memory[1] : 0x200;
		fire_blocks(LYING_DOMAIN, SONDE_BATCH_MAX, random_below(2) ? one_word : some_word);
		fire_gc(COMPACT, &gc);
		memory[0] = i % 64 ? 0 : 0x100;
		fire_gc(i % 64 ? MINOR_END : MAJOR_END, &gc);
	}
}

/* ---- threads ---- */

static void *run_for_all(void *arg)
{
	unsigned int n = *(unsigned int *)arg;

	for (unsigned int i = 0; i < n; i++) {
		uint32_t domain = RANDOM_DOMAINS + random_below(2);

		fire_blocks(domain, SONDE_BATCH_MAX, some_word);
		collect(domain, i);
	}
	return NULL;
}

void lie_from_threads(unsigned int n)
{
	pthread_t threads[THREADS], flipper;

	begin_domain(RANDOM_DOMAINS);
	begin_domain(RANDOM_DOMAINS + 1);
	is_over = 0;
	if (pthread_create(&flipper, NULL, flip, NULL))
		die("pthread_create");
	for (int t = 0; t < THREADS; t++)
		if (pthread_create(&threads[t], NULL, run_for_all, &n))
			die("pthread_create");
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	is_over = 1;
	pthread_join(flipper, NULL);
}
