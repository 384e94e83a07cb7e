/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Consumers whose readers keep up: they write what a plain sink writes, to any kind of
 * descriptor, and at once when they are flushed.
 */
#include "tests/unit/capture_make.h"
#include "tests/unit/consumer_tally.h"

#include <sys/socket.h>

static int new_jsonl(struct sink **out, int fd)
{
	return consumer__new(out, fd, SINK_JSONL, QUEUE);
}

static int new_raw(struct sink **out, int fd)
{
	return consumer__new(out, fd, SINK_RAW, QUEUE);
}

static int sink_done; /* the eventfd of the consumer that record_through made */

/* As `record` of capture_make.h, by a consumer. */
static struct text record_through(int (*sink_new)(struct sink **out, int fd))
{
	struct symbolizer *symbolizer;
	struct pipeline pipeline;
	int fd = new_memfd();
	struct sink *s;
	struct text t;

	assert_int_equal(sink_new(&s, dup(fd)), 0);
	assert_int_equal(symbolizer__new_empty(&symbolizer), 0);
	assert_int_equal(pipeline__init(&pipeline, symbolizer, s, 0, false), 0);
	teach(symbolizer);
	play(&pipeline);
	sink_done = consumer__finish(s);
	t = finish_file(s, fd);
	assert_int_equal(consumer__error(s), 0);
	assert_int_equal(consumer__dropped(s), 0);
	assert_int_equal(consumer__queued(s), 0);
	assert_int_equal(consumer__written(s), t.n);
	/* What comes later is too late. */
	send_alloc(s, 1, 0);
	send_json(s, summary());
	flush(s);
	assert_int_equal(lseek(fd, 0, SEEK_END), t.n);
	sink__free(s);
	assert_int_equal(fcntl(sink_done, F_GETFD), -1);
	pipeline__deinit(&pipeline);
	symbolizer__free(symbolizer);
	close(fd);
	return t;
}

static void writes_what_a_plain_sink_writes(void **state)
{
	size_t size;
	char *plain = record(jsonl_sink__new, &size);
	struct text t = record_through(new_jsonl);

	(void)state;
	assert_string_equal(t.bytes, plain);
	free(t.bytes);
	free(plain);
	plain = record(raw_sink__new, &size);
	t = record_through(new_raw);
	assert_int_equal(t.n, size);
	assert_memory_equal(t.bytes, plain, size);
	free(t.bytes);
	free(plain);
	expect_no_threads();
}

/* A socket that does not block for its other users either: no byte is lost. */
static void writes_to_any_descriptor(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct text t = { NULL };
		struct line_tally got;
		int fds[2], writer;
		struct sink *s;

		if (kind < 2)
			assert_int_equal(pipe(fds), 0);
		else
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		writer = kind < 2 ? fds[1] : fds[0];
		if (kind % 2)
			assert_int_equal(fcntl(writer, F_SETFL, O_NONBLOCK), 0);
		s = new_consumer(dup(writer), SINK_JSONL);
		for (uint64_t id = 1; id <= 4000; id++)
			send_alloc(s, id, 0);
		drain(s, kind < 2 ? fds[0] : fds[1], &t);
		/* The flags are not ours to change. */
		assert_int_equal(!!(fcntl(writer, F_GETFL) & O_NONBLOCK), kind % 2);
		close(writer);
		finish(s, kind < 2 ? fds[0] : fds[1], &t);
		assert_int_equal(consumer__error(s), 0);
		got = tally(&t);
		assert_int_equal(got.allocs, 4000);
		assert_int_equal(got.threads, 8);
		tally__free(&got);
		free(t.bytes);
		sink__free(s);
		close(kind < 2 ? fds[0] : fds[1]);
	}
	expect_no_threads();
}

/* What is flushed is written without more. */
static void flushes(void **state)
{
	struct text t = { NULL };
	struct sink *s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], SINK_JSONL);
	send_alloc(s, 1, 0);
	assert_true(consumer__queued(s) > 0);
	assert_int_equal(consumer__written(s), 0);
	for (int i = 0; i < 100; i++) {
		flush(s);
		expect_ready(fds[0], POLLIN);
		read_some(fds[0], &t, 65536);
		send_alloc(s, 1, 0);
	}
	finish(s, fds[0], &t);
	sink__free(s);
	assert_memory_equal(t.bytes, "{\"type\":\"thread\"", 16);
	free(t.bytes);
	close(fds[0]);
	expect_no_threads();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_what_a_plain_sink_writes),
		cmocka_unit_test(writes_to_any_descriptor),
		cmocka_unit_test(flushes),
	};

	return cmocka_run_group_tests(tests, setup_stacks, NULL);
}
