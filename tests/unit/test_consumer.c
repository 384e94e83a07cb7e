/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Consumers: with a reader that keeps up they write what a plain sink writes; with
 * one that does not, nothing waits, whole records are left out and counted, and
 * every stack, thread and rate that is used is told; late joiners miss none either.
 * Full disks, closed pipes and outputs that hang for ever hang nobody.
 */
#include "tests/unit/capture_make.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "user/sinks/consumer.h"
#include "user/sinks/json.h"

#define QUEUE CONSUMER_QUEUE_MIN_BYTES

/* How long to wait for what must come, in ms: only a failed test waits so long. */
#define PATIENCE_MS 20000

/* ---- waiting ---- */

static void sleep_ms(int ms)
{
	poll(NULL, 0, ms);
}

static void expect_ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static bool is_ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* The ids of the other threads; returns how many. */
static size_t other_threads(pid_t *tids, size_t room)
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
static void expect_no_threads(void)
{
	pid_t tid;

	for (int ms = 0; other_threads(&tid, 1); ms += 2) {
		assert_true(ms < PATIENCE_MS);
		sleep_ms(2);
	}
}

/* ---- consumers and what they are told ---- */

static struct sink *new_consumer(int fd, enum consumer_format format)
{
	struct sink *s;

	assert_int_equal(consumer__new(&s, fd, format, QUEUE), 0);
	return s;
}

static int new_jsonl(struct sink **out, int fd)
{
	return consumer__new(out, fd, CONSUMER_JSONL, QUEUE);
}

static int new_raw(struct sink **out, int fd)
{
	return consumer__new(out, fd, CONSUMER_RAW, QUEUE);
}

static int new_memfd(void)
{
	int fd = memfd_create("heapsonde-test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* A file of a real file system: a memfd has no limit of size. */
static int new_tmpfile(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

/* The stacks: id n is two frames, and has the hash 1000 + n. */
#define STACKS 200

static struct stack_frame frames[STACKS + 1][2];
static struct stack stacks[STACKS + 1];

static void make_stacks(void)
{
	static const struct hs_location inner = { .function = "A.f", .file = "a.ml", .line = 1 };
	static const struct hs_location outer = { .function = "main" };

	for (uint32_t id = 1; id <= STACKS; id++) {
		frames[id][0] = (struct stack_frame){ 8 * id, &inner, 1 };
		frames[id][1] = (struct stack_frame){ 4, &outer, 1 };
		stacks[id] = (struct stack){ .id = id, .depth = 2, .frames = frames[id] };
	}
}

static void send_event(struct sink *s, const union record *r, const struct stack *stack)
{
	struct hs_event event = make__event(r);

	assert_int_equal(s->ops->event(s, &event, stack), 0);
}

static void send_stack(struct sink *s, uint32_t id)
{
	const uint64_t slots[] = { frames[id][0].slot, frames[id][1].slot };
	struct hs_event event;
	union record r;

	make__stack(&r, 1000 + id, slots, 2);
	event = make__event(&r);
	assert_int_equal(s->ops->stack(s, &event, &stacks[id]), 0);
}

/* An allocation in one of eight threads of four domains. */
static void send_alloc(struct sink *s, uint64_t id, uint32_t stack)
{
	union record r;

	make__alloc(&r, id, stack ? 1000 + stack : 0);
	r.h.tid = 4000 + (uint32_t)(id % 8);
	r.h.domain = (uint32_t)(id % 4);
	send_event(s, &r, stack ? &stacks[stack] : NULL);
}

static void send_dealloc(struct sink *s, uint64_t id)
{
	union record r;

	make__block(&r, HS_REC_DEALLOC, id);
	send_event(s, &r, NULL);
}

static void send_rate(struct sink *s, uint32_t domain, uint32_t tier)
{
	union record r;

	make__rate(&r, 1ull << 32, tier);
	r.h.domain = domain;
	send_event(s, &r, NULL);
}

static void send_json(struct sink *s, json_t *object)
{
	assert_non_null(object);
	assert_int_equal(s->ops->json(s, object), 0);
	json_decref(object);
}

static json_t *summary(void)
{
	return json_pack("{s:s, s:{s:i}, s:{}}", "type", "summary", "lost", "ring_full", 7,
			 "degraded");
}

static void flush(struct sink *s)
{
	assert_int_equal(s->ops->flush(s), 0);
}

/* ---- reading the output ---- */

struct text {
	char *bytes;
	size_t n, room;
};

/* What is there now; returns false at the end. */
static bool read_some(int fd, struct text *t, size_t most)
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
static struct text read_all(int fd)
{
	struct text t = { NULL };

	do {
		expect_ready(fd, POLLIN);
	} while (read_some(fd, &t, 65536));
	return t;
}

/* All that has been queued. */
static void drain(struct sink *s, int fd, struct text *t)
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
static void finish(struct sink *s, int fd, struct text *t)
{
	int done = consumer__finish(s);

	assert_true(done >= 0);
	while (read_some(fd, t, 65536))
		;
	expect_ready(done, POLLIN);
	assert_int_equal(consumer__finish(s), done);
}

/* What a consumer has written to a file: wait for it and read it. */
static struct text finish_file(struct sink *s, int fd)
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

/* What lines say, added up; and that they may say it. */
struct tally {
	uint64_t allocs, deallocs, stacks, threads, rates, others;
	uint64_t losses, lost; /* records with the cause output_full, and their sum */
	json_t *last;          /* the last line, borrowed from lines */
	json_t *lines;
	json_t *rate_of;   /* by domain: the last rate record's */
	json_t *domain_of; /* by thread */
	bool has_stack[STACKS + 1];
};

static uint64_t number(const json_t *o, const char *name)
{
	const json_t *n = json_object_get(o, name);

	assert_true(json_is_integer(n));
	return (uint64_t)json_integer_value(n);
}

/* As a key. */
static const char *text_of(uint64_t n)
{
	static char text[2][32];
	static int i;

	i = !i;
	snprintf(text[i], sizeof(text[i]), "%llu", (unsigned long long)n);
	return text[i];
}

static void take_event(struct tally *t, const json_t *o)
{
	const json_t *domain = json_object_get(t->domain_of, text_of(number(o, "thread")));

	/* Its thread has been told, and for this domain. */
	assert_non_null(domain);
	assert_int_equal(json_integer_value(domain), number(o, "domain"));
}

static void take_line(struct tally *t, json_t *o)
{
	const char *type = json_string_value(json_object_get(o, "type"));

	assert_non_null(type);
	if (!strcmp(type, "stack")) {
		t->stacks++;
		assert_in_range(number(o, "id"), 1, STACKS);
		assert_false(t->has_stack[number(o, "id")]);
		t->has_stack[number(o, "id")] = true;
	} else if (!strcmp(type, "alloc_minor")) {
		t->allocs++;
		take_event(t, o);
		assert_true(!number(o, "stack") || t->has_stack[number(o, "stack")]);
	} else if (!strcmp(type, "dealloc_major")) {
		t->deallocs++;
		take_event(t, o);
	} else if (!strcmp(type, "rate")) {
		t->rates++;
		take_event(t, o);
		json_object_set(t->rate_of, text_of(number(o, "domain")),
				json_object_get(o, "rate"));
	} else if (!strcmp(type, "thread")) {
		const char *tid = text_of(number(o, "thread"));
		const json_t *old = json_object_get(t->domain_of, tid);

		t->threads++;
		assert_true(!old || (uint64_t)json_integer_value(old) != number(o, "domain"));
		json_object_set(t->domain_of, tid, json_object_get(o, "domain"));
	} else if (!strcmp(type, "loss") &&
		   !strcmp(json_string_value(json_object_get(o, "cause")), "output_full")) {
		t->losses++;
		t->lost += number(o, "count");
		assert_true(json_is_null(json_object_get(o, "domain")));
		assert_true(number(o, "count") > 0 && number(o, "time") > 0);
	} else {
		t->others++;
	}
}

/* Every line is whole. */
static struct tally tally(const struct text *text)
{
	struct tally t = { .lines = json_array(),
			   .rate_of = json_object(),
			   .domain_of = json_object() };
	size_t begin = 0;

	assert_true(!text->n || text->bytes[text->n - 1] == '\n');
	for (size_t i = 0; i < text->n; i++) {
		json_t *o;

		if (text->bytes[i] != '\n')
			continue;
		o = json_loadb(text->bytes + begin, i - begin, JSON_REJECT_DUPLICATES, NULL);
		if (!json_is_object(o))
			fail_msg("no line: %.*s", (int)(i - begin), text->bytes + begin);
		take_line(&t, o);
		json_array_append_new(t.lines, o);
		t.last = o;
		begin = i + 1;
	}
	return t;
}

static void tally__free(struct tally *t)
{
	json_decref(t->lines);
	json_decref(t->rate_of);
	json_decref(t->domain_of);
}

/* ---- readers that keep up ---- */

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
		struct tally got;
		int fds[2], writer;
		struct sink *s;

		if (kind < 2)
			assert_int_equal(pipe(fds), 0);
		else
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		writer = kind < 2 ? fds[1] : fds[0];
		if (kind % 2)
			assert_int_equal(fcntl(writer, F_SETFL, O_NONBLOCK), 0);
		s = new_consumer(dup(writer), CONSUMER_JSONL);
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
	s = new_consumer(fds[1], CONSUMER_JSONL);
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

/* ---- readers that do not ---- */

static void leaves_out_and_counts(void **state)
{
	struct text t = { NULL };
	uint64_t n_sent = 0, dropped;
	struct tally got;
	struct sink *s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], CONSUMER_JSONL);
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
	assert_int_equal(got.stacks, STACKS);
	assert_int_equal(got.threads, 8);
	assert_string_equal(json_string_value(json_object_get(got.last, "type")), "summary");
	assert_int_equal(number(json_object_get(got.last, "lost"), "output_full"), dropped);
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
	struct tally got;
	struct sink *s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], CONSUMER_JSONL);
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

/* Allocations, until one finds no room. Returns how many. */
static uint64_t fill_with_allocs(struct sink *s)
{
	uint64_t n = 0, before = consumer__dropped(s);

	while (consumer__dropped(s) == before)
		send_alloc(s, ++n, 1);
	flush(s);
	return n;
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
	struct tally got;
	uint64_t n_sent;
	struct sink *s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], CONSUMER_JSONL);
	n_sent = fill_with_allocs(s);
	expect_queued(s, QUEUE / 4 * 3);
	send_dealloc(s, 1);
	assert_int_equal(consumer__dropped(s), 1);
	send_alloc(s, 1, 1);
	assert_int_equal(consumer__dropped(s), 2);
	n_sent += 2 + fill_with_deallocs(s);
	expect_queued(s, QUEUE / 8 * 7);
	assert_int_equal(consumer__dropped(s), 3);
	/* Rates find room where deaths do not. */
	send_rate(s, 1, 5);
	n_sent += fill_with_json(s);
	expect_queued(s, QUEUE);
	assert_int_equal(consumer__dropped(s), 4);
	send_json(s, summary());
	assert_int_equal(consumer__dropped(s), 4);
	finish(s, fds[0], &t);
	got = tally(&t);
	assert_int_equal(got.losses, 1);
	assert_int_equal(got.lost, 4);
	assert_int_equal(got.rates, 1);
	assert_int_equal(got.allocs + got.deallocs + got.others, n_sent - 4 + 1);
	assert_string_equal(json_string_value(json_object_get(got.last, "type")), "summary");
	assert_int_equal(number(json_object_get(got.last, "lost"), "output_full"), 4);
	tally__free(&got);
	free(t.bytes);
	sink__free(s);
	close(fds[0]);
	expect_no_threads();
}

/* Wait until the pipe takes no more, and the thread has said so. */
static void expect_full(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	for (int ms = 0; poll(&p, 1, 0) > 0; ms++) {
		assert_true(ms < PATIENCE_MS);
		sleep_ms(1);
	}
	sleep_ms(50);
}

/* Rates that found no room at all come late, but before they are needed. */
static void tells_rates_late(void **state)
{
	struct text t = { NULL };
	struct tally got;
	union record r;
	struct sink *s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(dup(fds[1]), CONSUMER_JSONL);
	fill_with_allocs(s);
	fill_with_deallocs(s);
	expect_full(fds[1]);
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
	struct tally got;
	struct sink *s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], CONSUMER_JSONL);
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
	struct tally got;
	struct sink *s;
	int fds[2];

	(void)state;
	for (int i = 0; i < 200000; i++)
		json_array_append_new(domains, json_integer(1000000000 + i));
	json_object_set_new(object, "domains", domains);
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], CONSUMER_JSONL);
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

/* ---- joining late ---- */

/* What the session of capture_make.h gives those who join after its nth event. */
struct joiners {
	struct sink base;
	struct sink *fanout, *late[2];
	int fds[2];
	int left; /* events until they join, but for one */
};

static void join(struct joiners *j)
{
	static const enum consumer_format formats[] = { CONSUMER_JSONL, CONSUMER_RAW };

	for (int i = 0; i < 2; i++) {
		j->fds[i] = new_memfd();
		j->late[i] = new_consumer(dup(j->fds[i]), formats[i]);
		send_json(j->late[i], json_pack("{s:s}", "type", "header"));
		assert_int_equal(fanout__add(j->fanout, j->late[i]), 0);
	}
}

static int joiners__event(struct sink *base, const struct hs_event *event,
			  const struct stack *stack)
{
	struct joiners *j = (struct joiners *)base;
	int err = j->fanout->ops->event(j->fanout, event, stack);

	if (j->left-- == 0)
		join(j);
	return err;
}

static int joiners__json(struct sink *base, json_t *object)
{
	struct sink *fanout = ((struct joiners *)base)->fanout;

	return fanout->ops->json(fanout, object);
}

static int joiners__stack(struct sink *base, const struct hs_event *event,
			  const struct stack *stack)
{
	struct sink *fanout = ((struct joiners *)base)->fanout;

	return fanout->ops->stack(fanout, event, stack);
}

static int joiners__stack_again(struct sink *base, const struct hs_event *event,
				const struct stack *stack)
{
	struct sink *fanout = ((struct joiners *)base)->fanout;

	return fanout->ops->stack_again(fanout, event, stack);
}

static const struct sink_ops joiners_ops = {
	.json = joiners__json,
	.stack = joiners__stack,
	.stack_again = joiners__stack_again,
	.event = joiners__event,
};

/* The line of one block, by its id, or NULL. */
static json_t *alloc_of(const json_t *lines, uint64_t id)
{
	json_t *o;
	size_t i;

	json_array_foreach(lines, i, o)
	{
		const char *type = json_string_value(json_object_get(o, "type"));

		if (!strncmp(type, "alloc_", 6) && number(o, "id") == id)
			return o;
	}
	return NULL;
}

/* The frames of a block's stack: null if it was lost, absent if it is empty. */
static json_t *frames_of(const json_t *lines, uint64_t id)
{
	json_t *stack = json_object_get(alloc_of(lines, id), "stack"), *o;
	size_t i;

	if (json_is_null(stack))
		return stack;
	json_array_foreach(lines, i,
			   o) if (!strcmp(json_string_value(json_object_get(o, "type")), "stack") &&
				  json_equal(json_object_get(o, "id"),
					     stack)) return json_object_get(o, "frames");
	return NULL;
}

static json_t *lines_of(const char *text)
{
	json_t *lines = json_array();

	for (const char *end; (end = strchr(text, '\n')); text = end + 1)
		json_array_append_new(lines, json_loadb(text, (size_t)(end - text), 0, NULL));
	return lines;
}

static size_t count(const json_t *lines, const char *type)
{
	size_t i, n = 0;
	json_t *o;

	json_array_foreach(lines, i, o) n +=
		!strcmp(json_string_value(json_object_get(o, "type")), type);
	return n;
}

/* Joined after the nth event, the rest is as complete as if it had been there always. */
static void expect_complete(const json_t *all, const char *text, int n)
{
	json_t *lines = lines_of(text), *old, *new;
	uint64_t first = 7;

	for (uint64_t id = 6; id; id--)
		if (alloc_of(lines, id))
			first = id;
	/* Event 0 is a spawn, 1 to 6 are the allocations. */
	assert_int_equal(first, n < 6 ? n + 1 : 7);
	for (uint64_t id = first; id <= 6; id++) {
		assert_non_null(alloc_of(lines, id));
		old = frames_of(all, id);
		new = frames_of(lines, id);
		assert_true(!old == !new);
		assert_true(!old || json_equal(old, new));
	}
	assert_int_equal(count(lines, "rate"), n < 8);
	assert_true(count(lines, "thread") > 0);
	assert_int_equal(count(lines, "summary"), 1);
	json_decref(lines);
}

static void tells_late_joiners(void **state)
{
	char *direct = record(jsonl_sink__new, NULL), *text;
	json_t *all = lines_of(direct);

	(void)state;
	/* Up to the domain's end; the stacks are no events. */
	for (int n = 0; n < 11; n++) {
		struct joiners j = { .base.ops = &joiners_ops, .left = n };
		struct symbolizer *symbolizer;
		struct pipeline pipeline;
		struct text t;

		assert_int_equal(fanout__new(&j.fanout), 0);
		assert_int_equal(symbolizer__new_empty(&symbolizer), 0);
		assert_int_equal(pipeline__init(&pipeline, symbolizer, &j.base, 0, false), 0);
		teach(symbolizer);
		play(&pipeline);
		assert_true(j.left < 0);
		t = finish_file(j.late[0], j.fds[0]);
		expect_complete(all, t.bytes, n);
		free(t.bytes);
		t = finish_file(j.late[1], j.fds[1]);
		assert_int_equal(replay(t.bytes, t.n, &text), 0);
		assert_false(capture_is_cut);
		expect_complete(all, text, n);
		free(text);
		free(t.bytes);
		for (int i = 0; i < 2; i++) {
			fanout__remove(j.fanout, j.late[i]);
			sink__free(j.late[i]);
			close(j.fds[i]);
		}
		pipeline__deinit(&pipeline);
		symbolizer__free(symbolizer);
		sink__free(j.fanout);
	}
	json_decref(all);
	free(direct);
	expect_no_threads();
}

static void send_alias(struct sink *s, uint64_t id, uint64_t hash, uint32_t stack)
{
	union record r;

	make__alloc(&r, id, hash);
	send_event(s, &r, &stacks[stack]);
}

/* In a raw capture a stack is a hash: each is explained, and again when it changes. */
static void explains_hashes(void **state)
{
	static const uint32_t expected[] = { 1, 1, 2, 2, 1 };
	int fd = new_memfd();
	struct sink *s = new_consumer(dup(fd), CONSUMER_RAW);
	json_t *lines;
	struct text t;
	char *text;

	(void)state;
	send_alias(s, 1, 100, 1);
	send_alias(s, 2, 200, 1);
	send_alias(s, 3, 100, 2);
	send_alias(s, 4, 100, 2);
	send_alias(s, 5, 100, 1);
	t = finish_file(s, fd);
	assert_int_equal(replay(t.bytes, t.n, &text), 0);
	lines = lines_of(text);
	assert_int_equal(count(lines, "stack"), 2);
	for (uint64_t id = 1; id <= 5; id++)
		assert_int_equal(number(alloc_of(lines, id), "stack"), expected[id - 1]);
	assert_int_equal(json_array_size(frames_of(lines, 5)), 2);
	json_decref(lines);
	free(text);
	free(t.bytes);
	sink__free(s);
	close(fd);
	expect_no_threads();
}

/* ---- outputs that fail ---- */

/* Events and flushes until the consumer has noticed. */
static void send_until_error(struct sink *s)
{
	for (int ms = 0; !consumer__error(s); ms++) {
		assert_true(ms < PATIENCE_MS);
		for (uint64_t id = 1; id <= 20; id++)
			send_alloc(s, id, (uint32_t)id);
		flush(s);
		sleep_ms(1);
	}
}

static void survives_closed_readers(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_DFL);
	for (int kind = 0; kind < 4; kind++) {
		uint64_t dropped;
		struct sink *s;
		int fds[2], done;

		if (kind < 2)
			assert_int_equal(pipe(fds), 0);
		else
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		s = new_consumer(fds[1], kind % 2 ? CONSUMER_RAW : CONSUMER_JSONL);
		send_alloc(s, 1, 1);
		flush(s);
		expect_ready(fds[0], POLLIN);
		close(fds[0]);
		send_until_error(s);
		assert_true(consumer__error(s) == -EPIPE || consumer__error(s) == -ECONNRESET);
		/* From then on everything is thrown away, and the queue does not fill. */
		dropped = consumer__dropped(s);
		for (uint64_t id = 1; id <= 10000; id++)
			send_alloc(s, id, 1);
		send_stack(s, 3);
		send_rate(s, 1, 1);
		send_json(s, summary());
		flush(s);
		assert_int_equal(consumer__dropped(s), dropped);
		assert_int_equal(consumer__queued(s), 0);
		done = consumer__finish(s);
		expect_ready(done, POLLIN);
		sink__free(s);
	}
	expect_no_threads();
}

static void refuses_bad_descriptors(void **state)
{
	struct sink *s = new_consumer(-1, CONSUMER_JSONL);
	int fds[2];

	(void)state;
	send_until_error(s);
	assert_int_equal(consumer__error(s), -EBADF);
	sink__free(s);
	/* The wrong end of a pipe is not written to, though it could be opened again. */
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(dup(fds[0]), CONSUMER_JSONL);
	send_until_error(s);
	assert_int_equal(consumer__error(s), -EBADF);
	assert_false(is_ready(fds[0]));
	sink__free(s);
	close(fds[0]);
	close(fds[1]);
	expect_no_threads();
}

/* A file system of 256 KiB that goes away with this process. */
static void mount_small(char *path)
{
	assert_non_null(mkdtemp(path));
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount("none", "/", "", MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", path, "tmpfs", 0, "size=256k"), 0);
}

static void leaves_whole_lines_on_a_full_disk(void **state)
{
	char path[] = "/tmp/heapsonde-test.XXXXXX", name[64], *replayed;
	struct tally got;
	struct text t;
	struct sink *s;
	int fd;

	(void)state;
	if (geteuid())
		skip();
	mount_small(path);
	snprintf(name, sizeof(name), "%s/out", path);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	s = new_consumer(dup(fd), CONSUMER_JSONL);
	send_until_error(s);
	assert_int_equal(consumer__error(s), -ENOSPC);
	t = finish_file(s, fd);
	assert_in_range(t.n, 256 * 1024 - 300, 256 * 1024);
	/* More was written at first than is there. */
	assert_in_range(consumer__written(s) - t.n, 0, 300);
	got = tally(&t); /* every line is whole */
	assert_true(got.allocs > 1000);
	tally__free(&got);
	free(t.bytes);
	sink__free(s);

	assert_int_equal(ftruncate(fd, 0), 0);
	lseek(fd, 0, SEEK_SET);
	s = new_consumer(dup(fd), CONSUMER_RAW);
	send_until_error(s);
	assert_int_equal(consumer__error(s), -ENOSPC);
	t = finish_file(s, fd);
	assert_int_equal(replay(t.bytes, t.n, &replayed), 0);
	assert_int_equal(replayed[strlen(replayed) - 1], '\n');
	free(replayed);
	free(t.bytes);
	sink__free(s);
	close(fd);
	assert_int_equal(umount(path), 0);
	rmdir(path);
	expect_no_threads();
}

/* Only what we have written ourselves is cut. */
static void cuts_its_own_only(void **state)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct text t;
	struct sink *s;

	(void)state;
	/* Limits within, at the end of, and after the first line, which is the thread's. */
	for (rlim_t more = 0; more <= 400; more += 20) {
		const struct rlimit limit = { 14 + more, RLIM_INFINITY };
		char path[] = "/tmp/heapsonde-test.XXXXXX";
		int fd = mkstemp(path), file, done;

		assert_true(fd >= 0);
		file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		unlink(path);
		assert_int_equal(write(fd, "no newline yet", 14), 14);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		s = new_consumer(file, CONSUMER_JSONL);
		for (uint64_t id = 1; id <= 10; id++)
			send_alloc(s, id, 0);
		done = consumer__finish(s);
		expect_ready(done, POLLIN);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
		assert_int_equal(consumer__error(s), -EFBIG);
		t = finish_file(s, fd);
		assert_in_range(t.n, 14, 14 + more);
		assert_memory_equal(t.bytes, "no newline yet", 14);
		assert_true(t.n == 14 || t.bytes[t.n - 1] == '\n');
		assert_true(t.n + 250 > 14 + more);
		free(t.bytes);
		sink__free(s);
		close(fd);
	}
	expect_no_threads();
}

/* A file that goes on behind what we have written is not cut. */
static void cuts_ends_only(void **state)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	const struct rlimit limit = { 100, RLIM_INFINITY };
	static char old[10000];
	int fd = new_tmpfile();
	struct sink *s;
	struct text t;

	(void)state;
	memset(old, 'x', sizeof(old));
	assert_int_equal(write(fd, old, sizeof(old)), sizeof(old));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	lseek(fd, 0, SEEK_SET);
	s = new_consumer(dup(fd), CONSUMER_JSONL);
	for (uint64_t id = 1; id <= 10; id++)
		send_alloc(s, id, 0);
	expect_ready(consumer__finish(s), POLLIN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(consumer__error(s), -EFBIG);
	t = finish_file(s, fd);
	assert_int_equal(t.n, sizeof(old));
	assert_int_equal(t.bytes[100], 'x');
	free(t.bytes);
	sink__free(s);
	close(fd);
	expect_no_threads();
}

/* Freed at any moment, a file has whole lines. */
static void is_given_up_between_lines(void **state)
{
	(void)state;
	for (int round = 0; round < 100; round++) {
		int fd = new_memfd();
		struct sink *s = new_consumer(dup(fd), CONSUMER_JSONL);
		struct text t = { NULL };
		struct tally got;

		for (uint64_t id = 1; id <= (uint64_t)(20 * round); id++)
			send_alloc(s, id, (uint32_t)(id % STACKS));
		flush(s);
		sink__free(s);
		expect_no_threads();
		lseek(fd, 0, SEEK_SET);
		while (read_some(fd, &t, 65536))
			;
		got = tally(&t);
		tally__free(&got);
		free(t.bytes);
		close(fd);
	}
}

/* ---- outputs that hang ---- */

static void gives_up_pipes_and_sockets(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct text t = { NULL };
		struct sink *s;
		int fds[2], done;

		if (kind < 2)
			assert_int_equal(pipe(fds), 0);
		else
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		s = new_consumer(fds[1], CONSUMER_JSONL);
		fill_with_allocs(s);
		while (!consumer__written(s))
			sleep_ms(1);
		if (kind % 2) {
			done = consumer__finish(s);
			assert_false(is_ready(done));
		}
		sink__free(s);
		/* The thread ends, and with it the other end: no more than was there. */
		expect_no_threads();
		t = read_all(fds[0]);
		assert_true(t.n > 0 && t.n < QUEUE / 2);
		free(t.bytes);
		close(fds[0]);
	}
}

/* A write that nothing interrupts: to a terminal that nobody reads. */
static void leaves_stuck_threads_behind(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave, done;
	pid_t tids[4];
	struct sink *s;

	(void)state;
	assert_true(master >= 0);
	assert_int_equal(grantpt(master) || unlockpt(master), 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	s = new_consumer(slave, CONSUMER_JSONL);
	fill_with_allocs(s);
	expect_ready(master, POLLIN);
	done = consumer__finish(s);
	sleep_ms(50);
	assert_false(is_ready(done));
	assert_int_equal(other_threads(tids, 4), 1);
	sink__free(s);
	sleep_ms(50);
	assert_int_equal(other_threads(tids, 4), 1);
	/* When the write returns the thread goes. */
	close(master);
	expect_no_threads();
}

/* Signals are for the others. */
static void blocks_signals(void **state)
{
	char path[64], line[256] = "";
	struct sink *s;
	pid_t tid;
	int fds[2];
	FILE *f;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], CONSUMER_JSONL);
	assert_int_equal(other_threads(&tid, 1), 1);
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && strncmp(line, "SigBlk:", 7))
		;
	fclose(f);
	/* All of 1 to 31 but KILL and STOP, which cannot be. */
	assert_int_equal(strtoull(line + 7, NULL, 16) & 0x7fffffff,
			 0x7fffffff & ~(1u << (SIGKILL - 1) | 1u << (SIGSTOP - 1)));
	sink__free(s);
	close(fds[0]);
	expect_no_threads();
}

/* ---- several as one ---- */

struct counter {
	struct sink base;
	int n, answer;
};

static int counter__count(struct sink *s)
{
	((struct counter *)s)->n++;
	return ((struct counter *)s)->answer;
}

static int counter__json(struct sink *s, json_t *object)
{
	(void)object;
	return counter__count(s);
}

static int counter__event(struct sink *s, const struct hs_event *event, const struct stack *stack)
{
	(void)event;
	(void)stack;
	return counter__count(s);
}

static int counter__thread(struct sink *s, uint32_t tid, uint32_t domain, uint64_t time_ns)
{
	(void)tid;
	(void)domain;
	(void)time_ns;
	return counter__count(s);
}

static const struct sink_ops all_ops = {
	.json = counter__json,
	.stack = counter__event,
	.stack_again = counter__event,
	.event = counter__event,
	.thread = counter__thread,
	.flush = counter__count,
};

/* Without what may be NULL. */
static const struct sink_ops few_ops = {
	.json = counter__json,
	.stack = counter__event,
	.event = counter__event,
	.flush = counter__count,
};

static void tells_all(struct sink *f, int expected)
{
	assert_int_equal(f->ops->json(f, NULL), expected);
	assert_int_equal(f->ops->stack(f, NULL, NULL), expected);
	assert_int_equal(f->ops->stack_again(f, NULL, NULL), expected);
	assert_int_equal(f->ops->event(f, NULL, NULL), expected);
	assert_int_equal(f->ops->thread(f, 1, 2, 3), expected);
	assert_int_equal(f->ops->flush(f), expected);
}

static void fans_out(void **state)
{
	struct counter a = { { &all_ops }, 0, 0 }, b = { { &few_ops }, 0, 0 };
	struct counter many[20];
	struct sink *f;

	(void)state;
	assert_int_equal(fanout__new(&f), 0);
	tells_all(f, 0);
	assert_int_equal(fanout__add(f, &a.base), 0);
	assert_int_equal(fanout__add(f, &b.base), 0);
	tells_all(f, 0);
	assert_int_equal(a.n, 6);
	assert_int_equal(b.n, 4);
	/* One sink's error does not concern the next. */
	a.answer = -EIO;
	tells_all(f, -EIO);
	assert_int_equal(b.n, 8);
	fanout__remove(f, &a.base);
	fanout__remove(f, &a.base);
	tells_all(f, 0);
	assert_int_equal(a.n, 12);
	assert_int_equal(b.n, 12);
	for (size_t i = 0; i < COUNT(many); i++) {
		many[i] = (struct counter){ { &all_ops }, 0, 0 };
		assert_int_equal(fanout__add(f, &many[i].base), 0);
	}
	for (size_t i = 0; i < COUNT(many); i += 2)
		fanout__remove(f, &many[i].base);
	tells_all(f, 0);
	for (size_t i = 0; i < COUNT(many); i++)
		assert_int_equal(many[i].n, i % 2 ? 6 : 0);
	assert_int_equal(b.n, 16);
	sink__free(f);
}

static int setup(void **state)
{
	(void)state;
	make_stacks();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_what_a_plain_sink_writes),
		cmocka_unit_test(writes_to_any_descriptor),
		cmocka_unit_test(flushes),
		cmocka_unit_test(leaves_out_and_counts),
		cmocka_unit_test(tells_losses_seldom),
		cmocka_unit_test(gives_up_the_least_first),
		cmocka_unit_test(tells_rates_late),
		cmocka_unit_test(tells_the_last_loss),
		cmocka_unit_test(holds_long_summaries),
		cmocka_unit_test(tells_late_joiners),
		cmocka_unit_test(explains_hashes),
		cmocka_unit_test(survives_closed_readers),
		cmocka_unit_test(refuses_bad_descriptors),
		cmocka_unit_test(leaves_whole_lines_on_a_full_disk),
		cmocka_unit_test(cuts_its_own_only),
		cmocka_unit_test(cuts_ends_only),
		cmocka_unit_test(is_given_up_between_lines),
		cmocka_unit_test(gives_up_pipes_and_sockets),
		cmocka_unit_test(leaves_stuck_threads_behind),
		cmocka_unit_test(blocks_signals),
		cmocka_unit_test(fans_out),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
