/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of stacks: one entry and one number for each list of frames, whatever
 * the kernel calls it and however often it sends it; names from the symbolizer.
 */
#include "tests/unit/records_make.h"
#include "tests/unit/heap_bytes.h"

#include "user/track/stacks.h"

static struct symbolizer *symbolizer;
static struct stack_table *table;

static int setup(void **state)
{
	(void)state;
	return symbolizer__new_empty(&symbolizer) || stack_table__new(&table, symbolizer);
}

static int teardown(void **state)
{
	(void)state;
	stack_table__free(table);
	symbolizer__free(symbolizer);
	return 0;
}

static const struct stack *learn(uint64_t hash, const uint64_t *frames, uint32_t depth,
				 bool expect_new)
{
	const struct stack *stack = NULL;
	bool is_new = !expect_new;
	union record r;

	make__stack(&r, hash, frames, depth);
	assert_int_equal(stack_table__learn(table, &r.stack, &stack, &is_new), 0);
	assert_non_null(stack);
	assert_int_equal(is_new, expect_new);
	/* The table keeps what it needs. */
	memset(&r, 0xff, sizeof(r));
	assert_int_equal(stack->depth, depth);
	for (uint32_t i = 0; i < depth; i++)
		assert_int_equal(stack->frames[i].slot, frames[i]);
	return stack;
}

static const uint64_t some[] = { 0x1000, 0x2002, 0x3000 };
static const uint64_t reversed[] = { 0x3000, 0x2002, 0x1000 };

static void numbers_in_order(void **state)
{
	const struct stack *first, *second, *third, *fourth;

	(void)state;
	assert_null(stack_table__find(table, 100));
	first = learn(100, some, 3, true);
	second = learn(200, reversed, 3, true);
	/* The beginning of another stack is a stack of its own. */
	third = learn(300, some, 2, true);
	fourth = learn(UINT64_MAX, some + 1, 2, true);
	assert_int_equal(first->id, 1);
	assert_int_equal(second->id, 2);
	assert_int_equal(third->id, 3);
	assert_int_equal(fourth->id, 4);
	assert_ptr_equal(stack_table__find(table, 100), first);
	assert_ptr_equal(stack_table__find(table, 200), second);
	assert_ptr_equal(stack_table__find(table, 300), third);
	assert_ptr_equal(stack_table__find(table, UINT64_MAX), fourth);
	assert_null(stack_table__find(table, 0));
	assert_null(stack_table__find(table, 101));
	assert_null(stack_table__find(table, 100 + (1ull << 32)));
}

static void knows_equal_frames(void **state)
{
	const struct stack *first = learn(100, some, 3, true);

	(void)state;
	/* Sent again; under another hash; and that again. */
	assert_ptr_equal(learn(100, some, 3, false), first);
	assert_ptr_equal(learn(200, some, 3, false), first);
	assert_ptr_equal(learn(200, some, 3, false), first);
	assert_ptr_equal(stack_table__find(table, 100), first);
	assert_ptr_equal(stack_table__find(table, 200), first);
	/* No number was spent. */
	assert_int_equal(learn(300, reversed, 3, true)->id, 2);
}

/* Hashes come from the target: the last record says what one stands for. */
static void believes_the_last_record(void **state)
{
	const struct stack *first = learn(100, some, 3, true);
	const struct stack *second = learn(100, reversed, 3, true);

	(void)state;
	assert_int_equal(second->id, 2);
	assert_ptr_equal(stack_table__find(table, 100), second);
	assert_ptr_equal(learn(100, some, 3, false), first);
	assert_ptr_equal(stack_table__find(table, 100), first);
	assert_int_equal(first->id, 1);
	assert_int_equal(first->frames[0].slot, some[0]);
}

static void has_names(void **state)
{
	static const struct hs_location locations[] = {
		{ .function = "A.f", .file = "a.ml", .line = 1, .is_inlined = true },
		{ .function = "A.g", .file = "a.ml", .line = 2 },
	};
	const struct stack *first, *second;

	(void)state;
	assert_int_equal(symbolizer__learn(symbolizer, some[1], locations, 2), 0);
	first = learn(100, some, 3, true);
	/* Never none, even if nothing is known. */
	assert_int_equal(first->frames[0].n_locations, 1);
	assert_null(first->frames[0].locations[0].function);
	assert_null(first->frames[0].locations[0].file);
	assert_int_equal(first->frames[1].n_locations, 2);
	assert_string_equal(first->frames[1].locations[0].function, "A.f");
	assert_true(first->frames[1].locations[0].is_inlined);
	assert_string_equal(first->frames[1].locations[1].function, "A.g");
	assert_int_equal(first->frames[1].locations[1].line, 2);
	/* Names of later stacks do not change those of earlier ones. */
	assert_int_equal(symbolizer__learn(symbolizer, some[0], locations + 1, 1), 0);
	second = learn(200, some, 1, true);
	assert_string_equal(second->frames[0].locations[0].function, "A.g");
	assert_null(first->frames[0].locations[0].function);
}

static void holds_many(void **state)
{
	static uint64_t frames[SONDE_STACK_MAX];
	const struct stack *longest;

	(void)state;
	for (uint32_t i = 0; i < SONDE_STACK_MAX; i++)
		frames[i] = 8 * i;
	longest = learn(1, frames, SONDE_STACK_MAX, true);
	for (uint64_t i = 2; i <= 20000; i++) {
		frames[0] = i << 16;
		assert_int_equal(learn(i, frames, (uint32_t)(i % 64) + 1, true)->id, i);
	}
	for (uint64_t i = 2; i <= 20000; i++) {
		const struct stack *s = stack_table__find(table, i);

		assert_non_null(s);
		assert_int_equal(s->id, i);
		assert_int_equal(s->frames[0].slot, i << 16);
	}
	assert_ptr_equal(stack_table__find(table, 1), longest);
	assert_int_equal(longest->frames[SONDE_STACK_MAX - 1].slot, 8 * (SONDE_STACK_MAX - 1));
	stack_table__free(NULL);
}

/* What the table holds, and what it may take for it: two hash tables besides. */
#define ROOM_BYTES ((size_t)256 << 20)
#define TAKEN_MAX_BYTES (ROOM_BYTES + ROOM_BYTES / 4 + ((size_t)256 << 20))
#define KEYS_MAX (1u << 19)

/*
 * Stacks that a target makes up: memory is bounded, what is known stays, and what is beyond is
 * unknown, also if it goes by a hash that meant another stack.
 */
static void has_no_room(void **state)
{
	const struct stack *first = learn(1, some, 3, true), *stack = first;
	size_t before = heap_bytes();
	uint64_t frames[1024] = { 0 };
	union record r;
	bool is_new;
	uint64_t i;

	(void)state;
	for (i = 2; stack && i < 1000000; i++) {
		frames[0] = i << 16;
		make__stack(&r, i, frames, i % 2 ? 1 : 1024);
		assert_int_equal(stack_table__learn(table, &r.stack, &stack, &is_new), 0);
	}
	assert_null(stack);
	assert_in_range(heap_bytes() - before, ROOM_BYTES / 4 * 3, TAKEN_MAX_BYTES);
	assert_null(stack_table__find(table, i - 1));
	assert_false(is_new);
	/* A hash that is known may come to mean another stack. */
	make__stack(&r, 2, some, 3);
	assert_int_equal(stack_table__learn(table, &r.stack, &stack, &is_new), 0);
	assert_ptr_equal(stack_table__find(table, 2), first);
	frames[0] = 8;
	make__stack(&r, 2, frames, 1);
	assert_int_equal(stack_table__learn(table, &r.stack, &stack, &is_new), 0);
	assert_null(stack_table__find(table, 2));
	assert_ptr_equal(stack_table__find(table, 1), first);
}

/* The same stack by ever new hashes. */
static void has_no_room_for_names(void **state)
{
	const struct stack *stack = learn(1, some, 3, true);
	size_t before = heap_bytes();
	union record r;
	bool is_new;

	(void)state;
	for (uint64_t i = 2; i <= KEYS_MAX + 1000; i++) {
		make__stack(&r, i, some, 3);
		assert_int_equal(stack_table__learn(table, &r.stack, &stack, &is_new), 0);
		assert_non_null(stack);
	}
	assert_in_range(heap_bytes() - before, 0, TAKEN_MAX_BYTES);
	assert_ptr_equal(stack_table__find(table, KEYS_MAX), stack);
	assert_null(stack_table__find(table, KEYS_MAX + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(numbers_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(knows_equal_frames, setup, teardown),
		cmocka_unit_test_setup_teardown(believes_the_last_record, setup, teardown),
		cmocka_unit_test_setup_teardown(has_names, setup, teardown),
		cmocka_unit_test_setup_teardown(holds_many, setup, teardown),
		cmocka_unit_test_setup_teardown(has_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(has_no_room_for_names, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
