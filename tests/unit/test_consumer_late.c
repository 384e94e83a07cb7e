/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Consumers that join late: stacks and threads are told to them before their first
 * use, however late, and each hash of a raw capture is explained.
 */
#include "tests/unit/capture_make.h"
#include "tests/unit/consumer_tally.h"

/* What the session of capture_make.h gives those who join after its nth event. */
struct joiners {
	struct sink base;
	struct sink *fanout, *late[2];
	int fds[2];
	int left; /* events until they join, but for one */
};

static void join(struct joiners *j)
{
	static const enum sink_format formats[] = { SINK_JSONL, SINK_RAW };

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
	struct sink *s = new_consumer(dup(fd), SINK_RAW);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_late_joiners),
		cmocka_unit_test(explains_hashes),
	};

	return cmocka_run_group_tests(tests, setup_stacks, NULL);
}
