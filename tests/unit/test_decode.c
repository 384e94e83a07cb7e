/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checking records: what the kernel side writes is accepted whatever its free
 * fields hold; one field out of its range, a wrong size or a cut is refused; no
 * byte outside of what was given is read, and nothing is accepted that decode.h
 * does not promise. (The last two with a page behind the bytes that cannot be
 * read; under AddressSanitizer to the byte.)
 */
#include "tests/unit/records_make.h"

#include <sys/param.h>

#define PAGE 4096
/* The page that cannot be read lies behind this many bytes. */
#define ROOM (4 * PAGE)

static unsigned char *room;

static int setup(void **state)
{
	(void)state;
	room = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(room != MAP_FAILED);
	return mprotect(room + ROOM, PAGE, PROT_NONE);
}

/* Decode a copy of len bytes behind which nothing can be read. */
static int decode(const void *bytes, size_t len, struct hs_event *event)
{
#ifdef __SANITIZE_ADDRESS__
	void *exact = malloc(len);
	struct hs_event same;
	int ret;

	memcpy(exact, bytes, len);
	ret = decode__record(exact, len, &same);
	free(exact);
#endif
	/* At a multiple of 8, as decode.h asks; the rest looks like a big number. */
	unsigned char *at = room + ROOM - roundup(len, 8);
	int got;

	memcpy(at, bytes, len);
	memset(at + len, 0xff, roundup(len, 8) - len);
	got = decode__record(at, len, event);
	if (!got)
		assert_ptr_equal(event->h, at);
#ifdef __SANITIZE_ADDRESS__
	assert_int_equal(got, ret);
#endif
	return got;
}

static const enum hs_record_type block_types[] = { HS_REC_PROMOTE, HS_REC_DEALLOC, HS_REC_UNKNOWN };
static const enum hs_record_type domain_types[] = { HS_REC_DOMAIN_SPAWN, HS_REC_DOMAIN_TERMINATE,
						    HS_REC_EXIT, HS_REC_MAJOR_CYCLE };

/* One record of each type: allocation, stack, blocks, rate, domains. */
#define FIRST_BLOCK 2
#define RATE (FIRST_BLOCK + COUNT(block_types))
#define FIRST_DOMAIN (RATE + 1)
#define KINDS (FIRST_DOMAIN + COUNT(domain_types))

static void make_kind(union record *r, size_t kind)
{
	static const uint64_t frames[] = { 0x1000, 0x2002, 0x3000 };

	if (kind == 0)
		make__alloc(r, 1, 2);
	else if (kind == 1)
		make__stack(r, 9, frames, COUNT(frames));
	else if (kind < RATE)
		make__block(r, block_types[kind - FIRST_BLOCK], 1);
	else if (kind == RATE)
		make__rate(r, 1u << 31, 4);
	else
		make__domain(r, domain_types[kind - FIRST_DOMAIN]);
}

static void accepts_well_formed(void **state)
{
	bool seen[HS_REC_TYPE_END] = { false };
	struct hs_event event;
	union record r;

	(void)state;
	for (size_t kind = 0; kind < KINDS; kind++) {
		make_kind(&r, kind);
		assert_int_equal(decode(&r, r.h.size_bytes, &event), 0);
		assert_int_equal(event.type, r.h.type);
		seen[event.type] = true;
		/* The ring buffer and a capture may hand over more. */
		assert_int_equal(decode(&r, r.h.size_bytes + 1, &event), 0);
		assert_int_equal(decode(&r, r.h.size_bytes + 8, &event), 0);
	}
	for (int type = 1; type < HS_REC_TYPE_END; type++)
		assert_true(seen[type]);
}

/* A field set to a value. */
struct change {
	size_t at, width;
	uint64_t value;
};

#define SET(type, field, to) { offsetof(type, field), sizeof(((type *)NULL)->field), to }

static int decode_changed(const union record *good, const struct change *c)
{
	union record r = *good;
	struct hs_event event;

	memcpy(r.bytes + c->at, &c->value, c->width); /* little-endian */
	return decode(&r, good->h.size_bytes, &event);
}

static void expect_changes(size_t kind, const struct change *changes, size_t n, int expected)
{
	union record r;

	make_kind(&r, kind);
	for (size_t i = 0; i < n; i++)
		if (decode_changed(&r, &changes[i]) != expected)
			fail_msg("type %u: the field at %zu with value %#llx was %s", r.h.type,
				 changes[i].at, (unsigned long long)changes[i].value,
				 expected ? "accepted" : "refused");
}

static void refuses_types_and_sizes(void **state)
{
	static const struct change bad[] = {
		SET(struct hs_record, type, 0),
		SET(struct hs_record, type, HS_REC_TYPE_END),
		SET(struct hs_record, type, HS_REC_TYPE_END + 1),
		SET(struct hs_record, type, 0x100 + HS_REC_ALLOC),
		SET(struct hs_record, type, 0x80000000),
		SET(struct hs_record, type, UINT32_MAX),
		SET(struct hs_record, size_bytes, 0),
		SET(struct hs_record, size_bytes, 8),
		SET(struct hs_record, size_bytes, 31),
		SET(struct hs_record, size_bytes, 32),
		SET(struct hs_record, size_bytes, 40),
		SET(struct hs_record, size_bytes, 0x80000000),
		SET(struct hs_record, size_bytes, UINT32_MAX),
	};
	struct hs_event event;
	union record good, r;

	(void)state;
	for (size_t kind = 0; kind < KINDS; kind++) {
		expect_changes(kind, bad, COUNT(bad), -EBADMSG);
		make_kind(&good, kind);
		/* Every size but its own, with room for all of them. */
		for (uint32_t size = 0; size < sizeof(r.bytes) / 4; size++) {
			r = good;
			r.h.size_bytes = size;
			assert_int_equal(decode(&r, sizeof(r.bytes) / 2, &event),
					 size == good.h.size_bytes ? 0 : -EBADMSG);
		}
		/* Longer than what is there, by one. */
		assert_int_equal(decode(&good, good.h.size_bytes - 1, &event), -EBADMSG);
	}
}

static void refuses_fields(void **state)
{
	static const struct change bad_alloc[] = {
		SET(struct hs_rec_alloc, id, 0),
		SET(struct hs_rec_alloc, n_samples, 0),
		SET(struct hs_rec_alloc, source, SONDE_SRC_COUNT),
		SET(struct hs_rec_alloc, source, 255),
		SET(struct hs_rec_alloc, heap, HS_HEAP_MAJOR + 1),
		SET(struct hs_rec_alloc, heap, 255),
		SET(struct hs_rec_alloc, is_tracked, 2),
		SET(struct hs_rec_alloc, is_tracked, 255),
		SET(struct hs_rec_alloc, depth, 0),
		SET(struct hs_rec_alloc, depth, SONDE_STACK_MAX + 1),
		SET(struct hs_rec_alloc, depth, UINT32_MAX),
		SET(struct hs_rec_alloc, stack_hash, 0),
	};
	static const struct change bad_stack[] = {
		SET(struct hs_rec_stack, hash, 0),
		SET(struct hs_rec_stack, depth, 0),
		SET(struct hs_rec_stack, depth, 2),
		SET(struct hs_rec_stack, depth, 4),
		SET(struct hs_rec_stack, depth, SONDE_STACK_MAX + 1),
		/* 8 * depth would be 24 in 32 bits. */
		SET(struct hs_rec_stack, depth, 0x20000003),
		SET(struct hs_rec_stack, depth, UINT32_MAX),
	};
	static const struct change bad_block[] = {
		SET(struct hs_rec_block, id, 0),
		SET(struct hs_rec_block, heap, HS_HEAP_MAJOR + 1),
		SET(struct hs_rec_block, heap, UINT32_MAX),
	};
	/* What the target says, or the kernel adds up: beyond 63 bits it is nonsense, and
	 * readers of JSON could not take it. */
	static const struct change huge_alloc[] = {
		SET(struct hs_rec_alloc, h.time_ns, 1ull << 63),
		SET(struct hs_rec_alloc, id, 1ull << 63),
		SET(struct hs_rec_alloc, size_words, 1ull << 63),
		SET(struct hs_rec_alloc, size_words, UINT64_MAX),
		SET(struct hs_rec_alloc, n_samples, 1ull << 63),
	};
	static const struct change huge_block[] = {
		SET(struct hs_rec_block, h.time_ns, 1ull << 63),
		SET(struct hs_rec_block, id, 1ull << 63),
	};
	static const struct change huge_domain[] = {
		SET(struct hs_rec_domain, h.time_ns, 1ull << 63),
		SET(struct hs_rec_domain, counts.minor_words, 1ull << 63),
		SET(struct hs_rec_domain, counts.promoted_words, 1ull << 63),
		SET(struct hs_rec_domain, counts.major_words, 1ull << 63),
		SET(struct hs_rec_domain, counts.minor_collections, 1ull << 63),
		SET(struct hs_rec_domain, counts.major_collections, 1ull << 63),
	};
	static const struct change bad_rate[] = {
		SET(struct hs_rec_rate, h.time_ns, 1ull << 63),
		SET(struct hs_rec_rate, keep_p, 0),
		SET(struct hs_rec_rate, keep_p, (1ull << 32) + 1),
		SET(struct hs_rec_rate, keep_p, UINT64_MAX),
		SET(struct hs_rec_rate, tier, SONDE_TIERS),
		SET(struct hs_rec_rate, tier, UINT32_MAX),
		SET(struct hs_rec_rate, counts.minor_words, 1ull << 63),
		SET(struct hs_rec_rate, counts.promoted_words, 1ull << 63),
		SET(struct hs_rec_rate, counts.major_words, 1ull << 63),
		SET(struct hs_rec_rate, counts.minor_collections, 1ull << 63),
		SET(struct hs_rec_rate, counts.major_collections, 1ull << 63),
	};
	static const uint64_t frames[SONDE_STACK_MAX + 1];
	struct hs_event event;
	union record r;

	(void)state;
	expect_changes(RATE, bad_rate, COUNT(bad_rate), -EBADMSG);
	expect_changes(0, huge_alloc, COUNT(huge_alloc), -EBADMSG);
	for (size_t i = 0; i < COUNT(block_types); i++)
		expect_changes(FIRST_BLOCK + i, huge_block, COUNT(huge_block), -EBADMSG);
	for (size_t i = FIRST_DOMAIN; i < KINDS; i++)
		expect_changes(i, huge_domain, COUNT(huge_domain), -EBADMSG);
	expect_changes(0, bad_alloc, COUNT(bad_alloc), -EBADMSG);
	expect_changes(1, bad_stack, COUNT(bad_stack), -EBADMSG);
	for (size_t i = 0; i < COUNT(block_types); i++)
		expect_changes(FIRST_BLOCK + i, bad_block, COUNT(bad_block), -EBADMSG);
	/* No stack but a hash; and the other way round, the size that goes with depth 0. */
	make__alloc(&r, 1, 0);
	assert_int_equal(decode(&r, r.h.size_bytes, &event), 0);
	r.alloc.stack_hash = 1;
	assert_int_equal(decode(&r, r.h.size_bytes, &event), -EBADMSG);
	make__stack(&r, 1, frames, 0);
	assert_int_equal(decode(&r, r.h.size_bytes, &event), -EBADMSG);
	make__stack(&r, 1, frames, SONDE_STACK_MAX + 1);
	assert_int_equal(decode(&r, r.h.size_bytes, &event), -EBADMSG);
}

static void accepts_limits(void **state)
{
	static const struct change good_alloc[] = {
		SET(struct hs_rec_alloc, h.time_ns, INT64_MAX),
		SET(struct hs_rec_alloc, h.domain, UINT32_MAX),
		SET(struct hs_rec_alloc, h.tid, UINT32_MAX),
		SET(struct hs_rec_alloc, id, INT64_MAX),
		SET(struct hs_rec_alloc, size_words, 0),
		SET(struct hs_rec_alloc, size_words, INT64_MAX),
		SET(struct hs_rec_alloc, n_samples, 1u << 28),
		SET(struct hs_rec_alloc, stack_hash, UINT64_MAX),
		SET(struct hs_rec_alloc, source, SONDE_SRC_MARSHAL),
		SET(struct hs_rec_alloc, source, SONDE_SRC_CUSTOM),
		SET(struct hs_rec_alloc, source, SONDE_SRC_MAP_FILE),
		SET(struct hs_rec_alloc, heap, HS_HEAP_MAJOR),
		SET(struct hs_rec_alloc, is_tracked, 0),
		SET(struct hs_rec_alloc, depth, 1),
		SET(struct hs_rec_alloc, depth, SONDE_STACK_MAX),
	};
	static const struct change good_block[] = {
		SET(struct hs_rec_block, id, INT64_MAX),
		SET(struct hs_rec_block, heap, HS_HEAP_MINOR),
	};
	static const struct change good_rate[] = {
		SET(struct hs_rec_rate, keep_p, 1),
		SET(struct hs_rec_rate, keep_p, 1ull << 32),
		SET(struct hs_rec_rate, tier, 0),
		SET(struct hs_rec_rate, tier, SONDE_TIERS - 1),
		SET(struct hs_rec_rate, reserved, UINT32_MAX),
		SET(struct hs_rec_rate, counts.major_words, INT64_MAX),
	};
	uint64_t frames[SONDE_STACK_MAX] = { 0 };
	struct hs_event event;
	union record r;

	(void)state;
	expect_changes(0, good_alloc, COUNT(good_alloc), 0);
	expect_changes(RATE, good_rate, COUNT(good_rate), 0);
	for (size_t i = 0; i < COUNT(block_types); i++)
		expect_changes(FIRST_BLOCK + i, good_block, COUNT(good_block), 0);
	make__stack(&r, UINT64_MAX, frames, SONDE_STACK_MAX);
	assert_int_equal(decode(&r, r.h.size_bytes, &event), 0);
	make__stack(&r, 1, frames, 1);
	assert_int_equal(decode(&r, r.h.size_bytes, &event), 0);
}

static void refuses_truncated(void **state)
{
	struct hs_event event;
	union record r;

	(void)state;
	for (size_t kind = 0; kind < KINDS; kind++) {
		make_kind(&r, kind);
		for (size_t len = 0; len < r.h.size_bytes; len++)
			assert_int_equal(decode(&r, len, &event), -EBADMSG);
	}
}

/* What decode.h and records.h promise of an accepted record. */
static bool is_sane(const struct hs_event *e, size_t len)
{
	const struct hs_rec_alloc *a = e->alloc;
	const struct hs_rec_stack *s = e->stack;

	if (e->type != e->h->type || e->h->size_bytes > len)
		return false;
	switch (e->type) {
	case HS_REC_ALLOC:
		return a->h.size_bytes == 72 && a->id && a->size_words <= INT64_MAX &&
		       a->n_samples && a->source < 4 && a->heap < 2 && a->is_tracked < 2 &&
		       a->depth <= 1024 && !a->depth == !a->stack_hash;
	case HS_REC_STACK:
		return s->hash && s->depth && s->depth <= 1024 &&
		       s->h.size_bytes == 48 + 8 * (uint64_t)s->depth;
	case HS_REC_PROMOTE:
	case HS_REC_DEALLOC:
	case HS_REC_UNKNOWN:
		return e->h->size_bytes == 48 && e->block->id && e->block->heap < 2;
	case HS_REC_DOMAIN_SPAWN:
	case HS_REC_DOMAIN_TERMINATE:
	case HS_REC_EXIT:
	case HS_REC_MAJOR_CYCLE:
		return e->h->size_bytes == 80 && e->domain->counts.minor_words <= INT64_MAX;
	case HS_REC_RATE:
		return e->h->size_bytes == 88 && e->rate->counts.minor_words <= INT64_MAX &&
		       decode__rate(e->rate) > 0 && decode__rate(e->rate) <= 1;
	default:
		return false;
	}
}

static void survives_random_bytes(void **state)
{
	uint64_t random = 1, n_accepted = 0, n_refused = 0;
	struct hs_event event;
	union record r;

	(void)state;
	for (int i = 0; i < 1000000; i++) {
		size_t len = make__random(&random) % 129, size;

		if (i % 2) {
			/* A record with one to four bytes changed. */
			make_kind(&r, make__random(&random) % KINDS);
			size = r.h.size_bytes;
			for (uint64_t k = make__random(&random) % 4 + 1; k; k--)
				r.bytes[make__random(&random) % size] =
					(unsigned char)make__random(&random);
		} else {
			for (size_t k = 0; k < len; k++)
				r.bytes[k] = (unsigned char)make__random(&random);
			/* Small numbers get further. */
			r.h.type &= 15;
			r.h.size_bytes &= 127;
		}
		if (decode(&r, len, &event)) {
			n_refused++;
		} else {
			n_accepted++;
			if (!is_sane(&event, len))
				fail_msg("round %d: accepted what should not be", i);
		}
	}
	assert_true(n_accepted > 10000);
	assert_true(n_refused > 100000);
}

static void computes_rates(void **state)
{
	union record r;

	(void)state;
	make__rate(&r, 1ull << 32, 0);
	assert_true(decode__rate(&r.rate) == 1.0);
	make__rate(&r, 1ull << 32, 24);
	assert_true(decode__rate(&r.rate) == 0x1p-24);
	make__rate(&r, 3u << 30, 10);
	assert_true(decode__rate(&r.rate) == 0.75 * 0x1p-10);
	make__rate(&r, 1, 24);
	assert_true(decode__rate(&r.rate) == 0x1p-56);
	/* As the tier is chosen for a rate that is no power of two. */
	make__rate(&r, (uint64_t)(0.00037 * 2048 * 0x1p32), 11);
	assert_true(decode__rate(&r.rate) > 0.000369999 && decode__rate(&r.rate) < 0.000370001);
}

static void names_things(void **state)
{
	(void)state;
	for (int i = 0; i < HS_LOSS_CAUSES; i++) {
		const char *name = decode__loss_name(i);

		assert_string_not_equal(name, "unknown");
		assert_string_not_equal(name, "");
		for (int k = 0; k < i; k++)
			assert_string_not_equal(name, decode__loss_name(k));
		assert_int_equal(decode__loss_is_real(i),
				 i != HS_LOSS_STACKS_FULL && i != HS_LOSS_EVENT_RING_FULL);
	}
	assert_string_equal(decode__loss_name(HS_LOSS_CAUSES), "unknown");
	assert_string_equal(decode__source_name(SONDE_SRC_NORMAL), "normal");
	assert_string_equal(decode__source_name(SONDE_SRC_MARSHAL), "marshal");
	assert_string_equal(decode__source_name(SONDE_SRC_CUSTOM), "custom");
	assert_string_equal(decode__source_name(SONDE_SRC_MAP_FILE), "map_file");
	assert_string_equal(decode__source_name(SONDE_SRC_COUNT), "unknown");
	assert_string_equal(decode__source_name(UINT32_MAX), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_well_formed), cmocka_unit_test(refuses_types_and_sizes),
		cmocka_unit_test(refuses_fields),      cmocka_unit_test(accepts_limits),
		cmocka_unit_test(refuses_truncated),   cmocka_unit_test(survives_random_bytes),
		cmocka_unit_test(computes_rates),      cmocka_unit_test(names_things),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
