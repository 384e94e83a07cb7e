/* SPDX-License-Identifier: BSD-2-Clause */
/* Several sinks as one: each is told everything, whatever another one answers. */
#include "tests/unit/records_make.h"

#include "user/sinks/consumer.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fans_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
