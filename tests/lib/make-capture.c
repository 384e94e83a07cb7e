/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A made-up capture of any size: what a recorder would have written of a program that never
 * was. For measuring and for tests of large inputs.
 *
 *   make-capture [-n ALLOCS] [-s STACKS] [-d DEPTH] [-k DOMAINS] [-x SEED] [--cut] >big.hsd
 *
 *   ALLOCS   allocations (100000); with what becomes of them there are about 2.1 records
 *            each: -n 4700000 gives 10 million
 *   STACKS   distinct call stacks (1000), of DEPTH frames each (12)
 *   DOMAINS  domains (4), numbered from 0, which allocate in turn
 *   SEED     another one gives another program (1); the same gives the same bytes
 *   --cut    end without a summary, as if the recorder had been killed
 *
 * In:   its arguments; the layouts of user/sinks/raw_format.h and bpf/records.h.
 * Out:  a plain raw capture on stdout (docs/capture-format.md); pipe it through zstd for a
 *       compressed one. Exit status 1 if it cannot be written, 2 for wrong arguments.
 *
 * The program: stacks are a tree (neighbouring numbers share their outer frames), and the
 * lower a stack's number, the more often it allocates. Rate 2^-10, from the middle on 2^-11
 * (a rate record for each domain). What a stack allocates is always of one kind: one stack in
 * 64 allocates large blocks of any size in the major heap, the others small ones of one size;
 * one in 100 unmarshals, one in 100 allocates custom memory. Of the young ones two
 * thirds die at their domain's next minor collection, every 4096 of its samples, the others
 * are promoted. All domains collect the major heap together, after every 16 minor collections
 * of domain 0; there a block dies with probability 1/2, but never if its stack's number is a
 * multiple of 50: those leak.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/records.h"
#include "user/sinks/raw_format.h"

#define TIER 10u
#define YOUNG 4096u       /* samples of a domain between two minor collections */
#define MINORS_A_CYCLE 16 /* of domain 0 */
#define FANOUT 16u        /* of the tree of stacks */
#define BEGIN_NS 1000000000000ull
#define STEP_NS 1000u /* from one allocation to the next */
#define PID 4242u

struct block {
	uint64_t id;
	uint32_t stack;
	bool is_major;
};

struct domain {
	struct hs_counts counts;
	uint32_t tier;
	struct block young[YOUNG];
	uint32_t n_young;
	struct block *old;
	size_t n_old, room;
	uint64_t records, samples;
};

static struct {
	uint64_t n_allocs, seed, time_ns;
	uint32_t n_stacks, depth, n_domains;
	bool is_cut;
	struct domain *domains;
	bool *told;  /* stacks */
	bool *known; /* frames */
} m = { .n_allocs = 100000, .n_stacks = 1000, .depth = 12, .n_domains = 4, .seed = 1 };

static void die(const char *what)
{
	fprintf(stderr, "make-capture: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* xorshift64*: the same numbers everywhere. */
static uint64_t draw(uint64_t n)
{
	m.seed ^= m.seed >> 12;
	m.seed ^= m.seed << 25;
	m.seed ^= m.seed >> 27;
	return (m.seed * 0x2545f4914f6cdd1dull >> 11) % n;
}

/* ---- chunks ---- */

static void put(const void *bytes, size_t n)
{
	if (fwrite(bytes, 1, n, stdout) != n)
		die("cannot write");
}

static void put_chunk(enum raw_kind kind, const void *bytes, size_t n)
{
	const struct raw_chunk chunk = { kind, (uint32_t)n };

	put(&chunk, sizeof(chunk));
	put(bytes, n);
	put("\0\0\0\0\0\0\0", -n & 7);
}

static struct hs_record record(enum hs_record_type type, size_t size, uint32_t domain)
{
	const bool is_of_profile = type < HS_REC_DOMAIN_SPAWN || type == HS_REC_RATE;

	return (struct hs_record){ .type = type,
				   .size_bytes = (uint32_t)size,
				   .time_ns = m.time_ns,
				   .profile = is_of_profile,
				   .domain = domain,
				   .tgid = PID,
				   .tid = PID + domain };
}

static void put_domain(enum hs_record_type type, uint32_t domain)
{
	const struct hs_rec_domain r = { .h = record(type, sizeof(r), domain),
					 .domain_id = domain,
					 .counts = m.domains[domain].counts };

	put_chunk(RAW_RECORD, &r, sizeof(r));
}

static void put_block(enum hs_record_type type, uint32_t domain, const struct block *b)
{
	const struct hs_rec_block r = { .h = record(type, sizeof(r), domain),
					.id = b->id,
					.heap = b->is_major ? HS_HEAP_MAJOR : HS_HEAP_MINOR };

	put_chunk(RAW_RECORD, &r, sizeof(r));
}

/* ---- stacks ---- */

/* The frame at a level of a stack, 0 the innermost: a digit of the stack's number. */
static uint64_t frame_of(uint32_t stack, uint32_t level)
{
	uint64_t digit = stack;

	if (level + 1 == m.depth && level)
		return 8; /* the root of all */
	for (uint32_t i = 0; i < level; i++)
		digit /= FANOUT;
	/* The last level that counts takes all the rest. */
	if (level + 2 < m.depth)
		digit %= FANOUT;
	return ((uint64_t)(level + 1) << 40 | digit << 4) + 8;
}

/* Have its names been written? There are FANOUT frames a level, more only on the last one. */
static bool *known(uint64_t slot)
{
	return &m.known[slot == 8 ? 0 : 1 + ((slot >> 40) - 1) * FANOUT + (slot >> 4 & UINT32_MAX)];
}

static void put_frame(uint64_t slot)
{
	struct {
		struct raw_frame frame;
		struct raw_location location;
		char names[96];
	} f = { .frame = { .slot = slot, .n_locations = 1 } };
	unsigned int level = (unsigned int)(slot >> 40), digit = (unsigned int)(slot >> 4);
	int n_function = snprintf(f.names, 48, "Level%u.function_%u", level, digit);
	int n_file = snprintf(f.names + n_function, 48, "src/level%u.ml", level);

	f.location = (struct raw_location){ .line = digit % 1000 + 1,
					    .end_line = digit % 1000 + 1,
					    .start_char = 4,
					    .end_char = 20,
					    .end_offset = 20,
					    .flags = RAW_LOCATION_FUNCTION | RAW_LOCATION_FILE,
					    .function_bytes = (uint32_t)n_function,
					    .file_bytes = (uint32_t)n_file };
	put_chunk(RAW_FRAME, &f, offsetof(typeof(f), names) + (size_t)(n_function + n_file));
}

static uint64_t hash_of(uint32_t stack)
{
	return (stack + 1) * 0x9e3779b97f4a7c15ull;
}

static void put_stack(uint32_t stack, uint32_t domain)
{
	size_t size = sizeof(struct hs_rec_stack) + m.depth * sizeof(uint64_t);
	struct hs_rec_stack *r = calloc(1, size);

	if (!r)
		die("memory");
	r->h = record(HS_REC_STACK, size, domain);
	r->hash = hash_of(stack);
	r->depth = m.depth;
	for (uint32_t i = 0; i < m.depth; i++) {
		r->frames[i] = frame_of(stack, i);
		if (!*known(r->frames[i]))
			put_frame(r->frames[i]);
		*known(r->frames[i]) = true;
	}
	put_chunk(RAW_RECORD, r, size);
	m.told[stack] = true;
	free(r);
}

/* ---- collections ---- */

static void grow_old(struct domain *d, const struct block *b)
{
	if (d->n_old == d->room) {
		struct block *more;

		d->room = d->room ? 2 * d->room : 1024;
		more = realloc(d->old, d->room * sizeof(*d->old));
		if (!more)
			die("memory");
		d->old = more;
	}
	d->old[d->n_old] = *b;
	d->old[d->n_old++].is_major = true;
}

static void collect_minor(uint32_t domain)
{
	struct domain *d = &m.domains[domain];

	for (uint32_t i = 0; i < d->n_young; i++) {
		const struct block *b = &d->young[i];

		if (b->stack % 50 && draw(3)) {
			put_block(HS_REC_DEALLOC, domain, b);
			continue;
		}
		grow_old(d, b);
		put_block(HS_REC_PROMOTE, domain, &d->old[d->n_old - 1]);
		d->counts.promoted_words += 1u << d->tier;
		d->counts.major_words += 1u << d->tier;
	}
	d->n_young = 0;
	d->counts.minor_collections++;
}

static void collect_major(void)
{
	for (uint32_t k = 0; k < m.n_domains; k++) {
		struct domain *d = &m.domains[k];
		size_t kept = 0;

		collect_minor(k);
		for (size_t i = 0; i < d->n_old; i++) {
			if (d->old[i].stack % 50 && draw(2))
				put_block(HS_REC_DEALLOC, k, &d->old[i]);
			else
				d->old[kept++] = d->old[i];
		}
		d->n_old = kept;
		d->counts.major_collections++;
		put_domain(HS_REC_MAJOR_CYCLE, k);
	}
}

static void change_rate(void)
{
	for (uint32_t k = 0; k < m.n_domains; k++) {
		struct hs_rec_rate r = { .h = record(HS_REC_RATE, sizeof(r), k),
					 .keep_p = 1ull << 32,
					 .tier = TIER + 1 };

		collect_minor(k);
		r.counts = m.domains[k].counts;
		m.domains[k].tier = r.tier;
		put_chunk(RAW_RECORD, &r, sizeof(r));
	}
}

/* ---- the program ---- */

static uint8_t source_of(uint32_t stack)
{
	switch (stack % 100) {
	case 2:
		return 1; /* marshal */
	case 3:
		return 2; /* custom */
	default:
		return 0;
	}
}

static void allocate(uint64_t id)
{
	uint32_t domain = (uint32_t)(id / 16 % m.n_domains);
	uint64_t a = draw(m.n_stacks), b = draw(m.n_stacks);
	struct domain *d = &m.domains[domain];
	uint32_t stack = (uint32_t)(a < b ? a : b);
	bool is_large = stack % 64 == 7;
	struct hs_rec_alloc r = { .h = record(HS_REC_ALLOC, sizeof(r), domain),
				  .id = id,
				  .size_words = is_large ? 300 + draw(100000) : 1 + stack % 12,
				  .n_samples = 1,
				  .source = source_of(stack),
				  .heap = is_large ? HS_HEAP_MAJOR : HS_HEAP_MINOR,
				  .is_tracked = 1,
				  .depth = m.depth };
	struct block block = { id, stack, is_large };

	if (is_large)
		r.n_samples += r.size_words >> d->tier;
	r.stack_hash = hash_of(block.stack);
	if (!m.told[block.stack])
		put_stack(block.stack, domain);
	put_chunk(RAW_RECORD, &r, sizeof(r));
	d->records++;
	d->samples += r.n_samples;
	if (is_large) {
		d->counts.major_words += r.n_samples << d->tier;
		grow_old(d, &block);
		return;
	}
	if (r.source != 2)
		d->counts.minor_words += 1u << d->tier;
	d->young[d->n_young++] = block;
	if (d->n_young < YOUNG)
		return;
	collect_minor(domain);
	if (!domain && d->counts.minor_collections % MINORS_A_CYCLE == 0)
		collect_major();
}

/* ---- what has no fixed form ---- */

#include "tests/lib/make-capture-json.h"

/* ---- arguments ---- */

static uint64_t number(const char *text, uint64_t max)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n < 1 || n > max) {
		fprintf(stderr, "make-capture: not a number from 1 to %llu: %s\n",
			(unsigned long long)max, text);
		exit(2);
	}
	return n;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = { { "cut", no_argument, NULL, 'c' }, { 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "n:s:d:k:x:", options, NULL)) != -1) {
		if (c == 'n')
			m.n_allocs = number(optarg, 1ull << 40);
		else if (c == 's')
			m.n_stacks = (uint32_t)number(optarg, 1u << 30);
		else if (c == 'd')
			m.depth = (uint32_t)number(optarg, 1024);
		else if (c == 'k')
			m.n_domains = (uint32_t)number(optarg, 128);
		else if (c == 'x')
			m.seed = number(optarg, UINT64_MAX);
		else if (c == 'c')
			m.is_cut = true;
		else
			exit(2);
	}
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	m.time_ns = BEGIN_NS;
	m.domains = calloc(m.n_domains, sizeof(*m.domains));
	m.told = calloc(m.n_stacks, sizeof(*m.told));
	m.known = calloc(1 + (size_t)m.depth * FANOUT + m.n_stacks, sizeof(*m.known));
	if (!m.domains || !m.told || !m.known)
		die("memory");
	for (uint32_t k = 0; k < m.n_domains; k++)
		m.domains[k].tier = TIER;
	put_beginning();
	for (uint64_t id = 1; id <= m.n_allocs; id++) {
		m.time_ns += STEP_NS;
		if (id == m.n_allocs / 2)
			change_rate();
		allocate(id);
	}
	put_domain(HS_REC_EXIT, 0);
	if (!m.is_cut)
		put_summary();
	if (fflush(stdout))
		die("cannot write");
	return 0;
}
