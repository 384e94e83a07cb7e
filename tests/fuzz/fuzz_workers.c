/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a worker tells the supervisor, which may be anything if its target has taken it over:
 * the table of profiles, and the metrics that are made of it.
 *
 * In:   lines of JSON: statuses for the table; one with a member "targets" is a snapshot.
 * Out:  user/daemon/table.h, metrics_view.h, metrics_text.h.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "user/daemon/metrics_text.h"
#include "user/daemon/metrics_view.h"
#include "user/daemon/table.h"

#define LINES_MAX 64

/* Each line is a comment, or a name and a value; nothing in a label ends it early. */
static void check_text(const char *text, size_t n)
{
	CHECK(strlen(text) == n);
	for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
		CHECK(end > text);
		CHECK(!strncmp(text, "# ", 2) || !strncmp(text, "heapsonde_", 10));
		for (const char *p = text; p < end; p++)
			CHECK((unsigned char)*p >= ' ');
	}
	CHECK(!*text);
}

static void show(struct metrics_view *view, const json_t *snapshot)
{
	char *text;
	size_t n;

	CHECK(!metrics_view__update(view, snapshot));
	CHECK(!metrics_text__render(view, &text, &n));
	CHECK(n <= 4u << 20);
	check_text(text, n);
	free(text);
}

/* To the last profile, or to a new one. */
static void tell(struct table *table, const json_t *status)
{
	struct row *row = table__first(table), *next;
	struct hs_error err;
	json_t *list;

	while (row && row->next)
		row = row->next;
	if (!row)
		CHECK(!table__add(table, 0, 1, 1, 1, &row, &err));
	next = row;
	table__update(table, next, status);
	list = table__list(table, 0);
	CHECK(list);
	json_decref(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct table_limits limits = { 8, 1 << 20, 1 << 30 };
	const char *at = (const char *)data, *end = at + size;
	struct metrics_view view = { 0 };
	struct table *table;

	CHECK(!table__new(&table, &limits));
	for (int i = 0; i < LINES_MAX && at < end; i++) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((nl ? nl : end) - at);
		json_t *object = json_loadb(at, n, JSON_REJECT_DUPLICATES, NULL);

		if (json_object_get(object, "targets"))
			show(&view, object);
		else if (json_is_object(object))
			tell(table, object);
		json_decref(object);
		at += n + 1;
	}
	metrics_view__deinit(&view);
	table__free(table);
	return 0;
}
