/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream that waits while its output has no room: nothing is lost or out of order, the queue
 * stays bounded, and who does not want to wait any more need not.
 */
#include "tests/unit/consumer_outputs.h"

#include "user/sinks/outbox_stream.h"

#define LINE_BYTES 16

/* A writer, and a reader that reads while the writer waits. */
struct both {
	int fds[2]; /* a pipe */
	struct outbox *outbox;
	FILE *stream;
	unsigned patience;       /* how often it waits before it gives up */
	bool reads;              /* while it waits */
	unsigned waited, ending; /* how often it has, and how often with something to wait for */
	uint64_t most_queued;
	uint64_t next; /* number of the line that is to be read next */
};

static void take_lines(struct both *b)
{
	char line[LINE_BYTES + 1], expected[LINE_BYTES + 1];

	while (is_ready(b->fds[0]) && read(b->fds[0], line, LINE_BYTES) == LINE_BYTES) {
		snprintf(expected, sizeof(expected), "%015llu\n", (unsigned long long)b->next++);
		assert_memory_equal(line, expected, LINE_BYTES);
	}
}

static bool wait_for_reader(void *ctx, int fd)
{
	struct both *b = ctx;
	uint64_t queued = outbox__queued(b->outbox);

	b->waited++;
	b->ending += fd >= 0;
	if (queued > b->most_queued)
		b->most_queued = queued;
	if (b->waited > b->patience)
		return false;
	if (b->reads)
		take_lines(b);
	return true;
}

static void begin(struct both *b, int fd, unsigned patience, bool reads)
{
	b->patience = patience;
	b->reads = reads;
	assert_int_equal(outbox__new(&b->outbox, fd, true), 0);
	assert_int_equal(outbox_stream__new(&b->stream, b->outbox, wait_for_reader, b), 0);
}

static void begin_pipe(struct both *b, unsigned patience, bool reads)
{
	assert_int_equal(pipe(b->fds), 0);
	begin(b, b->fds[1], patience, reads);
}

static void end(struct both *b)
{
	fclose(b->stream);
	outbox__free(b->outbox);
	if (b->fds[0] > 0)
		close(b->fds[0]);
	expect_no_threads();
}

/* Returns how many of n lines the stream has taken. */
static uint64_t put_lines(struct both *b, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (fprintf(b->stream, "%015llu\n", (unsigned long long)i) != LINE_BYTES)
			return i;
	return n;
}

static void waits_for_room(void **state)
{
	const uint64_t n = 4 * OUTBOX_STREAM_QUEUE_BYTES / LINE_BYTES;
	struct both b = { 0 };

	(void)state;
	begin_pipe(&b, UINT32_MAX, true);
	assert_int_equal(put_lines(&b, n), n);
	assert_int_equal(fflush(b.stream), 0);
	assert_true(b.waited > 0);
	assert_int_equal(b.ending, 0);
	/* What was let in last may be more than there was room for. */
	assert_in_range(b.most_queued, OUTBOX_STREAM_QUEUE_BYTES,
			OUTBOX_STREAM_QUEUE_BYTES + 65536);
	assert_int_equal(outbox_stream__finish(b.outbox, wait_for_reader, &b), 0);
	take_lines(&b);
	assert_int_equal(b.next, n);
	end(&b);
}

static void gives_up_when_told(void **state)
{
	struct both b = { 0 };
	uint64_t n;

	(void)state;
	begin_pipe(&b, 3, false);
	n = put_lines(&b, 4 * OUTBOX_STREAM_QUEUE_BYTES / LINE_BYTES);
	assert_int_equal(errno, ECANCELED);
	assert_true(ferror(b.stream));
	assert_int_equal(b.waited, 4);
	assert_in_range(n, OUTBOX_STREAM_QUEUE_BYTES / LINE_BYTES,
			(OUTBOX_STREAM_QUEUE_BYTES + 262144) / LINE_BYTES);
	assert_int_equal(outbox_stream__finish(b.outbox, wait_for_reader, &b), -ECANCELED);
	end(&b);
}

static void waits_for_the_end(void **state)
{
	const uint64_t n = OUTBOX_STREAM_QUEUE_BYTES / 2 / LINE_BYTES;

	(void)state;
	for (int reads = 0; reads < 2; reads++) {
		struct both b = { 0 };

		begin_pipe(&b, reads ? UINT32_MAX : 3, reads);
		assert_int_equal(put_lines(&b, n), n);
		assert_int_equal(fflush(b.stream), 0);
		assert_int_equal(b.waited, 0);
		assert_int_equal(outbox_stream__finish(b.outbox, wait_for_reader, &b),
				 reads ? 0 : -ECANCELED);
		assert_true(b.ending > 0);
		assert_int_equal(b.ending, b.waited);
		take_lines(&b);
		if (reads)
			assert_int_equal(b.next, n);
		end(&b);
	}
}

/* The error of the output, by whichever function comes after it. */
static void tells_what_failed(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct both b = { 0 };

		begin(&b, open("/dev/full", O_WRONLY | O_CLOEXEC), UINT32_MAX, false);
		put_lines(&b, 1);
		assert_int_equal(fflush(b.stream), 0);
		while (late && !outbox__error(b.outbox))
			sleep_ms(1);
		if (late) {
			put_lines(&b, 1);
			errno = 0;
			assert_int_equal(fflush(b.stream), EOF);
			assert_int_equal(errno, ENOSPC);
		}
		assert_int_equal(outbox_stream__finish(b.outbox, wait_for_reader, &b), -ENOSPC);
		end(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_room),
		cmocka_unit_test(gives_up_when_told),
		cmocka_unit_test(waits_for_the_end),
		cmocka_unit_test(tells_what_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
