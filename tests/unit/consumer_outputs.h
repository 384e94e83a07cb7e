/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Consumers and their outputs, for the tests of user/sinks/consumer.h and outbox.h.
 *
 * In:   what a test wants sent, by the ids of blocks and stacks.
 * Out:  consumers, records sent to them, and what has come out; waiting for what must
 *       come.
 */
#ifndef TEST_CONSUMER_OUTPUTS_H
#define TEST_CONSUMER_OUTPUTS_H

#include "tests/unit/records_make.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>

#include "user/sinks/consumer.h"
#include "user/sinks/json.h"

#define QUEUE CONSUMER_QUEUE_MIN_BYTES

/* How long to wait for what must come, in ms: only a failed test waits so long. */
#define PATIENCE_MS 60000

/* ---- waiting ---- */

static inline void sleep_ms(int ms)
{
	poll(NULL, 0, ms);
}

static inline void expect_ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static inline bool is_ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* The ids of the other threads; returns how many. */
static inline size_t other_threads(pid_t *tids, size_t room)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (atoi(entry->d_name) && atoi(entry->d_name) != getpid() && n < room)
			tids[n++] = atoi(entry->d_name);
	closedir(dir);
	return n;
}

/* Until all consumers' threads have ended. */
static inline void expect_no_threads(void)
{
	pid_t tid;

	for (int ms = 0; other_threads(&tid, 1); ms += 2) {
		assert_true(ms < PATIENCE_MS);
		sleep_ms(2);
	}
}

/* ---- consumers and what they are told ---- */

static inline struct sink *new_consumer(int fd, enum sink_format format)
{
	struct sink *s;

	assert_int_equal(consumer__new(&s, fd, format, QUEUE), 0);
	return s;
}

static inline int new_memfd(void)
{
	int fd = memfd_create("heapsonde-test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* The stacks: id n is two frames, and has the hash 1000 + n. */
#define STACKS 200

static struct stack_frame frames[STACKS + 1][2];
static struct stack stacks[STACKS + 1];

static inline void make_stacks(void)
{
	static const struct hs_location inner = { .function = "A.f", .file = "a.ml", .line = 1 };
	static const struct hs_location outer = { .function = "main" };

	for (uint32_t id = 1; id <= STACKS; id++) {
		frames[id][0] = (struct stack_frame){ 8 * id, &inner, 1 };
		frames[id][1] = (struct stack_frame){ 4, &outer, 1 };
		stacks[id] = (struct stack){ .id = id, .depth = 2, .frames = frames[id] };
	}
}

/* Of a group of tests that uses them. */
static inline int setup_stacks(void **state)
{
	(void)state;
	make_stacks();
	return 0;
}

static inline void send_event(struct sink *s, const union record *r, const struct stack *stack)
{
	struct hs_event event = make__event(r);

	assert_int_equal(s->ops->event(s, &event, stack), 0);
}

static inline void send_stack(struct sink *s, uint32_t id)
{
	const uint64_t slots[] = { frames[id][0].slot, frames[id][1].slot };
	struct hs_event event;
	union record r;

	make__stack(&r, 1000 + id, slots, 2);
	event = make__event(&r);
	assert_int_equal(s->ops->stack(s, &event, &stacks[id]), 0);
}

/* An allocation in one of eight threads of four domains. */
static inline void send_alloc(struct sink *s, uint64_t id, uint32_t stack)
{
	union record r;

	make__alloc(&r, id, stack ? 1000 + stack : 0);
	r.h.tid = 4000 + (uint32_t)(id % 8);
	r.h.domain = (uint32_t)(id % 4);
	send_event(s, &r, stack ? &stacks[stack] : NULL);
}

static inline void send_dealloc(struct sink *s, uint64_t id)
{
	union record r;

	make__block(&r, HS_REC_DEALLOC, id);
	send_event(s, &r, NULL);
}

static inline void send_rate(struct sink *s, uint32_t domain, uint32_t tier)
{
	union record r;

	make__rate(&r, 1ull << 32, tier);
	r.h.domain = domain;
	send_event(s, &r, NULL);
}

static inline void send_json(struct sink *s, json_t *object)
{
	assert_non_null(object);
	assert_int_equal(s->ops->json(s, object), 0);
	json_decref(object);
}

static inline json_t *summary(void)
{
	return json_pack("{s:s, s:{s:i}, s:{}}", "type", "summary", "lost", "ring_full", 7,
			 "degraded");
}

static inline void flush(struct sink *s)
{
	assert_int_equal(s->ops->flush(s), 0);
}

/* Allocations, until one finds no room. Returns how many. */
static inline uint64_t fill_with_allocs(struct sink *s)
{
	uint64_t n = 0, before = consumer__dropped(s);

	while (consumer__dropped(s) == before)
		send_alloc(s, ++n, 1);
	flush(s);
	return n;
}

/* ---- reading the output ---- */

struct text {
	char *bytes;
	size_t n, room;
};

/* What is there now; returns false at the end. */
static inline bool read_some(int fd, struct text *t, size_t most)
{
	ssize_t n;

	if (t->room < t->n + most + 1) {
		t->room = 2 * (t->n + most + 1);
		t->bytes = realloc(t->bytes, t->room);
		assert_non_null(t->bytes);
	}
	n = read(fd, t->bytes + t->n, most);
	assert_true(n >= 0);
	t->n += (size_t)n;
	t->bytes[t->n] = '\0';
	return n > 0;
}

/* Everything up to the end. */
static inline struct text read_all(int fd)
{
	struct text t = { NULL };

	do {
		expect_ready(fd, POLLIN);
	} while (read_some(fd, &t, 65536));
	return t;
}

/* All that has been queued. */
static inline void drain(struct sink *s, int fd, struct text *t)
{
	flush(s);
	while (consumer__queued(s) || is_ready(fd)) {
		if (is_ready(fd))
			read_some(fd, t, 65536);
		else
			sleep_ms(1);
	}
}

/* Finish, read what is left, and give the consumer back. */
static inline void finish(struct sink *s, int fd, struct text *t)
{
	int done = consumer__finish(s);

	assert_true(done >= 0);
	while (read_some(fd, t, 65536))
		;
	expect_ready(done, POLLIN);
	assert_int_equal(consumer__finish(s), done);
}

/* What a consumer has written to a file: wait for it and read it. */
static inline struct text finish_file(struct sink *s, int fd)
{
	struct text t = { NULL };
	off_t size;

	expect_ready(consumer__finish(s), POLLIN);
	size = lseek(fd, 0, SEEK_END);
	lseek(fd, 0, SEEK_SET);
	while (read_some(fd, &t, 65536))
		;
	assert_int_equal(t.n, size);
	return t;
}

#endif /* TEST_CONSUMER_OUTPUTS_H */
