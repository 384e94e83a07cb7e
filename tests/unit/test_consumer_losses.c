/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Consumers whose readers do not keep up: nothing waits, whole records are left out,
 * those that matter least first, and counted; the counts and the rates are told.
 */
#include "tests/unit/consumer_tally.h"

#include <sys/ioctl.h>

static void leaves_out_and_counts(void **state)
{
	struct text t = { NULL };
	uint64_t n_sent = 0, dropped;
	struct line_tally got;
	struct sink *s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], SINK_JSONL);
	/* Nobody reads; new stacks come all the time. */
	for (uint32_t i = 0; i < 40000; i++) {
		uint32_t stack = i / 200 % STACKS + 1;

		if (i % 200 == 0)
			send_stack(s, stack);
		send_alloc(s, ++n_sent, stack);
	}
	flush(s);
	dropped = consumer__dropped(s);
	assert_true(dropped > 30000 && dropped < 40000);
	assert_in_range(consumer__queued(s) + consumer__written(s), QUEUE / 4 * 3,
			QUEUE / 4 * 3 + 65536 + 1000);
	drain(s, fds[0], &t);
	/* There is room again: the loss is told without anything else happening. */
	drain(s, fds[0], &t);
	got = tally(&t);
	assert_int_equal(got.losses, 1);
	assert_int_equal(got.lost, dropped);
	assert_ptr_equal(json_array_get(got.lines, json_array_size(got.lines) - 1), got.last);
	assert_string_equal(json_string_value(json_object_get(got.last, "type")), "loss");
	assert_true(got.stacks < STACKS);
	tally__free(&got);
	/* Stacks that were left out are used again. */
	for (uint32_t stack = STACKS; stack; stack--)
		send_alloc(s, ++n_sent, stack);
	send_json(s, summary());
	finish(s, fds[0], &t);
	assert_int_equal(consumer__error(s), 0);
	assert_int_equal(consumer__dropped(s), dropped);
	got = tally(&t);
	assert_int_equal(got.allocs + dropped, n_sent);
	assert_int_equal(got.lost, dropped);
	/* Each stands for one sample (send_alloc). */
	assert_int_equal(got.lost_samples, dropped);
	assert_int_equal(got.lost_lives, 0);
	assert_int_equal(got.stacks, STACKS);
	assert_int_equal(got.threads, 8);
	assert_string_equal(json_string_value(json_object_get(got.last, "type")), "summary");
	assert_int_equal(number(json_object_get(got.last, "lost"), "output_full"), dropped);
	assert_int_equal(number(json_object_get(got.last, "lost"), "output_full_samples"), dropped);
	assert_null(json_object_get(json_object_get(got.last, "lost"), "output_full_lives"));
	assert_int_equal(number(json_object_get(got.last, "lost"), "ring_full"), 7);
	assert_int_equal(json_object_size(got.last), 3);
	tally__free(&got);
	free(t.bytes);
	sink__free(s);
	close(fds[0]);
	expect_no_threads();
}

/* A reader that is slower, not stuck: it is not told of losses more than of blocks. */
static void tells_losses_seldom(void **state)
{
	struct text t = { NULL };
	uint64_t n_sent = 0;
	struct line_tally got;
	struct sink *s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], SINK_JSONL);
	for (int i = 0; i < 2000; i++) {
		for (uint32_t k = 0; k < 50; k++)
			send_alloc(s, ++n_sent, k + 1);
		flush(s);
		expect_ready(fds[0], POLLIN);
		read_some(fds[0], &t, 4000);
	}
	finish(s, fds[0], &t);
	got = tally(&t);
	assert_true(consumer__dropped(s) > 10000);
	assert_int_equal(got.allocs + consumer__dropped(s), n_sent);
	assert_int_equal(got.lost, consumer__dropped(s));
	/* Between two a quarter of the queue is read, and the last one is at the end. */
	assert_in_range(got.losses, 10, t.n / (QUEUE / 4) + 1);
	tally__free(&got);
	free(t.bytes);
	sink__free(s);
	close(fds[0]);
	expect_no_threads();
}

/* As much as a pipe takes while we look. */
#define PIPE_BYTES 65536

static void expect_queued(const struct sink *s, size_t bytes)
{
	assert_in_range(consumer__queued(s), bytes - PIPE_BYTES, bytes + 2000);
}

static uint64_t fill_with_deallocs(struct sink *s)
{
	uint64_t n = 0, before = consumer__dropped(s);

	while (consumer__dropped(s) == before)
		send_dealloc(s, ++n);
	return n;
}

static uint64_t fill_with_json(struct sink *s)
{
	uint64_t n = 0, before = consumer__dropped(s);

	for (; consumer__dropped(s) == before; n++)
		send_json(s, json_pack("{s:s, s:s}", "type", "loss", "cause", "ring_full"));
	return n;
}

/* Allocations first, then other events, then JSON, the summary never. */
static void gives_up_the_least_first(void **state)
{
	struct text t = { NULL };
	struct line_tally got;
	uint64_t n_sent;
	struct sink *s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], SINK_JSONL);
	n_sent = fill_with_allocs(s);
	expect_queued(s, QUEUE / 4 * 3);
	send_dealloc(s, 1);
	assert_int_equal(consumer__dropped(s), 1);
	send_alloc(s, 1, 1);
	assert_int_equal(consumer__dropped(s), 2);
	n_sent += 2 + fill_with_deallocs(s);
	expect_queued(s, QUEUE / 8 * 7);
	assert_int_equal(consumer__dropped(s), 3);
	/* Counters find none either: there will be others. */
	send_json(s, json_pack("{s:s, s:i}", "type", "counters", "domain", 1));
	assert_int_equal(consumer__dropped(s), 4);
	n_sent++;
	/* Rates find room where deaths do not. */
	send_rate(s, 1, 5);
	n_sent += fill_with_json(s);
	expect_queued(s, QUEUE);
	assert_int_equal(consumer__dropped(s), 5);
	send_json(s, summary());
	assert_int_equal(consumer__dropped(s), 5);
	finish(s, fds[0], &t);
	got = tally(&t);
	/* The first death that is left out is told at once, the rest at the end. */
	assert_int_equal(got.losses, 2);
	assert_int_equal(got.lost, 5);
	assert_int_equal(got.lost_samples, 2);
	assert_int_equal(got.lost_lives, 1);
	assert_int_equal(got.rates, 1);
	assert_int_equal(got.allocs + got.deallocs + got.others, n_sent - 5 + 1);
	assert_string_equal(json_string_value(json_object_get(got.last, "type")), "summary");
	assert_int_equal(number(json_object_get(got.last, "lost"), "output_full"), 5);
	assert_int_equal(number(json_object_get(got.last, "lost"), "output_full_samples"), 2);
	assert_int_equal(number(json_object_get(got.last, "lost"), "output_full_lives"), 1);
	tally__free(&got);
	free(t.bytes);
	sink__free(s);
	close(fds[0]);
	expect_no_threads();
}

/*
 * From the first death that is left out no block is known to live: so a reader hears of
 * it before anything else, and of no new block until all is told.
 */
static void tells_at_once_that_lives_are_missing(void **state)
{
	struct text t = { NULL };
	struct line_tally got;
	struct sink *s;
	uint64_t n;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], SINK_JSONL);
	fill_with_allocs(s);
	n = fill_with_deallocs(s);
	for (uint64_t i = 0; i < 100; i++)
		send_dealloc(s, n + 1 + i);
	for (uint32_t i = 0; i < 10; i++)
		send_alloc(s, 1000000 + i, 1);
	/* As much as is there when all breaks off. */
	drain(s, fds[0], &t);
	got = tally(&t);
	assert_int_equal(got.losses, 1);
	assert_int_equal(got.lost_lives, 1);
	assert_int_equal(got.deallocs, n - 1);
	assert_ptr_equal(json_array_get(got.lines, json_array_size(got.lines) - 1), got.last);
	assert_string_equal(json_string_value(json_object_get(got.last, "type")), "loss");
	tally__free(&got);
	finish(s, fds[0], &t);
	got = tally(&t);
	assert_int_equal(got.losses, 2);
	assert_int_equal(got.lost_lives, 101);
	assert_int_equal(got.lost_samples, 11);
	tally__free(&got);
	free(t.bytes);
	sink__free(s);
	close(fds[0]);
	expect_no_threads();
}

/* Wait until the pipe takes no more, and the thread has said what it has written. */
static void expect_full(const struct sink *s, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int in_pipe = -1;

	for (int ms = 0; poll(&p, 1, 0) > 0 || ioctl(fd, FIONREAD, &in_pipe) ||
			 consumer__written(s) != (uint64_t)in_pipe;
	     ms++) {
		assert_true(ms < PATIENCE_MS);
		sleep_ms(1);
	}
}

/* Rates that found no room at all come late, but before they are needed. */
static void tells_rates_late(void **state)
{
	struct text t = { NULL };
	struct line_tally got;
	union record r;
	struct sink *s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(dup(fds[1]), SINK_JSONL);
	fill_with_allocs(s);
	fill_with_deallocs(s);
	expect_full(s, fds[1]);
	close(fds[1]);
	fill_with_json(s);
	send_rate(s, 1, 5);
	send_rate(s, 2, 6);
	send_rate(s, 1, 7);
	send_rate(s, 3, 8);
	/* A domain that has ended needs none. */
	make__domain(&r, HS_REC_DOMAIN_TERMINATE);
	r.h.domain = 3;
	send_event(s, &r, NULL);
	assert_int_equal(consumer__dropped(s), 4);
	drain(s, fds[0], &t);
	got = tally(&t);
	assert_int_equal(got.rates, 0);
	tally__free(&got);
	flush(s);
	send_alloc(s, 1, 1);
	finish(s, fds[0], &t);
	got = tally(&t);
	assert_int_equal(got.rates, 2);
	assert_true(json_real_value(json_object_get(got.rate_of, "1")) == 0x1p-7);
	assert_true(json_real_value(json_object_get(got.rate_of, "2")) == 0x1p-6);
	assert_int_equal(got.lost, 4);
	assert_string_equal(json_string_value(json_object_get(got.last, "type")), "alloc_minor");
	tally__free(&got);
	free(t.bytes);
	sink__free(s);
	close(fds[0]);
	expect_no_threads();
}

/* Without a summary the loss is the last record. */
static void tells_the_last_loss(void **state)
{
	struct text t = { NULL };
	struct line_tally got;
	struct sink *s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], SINK_JSONL);
	fill_with_allocs(s);
	finish(s, fds[0], &t);
	got = tally(&t);
	assert_int_equal(got.lost, 1);
	assert_string_equal(json_string_value(json_object_get(got.last, "type")), "loss");
	tally__free(&got);
	free(t.bytes);
	sink__free(s);
	close(fds[0]);
	expect_no_threads();
}

/* A summary that is longer than the queue. */
static void holds_long_summaries(void **state)
{
	json_t *object = summary(), *domains = json_array();
	struct text t = { NULL };
	struct line_tally got;
	struct sink *s;
	int fds[2];

	(void)state;
	for (int i = 0; i < 200000; i++)
		json_array_append_new(domains, json_integer(1000000000 + i));
	json_object_set_new(object, "domains", domains);
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], SINK_JSONL);
	fill_with_allocs(s);
	send_json(s, object);
	assert_true(consumer__queued(s) > 2 * QUEUE);
	finish(s, fds[0], &t);
	got = tally(&t);
	assert_int_equal(json_array_size(json_object_get(got.last, "domains")), 200000);
	assert_int_equal(consumer__error(s), 0);
	tally__free(&got);
	free(t.bytes);
	sink__free(s);
	close(fds[0]);
	expect_no_threads();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_out_and_counts),
		cmocka_unit_test(tells_losses_seldom),
		cmocka_unit_test(gives_up_the_least_first),
		cmocka_unit_test(tells_rates_late),
		cmocka_unit_test(tells_the_last_loss),
		cmocka_unit_test(holds_long_summaries),
		cmocka_unit_test(tells_at_once_that_lives_are_missing),
	};

	return cmocka_run_group_tests(tests, setup_stacks, NULL);
}
