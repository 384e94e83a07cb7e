/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of user/export/ctf: stacks and names come out of a trace as they went in,
 * whatever the tables hold by which they are made short.
 */
#include "tests/unit/ctf_make.h"

/* Names of up to so many bytes for a frame of n locations. */
static void teach(struct lane *l, uint64_t slot, size_t n, size_t name_bytes)
{
	struct hs_location *locations = calloc(n, sizeof(*locations));
	char *name = malloc(name_bytes + 1);

	assert_non_null(locations);
	assert_non_null(name);
	/* Characters of two bytes, which must not be cut in the middle. */
	for (size_t i = 0; i + 1 < name_bytes; i += 2)
		memcpy(name + i, "\xce\xbb", 2);
	name[name_bytes & ~(size_t)1] = '\0';
	for (size_t i = 0; i < n; i++)
		locations[i] = (struct hs_location){ name,       name, UINT32_MAX, 1,
						     UINT32_MAX, 1,    UINT32_MAX, i + 1 < n };
	assert_int_equal(symbolizer__learn(l->symbolizer, slot, locations, n), 0);
	free(locations);
	free(name);
}

static void test_long_names_are_cut(void **state)
{
	struct lane *l = lane__new(2);
	uint64_t frame;
	char *text;

	(void)state;
	for (frame = 1; frame <= 64; frame++) {
		teach(l, frame, frame, 20000);
		stack_of(l, frame, &frame, 1);
		alloc_at(l, frame, frame, frame, 0);
	}
	text = text_of(l);
	assert_non_null(strstr(text, "@\xce\xbb"));
	assert_non_null(strstr(text, ":1048575;"));
	for (const char *c = text; (c = strchr(c, '\xce')); c++)
		assert_int_equal((unsigned char)c[1], 0xbb);
	free(text);
	lane__free(l);
}

static void test_names_found_later(void **state)
{
	static const struct hs_location before = { .function = "before" },
					after = { .function = "after" };
	struct lane *l = lane__new(2);
	uint64_t frames[] = { 5, 6 };

	(void)state;
	assert_int_equal(symbolizer__learn(l->symbolizer, 5, &before, 1), 0);
	stack_of(l, 1, frames, 1);
	alloc_at(l, 1, 1, 1, 0);
	assert_int_equal(symbolizer__learn(l->symbolizer, 5, &after, 1), 0);
	stack_of(l, 2, frames, 2);
	alloc_at(l, 2, 2, 2, 0);
	alloc_at(l, 3, 1, 3, 0);
	expect(l, TRACE(2) "block\t1000001\t0\t5\t1\tminor\t-\t-\tbefore@<unknown>:0;\n"
			   "block\t1000002\t0\t5\t1\tminor\t-\t-\tafter@<unknown>:0;"
			   "??@<unknown>:0;\n"
			   "block\t1000003\t0\t5\t1\tminor\t-\t-\tbefore@<unknown>:0;\n");
}

enum { FRAMES = 60000, STACKS = 5000 };

/* The n-th of many stacks, of up to 1024 frames; one shares its outer half with the one
 * before. Frames are those from `from` on, n_frames of them. */
static uint32_t many_frames(uint64_t n, uint64_t from, uint64_t n_frames, uint64_t *frames)
{
	uint64_t state = n / 2, own = n;
	uint32_t depth = 1 + make__random(&state) % (n % 100 ? 40 : 1024);

	for (uint32_t i = 0; i < depth; i++)
		frames[i] = from + make__random(i >= depth / 2 ? &state : &own) % n_frames;
	return depth;
}

/* Each stack is new once, and comes again later. */
static uint64_t stack_number(uint64_t i)
{
	return i % 2 ? (i + 1) / 2 : 1 + i / 6;
}

static void teach_many(struct lane *l)
{
	static uint64_t frames[SONDE_STACK_MAX];
	struct hs_location location = { .line = 1 };
	char name[32];

	location.function = location.file = name;
	for (uint64_t i = 1; i <= FRAMES; i++) {
		/* More functions and files than fit the tables, in files that come again. */
		snprintf(name, sizeof(name), "n%" PRIu64, i % 997);
		location.line = (uint32_t)i;
		assert_int_equal(symbolizer__learn(l->symbolizer, i, &location, 1), 0);
	}
	/* So that codes are given in the order of frames, but for the innermost one first. */
	for (uint64_t i = 1; i <= FRAMES - 1000; i += 1000) {
		for (uint64_t k = 0; k < 1000; k++)
			frames[k] = i + 999 - k;
		stack_of(l, FRAMES + i, frames, 1000);
	}
}

/* Is this what was told, one line for each of 2 * STACKS allocations? Their times tell
 * which ones they are. */
static void check_many(const char *text, uint64_t from, uint64_t n_frames)
{
	static uint64_t frames[SONDE_STACK_MAX];
	const char *at = strchr(text, '\n') + 1;
	uint64_t n_lines = 0, time;

	for (; *at; n_lines++) {
		uint32_t depth;

		assert_int_equal(sscanf(at, "block\t%" SCNu64, &time), 1);
		depth = many_frames(stack_number(time - WALL), from, n_frames, frames);
		at = strstr(at, "\t-\t-\t") + 5;
		for (uint32_t k = 0; k < depth; k++) {
			char frame[96];
			int n = snprintf(frame, sizeof(frame),
					 "n%" PRIu64 "@n%" PRIu64 ":%" PRIu64 ";", frames[k] % 997,
					 frames[k] % 997, frames[k]);

			assert_memory_equal(at, frame, (size_t)n);
			at += n;
		}
		assert_int_equal(*at++, '\n');
	}
	assert_int_equal(n_lines, 2 * STACKS);
}

/* domains: that allocate in turn, eight blocks each. */
static void many_stacks(int version, uint32_t domains, uint64_t from, uint64_t n_frames)
{
	static uint64_t frames[SONDE_STACK_MAX];
	struct lane *l = lane__new(version);
	char *text;

	teach_many(l);
	for (uint64_t i = 1; i <= STACKS; i++)
		stack_of(l, i, frames, many_frames(i, from, n_frames, frames));
	for (uint64_t i = 1; i <= 2 * STACKS; i++)
		alloc_at(l, i, stack_number(i), i, (uint32_t)(i / 8) % domains);
	text = text_of(l);
	check_many(text, from, n_frames);
	free(text);
	lane__free(l);
}

static void test_many_stacks(void **state)
{
	(void)state;
	/* More frames than the table has places. */
	many_stacks(2, 1, 1, FRAMES);
	many_stacks(3, 3, 1, FRAMES);
	/* More streams than are remembered, and few frames, among them one that has the place
	 * which readers begin with. */
	many_stacks(3, 300, 16384 - 15, 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_long_names_are_cut),
		cmocka_unit_test(test_names_found_later),
		cmocka_unit_test(test_many_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
