/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of profiles: who sees which, what each may have, what is kept of those
 * that are over, and what a worker may not say.
 */
#include "tests/unit/records_make.h"

#include "user/daemon/table.h"

#define ALICE 1000u
#define BOB 1001u
#define MIB (1ull << 20)

static const struct table_limits limits = {
	.max_profiles = 3,
	.max_blocks = 1000,
	.max_memory_bytes = 100 * MIB,
};

static struct table *new_table(void)
{
	struct table *t;

	assert_int_equal(table__new(&t, &limits), 0);
	return t;
}

static struct row *add(struct table *t, uid_t uid)
{
	struct hs_error err;
	struct row *row;

	assert_int_equal(table__add(t, uid, 4711, 10, MIB, &row, &err), 0);
	return row;
}

static int say(struct table *t, struct row *row, const char *state, const char *reason)
{
	json_t *status = json_pack("{s:i, s:i, s:i, s:s, s:s?, s:[i]}", "profile", 999, "pid", 1,
				   "uid", 0, "state", state, "reason", reason, "domains", 1);
	int ret = table__update(t, row, status);

	json_decref(status);
	return ret;
}

/* A profile that has finished; its number. */
static uint32_t finished(struct table *t, uid_t uid)
{
	struct row *row = add(t, uid);
	uint32_t id = row->id;

	assert_int_equal(say(t, row, "finished", "target exited"), 0);
	return id;
}

static int find(struct table *t, uint64_t id, uid_t uid)
{
	struct hs_error err = { "" };
	struct row *row = NULL;
	int ret = table__find(t, id, uid, &row, &err);

	assert_true(ret ? err.text[0] : row && row->id == id);
	return ret;
}

static void counts_up(void **state)
{
	struct table *t = new_table();
	struct row *row;

	(void)state;
	assert_int_equal(add(t, ALICE)->id, 1);
	row = add(t, ALICE);
	assert_int_equal(row->id, 2);
	table__forget(t, row);
	assert_int_equal(add(t, BOB)->id, 3);
	assert_int_equal(table__first(t)->id, 1);
	assert_int_equal(table__first(t)->next->id, 3);
	assert_null(table__first(t)->next->next);
	assert_int_equal(table__n_alive(t), 2);
	table__free(t);
	table__free(NULL);
}

/* What one may not see looks as if it were not there. */
static void hides_others(void **state)
{
	struct hs_error hidden, missing;
	struct table *t = new_table();
	struct row *row = add(t, ALICE), *found;

	(void)state;
	assert_int_equal(find(t, 1, ALICE), 0);
	assert_int_equal(find(t, 1, 0), 0);
	assert_int_equal(find(t, 1, BOB), -ENOENT);
	table__find(t, 1, BOB, &found, &hidden);
	table__discard(t, row);
	assert_int_equal(find(t, 1, BOB), -ENOENT);
	table__find(t, 1, BOB, &found, &missing);
	assert_string_equal(hidden.text, missing.text);
	assert_string_equal(hidden.text, "no profile 1");
	assert_int_equal(find(t, 1, ALICE), -EALREADY);
	assert_int_equal(find(t, 1, 0), -EALREADY);
	assert_int_equal(find(t, 2, 0), -ENOENT);
	assert_int_equal(find(t, 0, 0), -ENOENT);
	assert_int_equal(find(t, UINT64_MAX, 0), -ENOENT);
	table__free(t);
}

static void forgets_old_ones(void **state)
{
	struct table *t = new_table();

	(void)state;
	for (uint32_t id = 1; id <= TABLE_DISCARDED_MAX + 1; id++)
		table__discard(t, add(t, ALICE));
	assert_int_equal(find(t, 1, ALICE), -ENOENT);
	assert_int_equal(find(t, 2, ALICE), -EALREADY);
	assert_int_equal(find(t, TABLE_DISCARDED_MAX + 1, ALICE), -EALREADY);
	assert_int_equal(find(t, 1, 0), -EALREADY);
	table__free(t);
}

/* ---- limits ---- */

static int try_add(struct table *t, uid_t uid, uint64_t n_blocks, uint64_t bytes, const char *word)
{
	struct hs_error err = { "" };
	struct row *row;
	int ret = table__add(t, uid, 4711, n_blocks, bytes, &row, &err);

	if (ret)
		assert_non_null(strstr(err.text, word));
	return ret;
}

static void limits_profiles(void **state)
{
	struct table *t = new_table();
	struct row *row;

	(void)state;
	add(t, ALICE);
	row = add(t, ALICE);
	add(t, ALICE);
	assert_int_equal(try_add(t, ALICE, 1, 1, "--max-profiles"), -EDQUOT);
	assert_int_equal(try_add(t, BOB, 1, 1, ""), 0);
	/* Whatever ends gives its room back. */
	table__forget(t, row);
	row = add(t, ALICE);
	assert_int_equal(say(t, row, "sampling", NULL), 0);
	assert_int_equal(try_add(t, ALICE, 1, 1, "3 of 3"), -EDQUOT);
	assert_int_equal(say(t, row, "stopped", "interrupted"), 0);
	assert_int_equal(try_add(t, ALICE, 1, 1, "3 of 3"), -EDQUOT);
	table__discard(t, row);
	row = add(t, ALICE);
	assert_int_equal(say(t, row, "finished", "target exited"), 0);
	row = add(t, ALICE);
	say(t, row, "sampling", NULL);
	table__fail(t, row);
	add(t, ALICE);
	assert_int_equal(try_add(t, ALICE, 1, 1, "3 of 3"), -EDQUOT);
	table__free(t);
}

static void limits_sums(void **state)
{
	struct table *t = new_table();

	(void)state;
	assert_int_equal(try_add(t, ALICE, 1001, 1, "--max-blocks"), -EDQUOT);
	assert_int_equal(try_add(t, ALICE, 600, 1, ""), 0);
	assert_int_equal(try_add(t, ALICE, 401, 1, "600 of 1000"), -EDQUOT);
	assert_int_equal(try_add(t, ALICE, 400, 1, ""), 0);
	assert_int_equal(try_add(t, BOB, 0, 100 * MIB + 1, "--max-memory"), -EDQUOT);
	assert_int_equal(try_add(t, BOB, 0, 60 * MIB, ""), 0);
	assert_int_equal(try_add(t, BOB, 0, 41 * MIB, "60.0 of 100.0"), -EDQUOT);
	assert_int_equal(try_add(t, BOB, 0, 40 * MIB, ""), 0);
	table__free(t);
}

static void lets_root_have_more(void **state)
{
	struct table *t = new_table();

	(void)state;
	for (int i = 0; i < TABLE_ROOT_PROFILES; i++)
		assert_int_equal(try_add(t, 0, 1 << 22, 1ull << 30, ""), 0);
	assert_int_equal(try_add(t, 0, 1, 1, "1024"), -EDQUOT);
	assert_int_equal(try_add(t, ALICE, 1, 1, ""), 0);
	table__free(t);
}

/* ---- finished ones ---- */

static void keeps_the_last_to_finish(void **state)
{
	struct table *t = new_table();
	struct row *longest = add(t, ALICE);
	uint32_t first, bobs = finished(t, BOB);

	(void)state;
	say(t, longest, "sampling", NULL);
	first = finished(t, ALICE);
	for (int i = 1; i < TABLE_FINISHED_MAX; i++)
		finished(t, ALICE);
	assert_int_equal(find(t, first, ALICE), 0);
	/* Begun first, finished last. */
	assert_int_equal(say(t, longest, "finished", "target exited"), 0);
	assert_int_equal(find(t, 1, ALICE), 0);
	assert_int_equal(find(t, first, ALICE), -EALREADY);
	assert_int_equal(find(t, first + 1, ALICE), 0);
	assert_int_equal(find(t, bobs, BOB), 0);
	assert_int_equal(table__n_alive(t), 0);
	table__free(t);
}

static void stays_finished(void **state)
{
	struct table *t = new_table();
	struct row *row = table__get(t, finished(t, ALICE));

	(void)state;
	assert_int_equal(say(t, row, "sampling", NULL), -EPROTO);
	assert_int_equal(row->state, ROW_FINISHED);
	/* Later news of its output are. */
	assert_int_equal(say(t, row, "finished", "error"), 0);
	assert_string_equal(json_string_value(json_object_get(row->status, "reason")), "error");
	table__fail(t, row);
	assert_int_equal(say(t, row, "discarded", "error"), 0);
	assert_int_equal(find(t, 1, ALICE), -EALREADY);
	table__free(t);
}

/* ---- what workers say ---- */

static json_int_t member(const json_t *status, const char *name)
{
	return json_integer_value(json_object_get(status, name));
}

static void believes_only_so_much(void **state)
{
	struct table *t = new_table();
	struct row *row = add(t, ALICE);
	json_t *none = json_pack("{s:i}", "profile", 1);

	(void)state;
	assert_int_equal(say(t, row, "flying", NULL), -EPROTO);
	assert_int_equal(table__update(t, row, none), -EPROTO);
	assert_int_equal(table__update(t, row, NULL), -EPROTO);
	assert_int_equal(row->state, ROW_STARTING);
	assert_int_equal(say(t, row, "sampling", NULL), 0);
	assert_int_equal(row->state, ROW_LIVE);
	assert_int_equal(member(row->status, "profile"), 1);
	assert_int_equal(member(row->status, "pid"), 4711);
	assert_int_equal(member(row->status, "uid"), ALICE);
	json_decref(none);
	table__free(t);
}

static void lists_by_owner(void **state)
{
	struct table *t = new_table();
	json_t *list;

	(void)state;
	say(t, add(t, ALICE), "sampling", NULL);
	say(t, add(t, BOB), "stopped", "interrupted");
	add(t, ALICE);
	finished(t, ALICE);
	list = table__list(t, ALICE);
	assert_int_equal(json_array_size(list), 2);
	assert_int_equal(member(json_array_get(list, 0), "profile"), 1);
	assert_int_equal(member(json_array_get(list, 1), "profile"), 4);
	/* Without the lists, which the row still has. */
	assert_null(json_object_get(json_array_get(list, 0), "domains"));
	assert_non_null(json_object_get(table__get(t, 1)->status, "domains"));
	json_decref(list);
	list = table__list(t, 0);
	assert_int_equal(json_array_size(list), 3);
	json_decref(list);
	list = table__list(t, 1234);
	assert_int_equal(json_array_size(list), 0);
	json_decref(list);
	table__free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_up),
		cmocka_unit_test(hides_others),
		cmocka_unit_test(forgets_old_ones),
		cmocka_unit_test(limits_profiles),
		cmocka_unit_test(limits_sums),
		cmocka_unit_test(lets_root_have_more),
		cmocka_unit_test(keeps_the_last_to_finish),
		cmocka_unit_test(stays_finished),
		cmocka_unit_test(believes_only_so_much),
		cmocka_unit_test(lists_by_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
