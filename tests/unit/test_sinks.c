/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sinks: the JSON text that is promised, member by member; the fast printer of
 * jsonl.c gives the same as json.c; a full disk and a closed pipe are reported, by
 * both sinks, and JSON lines stay whole.
 */
#include "tests/unit/records_make.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "user/sinks/json.h"

static const struct stack some_stack = { .id = 7 };

/* What the jsonl sink writes for an event. The result is the caller's (free()). */
static char *line_of(const union record *r, const struct stack *stack)
{
	struct output o = output__new(jsonl_sink__new);
	struct hs_event event = make__event(r);
	char *text;

	assert_int_equal(o.sink->ops->event(o.sink, &event, stack), 0);
	text = output__text(&o, NULL);
	output__free(&o);
	return text;
}

static void expect_line(const union record *r, const struct stack *stack, const char *expected)
{
	char *line = line_of(r, stack);

	assert_string_equal(line, expected);
	free(line);
}

/* The members that all records of make__head have. */
#define HEAD "\"domain\":3,\"thread\":4001,\"time\":1700000000123456789"

static void writes_what_is_promised(void **state)
{
	union record r;

	(void)state;
	make__alloc(&r, 41, 0xabc);
	expect_line(&r, &some_stack,
		    "{\"type\":\"alloc_minor\",\"id\":41,\"profile\":1," HEAD
		    ",\"n_samples\":1,\"size\":5,\"source\":\"normal\",\"stack\":7,\"tracked\":"
		    "true}\n");
	make__alloc(&r, 42, 0);
	r.alloc.heap = HS_HEAP_MAJOR;
	r.alloc.is_tracked = 0;
	r.alloc.n_samples = 3;
	r.alloc.source = SONDE_SRC_CUSTOM;
	expect_line(&r, NULL,
		    "{\"type\":\"alloc_major\",\"id\":42,\"profile\":1," HEAD
		    ",\"n_samples\":3,\"size\":5,\"source\":\"custom\",\"stack\":0,\"tracked\":"
		    "false}\n");
	/* A stack that was lost is not the empty one. */
	make__alloc(&r, 1, 5);
	expect_line(&r, NULL,
		    "{\"type\":\"alloc_minor\",\"id\":1,\"profile\":1," HEAD
		    ",\"n_samples\":1,\"size\":5,\"source\":\"normal\",\"stack\":null,\"tracked\":"
		    "true}\n");
	make__block(&r, HS_REC_PROMOTE, 43);
	expect_line(&r, NULL, "{\"type\":\"promote\",\"id\":43,\"profile\":1," HEAD "}\n");
	make__block(&r, HS_REC_DEALLOC, 44);
	expect_line(&r, NULL, "{\"type\":\"dealloc_major\",\"id\":44,\"profile\":1," HEAD "}\n");
	r.block.heap = HS_HEAP_MINOR;
	expect_line(&r, NULL, "{\"type\":\"dealloc_minor\",\"id\":44,\"profile\":1," HEAD "}\n");
	make__block(&r, HS_REC_UNKNOWN, 45);
	expect_line(&r, NULL, "{\"type\":\"unknown\",\"id\":45,\"profile\":1," HEAD "}\n");
	make__domain(&r, HS_REC_DOMAIN_SPAWN);
	expect_line(&r, NULL, "{\"type\":\"domain_spawn\"," HEAD ",\"parent\":1}\n");
	make__domain(&r, HS_REC_DOMAIN_TERMINATE);
	expect_line(&r, NULL,
		    "{\"type\":\"domain_terminate\"," HEAD
		    ",\"minor_words\":11,\"promoted_words\":12,\"major_words\":13,"
		    "\"minor_collections\":14,\"major_collections\":15}\n");
	make__domain(&r, HS_REC_MAJOR_CYCLE);
	expect_line(&r, NULL,
		    "{\"type\":\"major_cycle\"," HEAD
		    ",\"minor_words\":11,\"promoted_words\":12,\"major_words\":13,"
		    "\"minor_collections\":14,\"major_collections\":15}\n");
	/* Whatever profile the kernel was asked for: it is the domain's own. */
	make__domain(&r, HS_REC_DOMAIN_SPAWN);
	r.h.profile = 9;
	expect_line(&r, NULL, "{\"type\":\"domain_spawn\"," HEAD ",\"parent\":1}\n");
	make__rate(&r, 3u << 30, 1);
	expect_line(&r, NULL,
		    "{\"type\":\"rate\",\"profile\":1," HEAD
		    ",\"rate\":0.375,\"minor_words\":21,\"promoted_words\":22,\"major_words\":23,"
		    "\"minor_collections\":24,\"major_collections\":25}\n");
	/* Only a carrier of counters, for the summary. */
	make__domain(&r, HS_REC_EXIT);
	expect_line(&r, NULL, "");
}

/* The line of an event is json.c's text, and parses as json.c's object. */
static void expect_agreement(const union record *r, const struct stack *stack)
{
	struct hs_event event = make__event(r);
	json_t *object = json__event(&event, stack), *parsed;
	char *line = line_of(r, stack), *text;

	assert_non_null(object);
	parsed = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	if (!parsed)
		fail_msg("no JSON: %s", line);
	assert_true(json_equal(parsed, object));
	text = json_dumps(object, JSON_LINE_FLAGS);
	assert_int_equal(line[strlen(line) - 1], '\n');
	line[strlen(line) - 1] = '\0';
	assert_string_equal(line, text);
	assert_null(strchr(line, '\n'));
	free(text);
	free(line);
	json_decref(parsed);
	json_decref(object);
}

static uint64_t pick(const uint64_t *values, size_t n, uint64_t *seed)
{
	return values[make__random(seed) % n];
}

static void fast_printer_agrees(void **state)
{
	static const uint64_t extremes[] = { 1, 9, 10, 4294967295, 4294967296, INT64_MAX };
	static const uint32_t words[] = { 0, 1, 2147483647, 2147483648, UINT32_MAX };
	static const enum hs_record_type types[] = { HS_REC_PROMOTE, HS_REC_DEALLOC,
						     HS_REC_UNKNOWN };
	const struct stack last = { .id = UINT32_MAX };
	const struct stack *const stacks[] = { NULL, &some_stack, &last };
	uint64_t seed = 1;
	union record r;

	(void)state;
	for (unsigned int i = 0; i < 4 * 2 * 2 * 4; i++) {
		bool is_empty = i & 1;

		make__alloc(&r, 1, is_empty ? 0 : 5);
		r.alloc.heap = i >> 1 & 1;
		r.alloc.is_tracked = i >> 2 & 1;
		r.alloc.source = i >> 3 & 3;
		for (int round = 0; round < 20; round++) {
			r.alloc.id = pick(extremes, COUNT(extremes), &seed);
			r.alloc.size_words = pick(extremes, COUNT(extremes), &seed) - 1;
			r.alloc.n_samples = pick(extremes, COUNT(extremes), &seed);
			r.h.time_ns = pick(extremes, COUNT(extremes), &seed) - 1;
			r.h.domain = words[make__random(&seed) % COUNT(words)];
			r.h.tid = words[make__random(&seed) % COUNT(words)];
			r.h.profile = words[make__random(&seed) % 4 + 1];
			expect_agreement(&r,
					 is_empty ? NULL : stacks[(size_t)round % COUNT(stacks)]);
		}
	}
	for (size_t i = 0; i < COUNT(types) * 2; i++) {
		make__block(&r, types[i / 2], INT64_MAX);
		r.block.heap = i % 2;
		for (int round = 0; round < 20; round++) {
			r.block.id = pick(extremes, COUNT(extremes), &seed);
			r.h.time_ns = pick(extremes, COUNT(extremes), &seed) - 1;
			r.h.domain = words[make__random(&seed) % COUNT(words)];
			r.h.tid = words[make__random(&seed) % COUNT(words)];
			expect_agreement(&r, NULL);
		}
	}
	make__domain(&r, HS_REC_DOMAIN_SPAWN);
	expect_agreement(&r, NULL);
	make__domain(&r, HS_REC_DOMAIN_TERMINATE);
	r.domain.counts.minor_words = INT64_MAX;
	expect_agreement(&r, NULL);
	r.h.type = HS_REC_MAJOR_CYCLE;
	expect_agreement(&r, NULL);
	make__rate(&r, 1, 24);
	expect_agreement(&r, NULL);
}

static void writes_threads(void **state)
{
	static const uint64_t rows[][3] = { { 4001, 3, 1700000000123456789u },
					    { 1, 0, 0 },
					    { UINT32_MAX, UINT32_MAX, INT64_MAX } };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct output o = output__new(jsonl_sink__new);
		uint32_t tid = (uint32_t)rows[i][0], domain = (uint32_t)rows[i][1];
		json_t *object = json__thread(tid, domain, rows[i][2]);
		char *text, *line;

		assert_int_equal(o.sink->ops->thread(o.sink, tid, domain, rows[i][2]), 0);
		line = output__text(&o, NULL);
		text = json_dumps(object, JSON_LINE_FLAGS);
		assert_int_equal(strcspn(line, "\n"), strlen(line) - 1);
		assert_memory_equal(line, text, strlen(line) - 1);
		if (i == 0)
			assert_string_equal(text,
					    "{\"type\":\"thread\",\"thread\":4001,\"domain\":3,"
					    "\"time\":1700000000123456789}");
		free(text);
		free(line);
		json_decref(object);
		output__free(&o);
	}
}

static void expect_object(json_t *object, const char *expected)
{
	char *text = json_dumps(object, JSON_LINE_FLAGS);

	assert_string_equal(text, expected);
	free(text);
	json_decref(object);
}

static void makes_losses(void **state)
{
	(void)state;
	expect_object(json__loss(0, "ring_full", 155017, 4742035951481, 4742235951481),
		      "{\"type\":\"loss\",\"domain\":0,\"cause\":\"ring_full\",\"count\":155017,"
		      "\"since\":4742035951481,\"time\":4742235951481}");
	expect_object(json__loss(UINT32_MAX, "output_full", INT64_MAX, 0, INT64_MAX),
		      "{\"type\":\"loss\",\"domain\":null,\"cause\":\"output_full\","
		      "\"count\":9223372036854775807,\"since\":0,\"time\":9223372036854775807}");
}

static void makes_counters(void **state)
{
	const struct hs_counts counts = { 1, 2, INT64_MAX, 4, 5 };

	(void)state;
	expect_object(json__counters(7, &counts, 8, 9, 4742235951481),
		      "{\"type\":\"counters\",\"domain\":7,\"time\":4742235951481,"
		      "\"minor_words\":1,\"promoted_words\":2,"
		      "\"major_words\":9223372036854775807,\"minor_collections\":4,"
		      "\"major_collections\":5,\"samples_kept\":8,\"tracked\":9}");
}

/* The position of a location, as Printexc has it. */
#define AT(first, last, start, end)                                                                \
	.line = first, .end_line = last, .start_char = start, .end_char = end, .end_offset = 99

static void writes_stacks(void **state)
{
	const struct hs_location first[] = {
		{ .function = "List.map",
		  .file = "list.ml",
		  AT(82, 82, 10, 16),
		  .is_inlined = true },
		{ .function = "Main.\"quoted\"\\", .file = "src/\xc3\xa9.ml", AT(1, 3, 0, 4) },
	};
	/* Without a line there is no position. */
	const struct hs_location second[] = { { .function = "caml_main", AT(0, 5, 3, 4) } };
	const struct hs_location third[] = { { .file = "x.ml", AT(UINT32_MAX, UINT32_MAX, 1, 2) } };
	const struct hs_location fourth[] = { { .line = 0 } };
	struct stack_frame frames[] = { { 8, first, COUNT(first) },
					{ 16, second, COUNT(second) },
					{ 24, third, COUNT(third) },
					{ 32, fourth, COUNT(fourth) } };
	const struct stack stack = { .id = 4294967295, .depth = COUNT(frames), .frames = frames };
	struct output o = output__new(jsonl_sink__new);
	char *text;

	(void)state;
	assert_int_equal(o.sink->ops->stack(o.sink, NULL, &stack), 0);
	/* Known stacks are not written again. */
	assert_null(o.sink->ops->stack_again);
	text = output__text(&o, NULL);
	assert_string_equal(
		text,
		"{\"type\":\"stack\",\"id\":4294967295,\"frames\":["
		"{\"function\":\"List.map\",\"file\":\"list.ml\",\"line\":82,\"start\":10,"
		"\"end\":16,\"inlined\":true},"
		"{\"function\":\"Main.\\\"quoted\\\"\\\\\",\"file\":\"src/\\u00E9.ml\",\"line\":1,"
		"\"end_line\":3,\"start\":0,\"end\":4},"
		"{\"function\":\"caml_main\",\"file\":null},"
		"{\"function\":null,\"file\":\"x.ml\",\"line\":4294967295,\"start\":1,\"end\":2},"
		"{\"function\":null,\"file\":null}]}\n");
	free(text);
	output__free(&o);
}

/* Write through one function of the sink until it fails, or more than any buffer. */
static int write_much(struct sink *s, int which)
{
	static const uint64_t slot = 0x1000;
	const struct hs_location l = { .function = "A.f" };
	struct stack_frame frame = { .slot = slot, .locations = &l, .n_locations = 1 };
	const struct stack stack = { .id = 1, .depth = 1, .frames = &frame };
	json_t *object = json_pack("{s:s}", "type", "loss");
	struct hs_event event;
	union record r;
	int err = 0;

	make__alloc(&r, 1, 0);
	if (which == 1)
		make__block(&r, HS_REC_DEALLOC, 1);
	if (which == 2)
		make__stack(&r, 1, &slot, 1);
	event = make__event(&r);
	for (int i = 0; i < 200000 && !err; i++) {
		if (which < 2)
			err = s->ops->event(s, &event, NULL);
		else if (which == 2)
			err = s->ops->stack(s, &event, &stack);
		else
			err = s->ops->json(s, object);
	}
	json_decref(object);
	return err;
}

static void expect_errors(int (*sink_new)(struct sink **out, int fd), int (*open_bad)(void),
			  int expected)
{
	struct hs_event event;
	struct sink *s;
	union record r;
	int fd;

	for (int which = 0; which < 4; which++) {
		assert_int_equal(sink_new(&s, open_bad()), 0);
		assert_int_equal(write_much(s, which), expected);
		sink__free(s);
	}
	/* Little enough to be seen at the flush only. */
	fd = open_bad();
	assert_int_equal(sink_new(&s, fd), 0);
	make__alloc(&r, 1, 0);
	event = make__event(&r);
	assert_int_equal(s->ops->event(s, &event, NULL), 0);
	assert_int_equal(s->ops->flush(s), expected);
	sink__free(s);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* the sink's, and closed */
	assert_int_equal(sink_new(&s, -1), -EBADF);
}

static int open_full(void)
{
	return open("/dev/full", O_WRONLY | O_CLOEXEC);
}

static int open_closed_pipe(void)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	return fds[1];
}

static void reports_write_errors(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	expect_errors(jsonl_sink__new, open_full, -ENOSPC);
	expect_errors(jsonl_sink__new, open_closed_pipe, -EPIPE);
	expect_errors(raw_sink__new, open_full, -ENOSPC);
	expect_errors(raw_sink__new, open_closed_pipe, -EPIPE);
	sink__free(NULL);
}

/* In a file that cannot grow any more whole lines are left, and nothing after them. */
static void leaves_whole_lines(void **state)
{
	char path[] = "/tmp/heapsonde-test.XXXXXX", text[20000];
	int fd = mkstemp(path), status;
	ssize_t size;
	pid_t pid;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	for (rlim_t limit = 0; limit <= 12000; limit += 1500) {
		assert_int_equal(ftruncate(fd, 0), 0);
		pid = fork();
		if (!pid) {
			struct rlimit r = { limit, RLIM_INFINITY };
			struct sink *s;

			signal(SIGXFSZ, SIG_IGN);
			if (lseek(fd, 0, SEEK_SET) || setrlimit(RLIMIT_FSIZE, &r) ||
			    jsonl_sink__new(&s, dup(fd)) || write_much(s, 0) != -EFBIG)
				_exit(1);
			/* Room again: too late for what could not be written. */
			r.rlim_cur = RLIM_INFINITY;
			if (setrlimit(RLIMIT_FSIZE, &r))
				_exit(2);
			sink__free(s);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		size = pread(fd, text, sizeof(text), 0);
		assert_in_range(size, limit > 200 ? limit - 200 : 0, limit);
		assert_true(!size || text[size - 1] == '\n');
	}
	close(fd);
}

/* The variants for streams write the same, and own the stream. */
static void writes_to_streams(void **state)
{
	static int (*const with_fd[])(struct sink **, int) = { jsonl_sink__new, raw_sink__new };
	static int (*const with_file[])(struct sink **, FILE *) = { jsonl_sink__new_file,
								    raw_sink__new_file };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct output o = output__new(with_fd[i]);
		char *expected, *text = NULL;
		size_t size, size_text;
		struct sink *s;

		assert_int_equal(with_file[i](&s, open_memstream(&text, &size_text)), 0);
		write_much(o.sink, 1);
		write_much(s, 1);
		expected = output__text(&o, &size);
		sink__free(s); /* closes the stream, so valgrind says */
		assert_int_equal(size_text, size);
		assert_memory_equal(text, expected, size);
		free(text);
		free(expected);
		output__free(&o);
	}
	/* One whose first bytes cannot be written. */
	for (int i = 0; i < 2; i++) {
		FILE *full = fopen("/dev/full", "we");
		struct sink *s = NULL;
		int err;

		setvbuf(full, NULL, _IONBF, 0);
		err = with_file[i](&s, full);
		assert_int_equal(err, i ? -ENOSPC : 0);
		if (!err)
			sink__free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_what_is_promised),
		cmocka_unit_test(fast_printer_agrees),
		cmocka_unit_test(writes_stacks),
		cmocka_unit_test(reports_write_errors),
		cmocka_unit_test(leaves_whole_lines),
		cmocka_unit_test(writes_threads),
		cmocka_unit_test(makes_losses),
		cmocka_unit_test(makes_counters),
		cmocka_unit_test(writes_to_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
