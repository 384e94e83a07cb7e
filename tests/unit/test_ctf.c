/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of user/export/ctf: whatever a capture says, the trace is one that readers
 * take. Traces are read by tests/lib/read-ctf.c, which shares nothing with the writer.
 */
#include "tests/unit/records_make.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define main read_ctf_main
#include "tests/lib/read-ctf.c"
#undef main

#include "user/export/export.h"
#include "user/track/pipeline.h"

/* ---- from records to a trace ---- */

#define WALL 1000000 /* µs between the two clocks */

struct lane {
	int fd;
	struct sink *sink;
	struct symbolizer *symbolizer;
	struct pipeline pipeline;
};

static void lane__json(struct lane *l, const char *text)
{
	json_t *object = json_loads(text, 0, NULL);

	assert_non_null(object);
	assert_int_equal(pipeline__json(&l->pipeline, object), 0);
	json_decref(object);
}

static struct lane *lane__new(int version)
{
	struct export_options options = { .ctf_version = version, .input = "-" };
	struct lane *l = calloc(1, sizeof(*l));
	FILE *f;

	assert_non_null(l);
	l->fd = memfd_create("heapsonde-test", MFD_CLOEXEC);
	f = fdopen(dup(l->fd), "w");
	assert_non_null(f);
	assert_int_equal(export_ctf.open(&l->sink, f, &options), 0);
	assert_int_equal(symbolizer__new_empty(&l->symbolizer), 0);
	assert_int_equal(pipeline__init(&l->pipeline, l->symbolizer, l->sink, 0, false), 0);
	lane__json(l, "{\"type\":\"header\",\"pid\":7,\"exe\":\"/x\",\"command\":null,"
		      "\"time\":0,\"wall_offset\":1000000000}");
	lane__json(l, "{\"type\":\"profile\",\"rate\":0.25}");
	return l;
}

static void lane__free(struct lane *l)
{
	pipeline__deinit(&l->pipeline);
	sink__free(l->sink);
	symbolizer__free(l->symbolizer);
	close(l->fd);
	free(l);
}

static void tell(struct lane *l, const union record *r)
{
	struct hs_event event = make__event(r);

	assert_int_equal(pipeline__event(&l->pipeline, &event), 0);
}

static void alloc_at(struct lane *l, uint64_t id, uint64_t hash, uint64_t time_us, uint32_t domain)
{
	static union record r;

	make__alloc(&r, id, hash);
	r.h.time_ns = time_us * 1000;
	r.h.domain = domain;
	tell(l, &r);
}

static void block_at(struct lane *l, enum hs_record_type type, uint64_t id, uint64_t time_us)
{
	static union record r;

	make__block(&r, type, id);
	r.h.time_ns = time_us * 1000;
	tell(l, &r);
}

static void stack_of(struct lane *l, uint64_t hash, const uint64_t *frames, uint32_t depth)
{
	static union record r;

	make__stack(&r, hash, frames, depth);
	tell(l, &r);
}

/* What read-ctf prints of the trace so far, in a process of its own as it exits at the first
 * thing that is wrong. The result is the caller's. */
static char *text_of(struct lane *l)
{
	int out = memfd_create("heapsonde-test", MFD_CLOEXEC), status;
	char path[64], *argv[] = { "read-ctf", path, NULL }, *text;
	off_t size;
	pid_t pid;

	assert_int_equal(l->sink->ops->flush(l->sink), 0);
	fflush(stdout);
	fflush(stderr);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", l->fd);
		dup2(out, STDOUT_FILENO);
		_exit(read_ctf_main(2, argv) || fflush(stdout));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	size = lseek(out, 0, SEEK_END);
	text = calloc(1, (size_t)size + 1);
	assert_non_null(text);
	assert_int_equal(pread(out, text, (size_t)size, 0), size);
	close(out);
	return text;
}

/* ---- what is left out ---- */

#define EMPTY "\t[empty stack]@<unknown>:0;\n"
#define LOST "\t[stack lost]@<unknown>:0;\n"
#define TRACE(version) "trace\t" #version "\t0.25\t7\t1000000\t/x\t\n"

static void expect(struct lane *l, const char *expected)
{
	char *text = text_of(l);

	assert_string_equal(text, expected);
	free(text);
	lane__free(l);
}

static void test_nothing(void **state)
{
	(void)state;
	expect(lane__new(2), TRACE(2));
	expect(lane__new(3), TRACE(3));
}

static void test_fates(void **state)
{
	struct lane *l = lane__new(2);

	(void)state;
	block_at(l, HS_REC_PROMOTE, 9, 1); /* never allocated, as far as is known */
	block_at(l, HS_REC_DEALLOC, 9, 1);
	alloc_at(l, 1, 0, 10, 0);
	block_at(l, HS_REC_PROMOTE, 1, 20);
	block_at(l, HS_REC_PROMOTE, 1, 21);
	block_at(l, HS_REC_DEALLOC, 1, 30);
	block_at(l, HS_REC_DEALLOC, 1, 31);
	block_at(l, HS_REC_PROMOTE, 1, 32);
	alloc_at(l, 2, 77, 40, 0);
	alloc_at(l, 2, 77, 41, 0); /* the same one again */
	block_at(l, HS_REC_UNKNOWN, 2, 50);
	block_at(l, HS_REC_DEALLOC, 2, 51);
	expect(l, TRACE(2) "block\t1000010\t0\t5\t1\tminor\t1000020\t1000030" EMPTY
			   "block\t1000040\t0\t5\t1\tminor\t-\t-" LOST);
}

static void test_sources(void **state)
{
	static const uint8_t sources[] = { SONDE_SRC_MARSHAL, SONDE_SRC_CUSTOM, SONDE_SRC_MAP_FILE,
					   SONDE_SRC_NORMAL };
	struct lane *l = lane__new(2);
	static union record r;

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		make__alloc(&r, i + 1, 0);
		r.h.time_ns = i * 1000;
		r.alloc.source = sources[i];
		r.alloc.heap = i == 3 ? HS_HEAP_MAJOR : HS_HEAP_MINOR;
		r.alloc.size_words = i * 8;
		r.alloc.n_samples = i + 1;
		tell(l, &r);
		block_at(l, HS_REC_PROMOTE, i + 1, 10);
	}
	/* Only what is in the minor heap is promoted. */
	expect(l, TRACE(2) "block\t1000000\t0\t0\t1\tminor\t1000010\t-" EMPTY
			   "block\t1000001\t0\t8\t2\texternal\t-\t-" EMPTY
			   "block\t1000002\t0\t16\t3\texternal\t-\t-" EMPTY
			   "block\t1000003\t0\t24\t4\tmajor\t-\t-" EMPTY);
}

static void test_numbers_that_fit_nowhere(void **state)
{
	struct lane *l = lane__new(2);
	static union record r;

	(void)state;
	make__alloc(&r, INT64_MAX, 0);
	r.h.time_ns = INT64_MAX;
	r.alloc.size_words = INT64_MAX;
	r.alloc.n_samples = INT64_MAX;
	tell(l, &r);
	make__alloc(&r, 1, 0);
	r.h.time_ns = 0;
	r.alloc.size_words = UINT32_MAX;
	r.alloc.n_samples = UINT64_C(1) << 31;
	tell(l, &r);
	block_at(l, HS_REC_DEALLOC, INT64_MAX, 5); /* before it was allocated */
	expect(l, TRACE(2) "block\t1000000\t0\t4294967295\t2147483648\tminor\t-\t-" EMPTY
			   "block\t9223372037854775\t0\t4611686018427387903\t4611686018427387903\t"
			   "minor\t-\t9223372037854775" EMPTY);
}

/* ---- times ---- */

static void test_times_are_put_in_order(void **state)
{
	struct lane *l = lane__new(3);

	(void)state;
	alloc_at(l, 1, 0, 500, 4);
	alloc_at(l, 2, 0, 300, 5);
	block_at(l, HS_REC_DEALLOC, 2, 100); /* not before its allocation */
	alloc_at(l, 3, 0, 400, 70000);       /* more than the header can hold */
	alloc_at(l, 4, 0, UINT64_C(40000000), 4);
	alloc_at(l, 5, 0, UINT64_C(400000000000), 4);
	/* Numbers in the order of time, each stream's by the ten thousand. */
	expect(l, TRACE(3) "block\t1000300\t5\t5\t1\tminor\t-\t1000300" EMPTY
			   "block\t1000400\t65535\t5\t1\tminor\t-\t-" EMPTY
			   "block\t1000500\t4\t5\t1\tminor\t-\t-" EMPTY
			   "block\t41000000\t4\t5\t1\tminor\t-\t-" EMPTY
			   "block\t400001000000\t4\t5\t1\tminor\t-\t-" EMPTY);
}

static void test_what_comes_too_late_is_told_as_of_now(void **state)
{
	struct lane *l = lane__new(2);
	const char *first;
	char *text;

	(void)state;
	/* Twice as many as are held back. */
	for (uint64_t i = 1; i <= 262144; i++)
		alloc_at(l, i, 0, 1000 + i, 0);
	alloc_at(l, 300000, 0, 1, 0);
	text = text_of(l);
	/* The last one written before was the 131073th. */
	first = strstr(text, "block\t1132073\t");
	assert_non_null(first);
	assert_ptr_equal(strstr(strchr(first, '\n'), "block\t1132073\t"), strchr(first, '\n') + 1);
	free(text);
	lane__free(l);
}

static void test_all_domains_at_once(void **state)
{
	struct lane *l = lane__new(3);
	uint64_t n = 0;
	char *text;

	(void)state;
	/* More streams than are remembered, each of them twice; the second time with what it
	 * has forgotten. */
	for (uint64_t round = 0; round < 2; round++) {
		for (uint32_t domain = 0; domain < 600; domain++)
			n++, alloc_at(l, n, 0, n, domain);
	}
	text = text_of(l);
	for (const char *at = text; (at = strstr(at, "\nblock\t")); at++)
		n--;
	assert_int_equal(n, 0);
	free(text);
	lane__free(l);
}

/* ---- stacks ---- */

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

/* ---- rates ---- */

static void rate_of_domain(struct lane *l, uint32_t domain, uint32_t tier)
{
	static union record r;

	make__rate(&r, UINT64_C(1) << 32, tier);
	r.h.domain = domain;
	tell(l, &r);
}

static void test_rates(void **state)
{
	enum { BLOCKS = 40000 };
	struct lane *l = lane__new(2);
	static union record r;
	uint64_t sum = 0, n, n_left = 0;
	char *text;

	(void)state;
	/* 2^-4 in domain 1: a sample counts for four of the trace's 2^-2. */
	rate_of_domain(l, 1, 4);
	alloc_at(l, 1, 0, 1, 1);
	alloc_at(l, 2, 0, 2, 2);
	/* Its rate is forgotten with it. */
	make__domain(&r, HS_REC_DOMAIN_TERMINATE);
	r.h.domain = 1;
	tell(l, &r);
	alloc_at(l, 3, 0, 3, 1);
	expect(l, TRACE(2) "block\t1000001\t0\t5\t4\tminor\t-\t-" EMPTY
			   "block\t1000002\t0\t5\t1\tminor\t-\t-" EMPTY
			   "block\t1000003\t0\t5\t1\tminor\t-\t-" EMPTY);
	/* At rate 1 a sample counts for a quarter, so three of four blocks are left out. */
	l = lane__new(2);
	rate_of_domain(l, 0, 0);
	for (uint64_t i = 1; i <= BLOCKS; i++) {
		alloc_at(l, i, 0, i, 0);
		block_at(l, HS_REC_DEALLOC, i, BLOCKS + i);
	}
	text = text_of(l);
	for (char *at = text; (at = strstr(at, "\t5\t")); at++) {
		assert_int_equal(sscanf(at, "\t5\t%" SCNu64, &n), 1);
		sum += n;
		n_left++;
	}
	assert_int_equal(sum, n_left);
	/* The draw is by the block's number, so this is the same in each run. */
	assert_true(fabs((double)sum - BLOCKS / 4.0) < 6 * sqrt(BLOCKS * 3.0 / 16));
	free(text);
	lane__free(l);
}

/* ---- errors ---- */

static void test_a_full_disk(void **state)
{
	struct lane *l = lane__new(2);
	struct rlimit limit = { 40000, 40000 };
	struct stat st;
	pid_t pid;
	int status;

	(void)state;
	for (uint64_t i = 1; i <= 30000; i++)
		alloc_at(l, i, 0, i, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(l->sink->ops->flush(l->sink) == -EFBIG ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* Two packets, the second one whole. */
	assert_int_equal(fstat(l->fd, &st), 0);
	assert_in_range(st.st_size, 32000, 32768 + 200);
	lane__free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_fates),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_numbers_that_fit_nowhere),
		cmocka_unit_test(test_times_are_put_in_order),
		cmocka_unit_test(test_what_comes_too_late_is_told_as_of_now),
		cmocka_unit_test(test_all_domains_at_once),
		cmocka_unit_test(test_long_names_are_cut),
		cmocka_unit_test(test_names_found_later),
		cmocka_unit_test(test_many_stacks),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_a_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
