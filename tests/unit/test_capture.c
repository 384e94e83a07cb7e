/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw captures: replayed, a capture gives the JSON lines that the session would
 * have written at once, byte for byte; cut anywhere, it gives the first of them.
 */
#include "tests/unit/capture_make.h"

#include "user/sinks/json.h"

static void expect_replay(const char *capture, size_t size, const char *expected)
{
	char *text;

	assert_int_equal(replay(capture, size, &text), 0);
	assert_false(capture_is_cut);
	assert_string_equal(text, expected);
	free(text);
}

static void replays_byte_for_byte(void **state)
{
	char *direct = record(jsonl_sink__new, NULL), *capture;
	size_t size, n_lines = 0;

	(void)state;
	capture = record(raw_sink__new, &size);
	assert_int_equal(size % 8, 0);
	expect_replay(capture, size, direct);
	/* All but the exit record, which has no line, and the stacks told again; and a
	 * line for each of the two threads. */
	for (const char *c = direct; *c; c++)
		n_lines += *c == '\n';
	assert_int_equal(n_lines, 19);
	free(capture);
	free(direct);
}

static int accept_json(void *ctx, json_t *object)
{
	(void)ctx;
	(void)object;
	return 0;
}

static int accept_event(void *ctx, const struct hs_event *event)
{
	(void)ctx;
	(void)event;
	return 0;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* A reader's symbolizer knows of each frame what the writer's knew. */
static void restores_locations(void **state)
{
	static const uint64_t slots[] = { SLOT_INLINED, SLOT_NAMELESS, SLOT_SYMBOL, SLOT_UNKNOWN };
	struct capture_reader reader = { .json = accept_json, .event = accept_event };
	struct symbolizer *original;
	size_t size;
	char *capture = record(raw_sink__new, &size);
	FILE *f = fmemopen(capture, size, "r");

	(void)state;
	assert_int_equal(symbolizer__new_empty(&original), 0);
	assert_int_equal(symbolizer__new_empty(&reader.symbolizer), 0);
	teach(original);
	assert_int_equal(capture__read(f, &reader, &capture_err), 0);
	for (size_t i = 0; i < COUNT(slots); i++) {
		const struct hs_location *want, *got;
		int n = symbolizer__resolve(original, slots[i], &want);

		assert_int_equal(symbolizer__resolve(reader.symbolizer, slots[i], &got), n);
		for (; n; n--, want++, got++) {
			assert_true(same_text(got->function, want->function));
			assert_true(same_text(got->file, want->file));
			assert_int_equal(got->line, want->line);
			assert_int_equal(got->end_line, want->end_line);
			assert_int_equal(got->start_char, want->start_char);
			assert_int_equal(got->end_char, want->end_char);
			assert_int_equal(got->end_offset, want->end_offset);
			assert_int_equal(got->is_inlined, want->is_inlined);
		}
	}
	symbolizer__free(original);
	symbolizer__free(reader.symbolizer);
	fclose(f);
	free(capture);
}

/* The kinds of chunks, in order: every frame's names before its first stack, once. */
static void writes_names_once(void **state)
{
	static const char expected[] = "json record frame frame record record frame frame record "
				       "record record record record record record record record "
				       "record record json record record record record json ";
	static const char *const names[] = { "?", "json ", "record ", "frame " };
	char kinds[sizeof(expected) + 64] = "", *capture;
	struct raw_chunk chunk;
	size_t size;

	(void)state;
	capture = record(raw_sink__new, &size);
	for (size_t at = sizeof(struct raw_header); at < size;
	     at += sizeof(chunk) + (chunk.size_bytes + 7) / 8 * 8) {
		memcpy(&chunk, capture + at, sizeof(chunk));
		assert_in_range(chunk.kind, RAW_JSON, RAW_FRAME);
		assert_true(strlen(kinds) < sizeof(expected));
		strcat(kinds, names[chunk.kind]);
	}
	assert_string_equal(kinds, expected);
	free(capture);
}

/* A frame about which nothing was known at first. */
static void replays_names_found_later(void **state)
{
	static const struct hs_location name = { .function = "Late.f" };
	static const uint64_t frames[] = { SLOT_UNKNOWN, SLOT_SYMBOL };
	struct lane lanes[2];
	char *direct, *capture;
	size_t size;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct pipeline *p = &lanes[i].pipeline;

		lane__begin(&lanes[i], i ? raw_sink__new : jsonl_sink__new);
		tell_stack(p, 100, frames, 1);
		assert_int_equal(symbolizer__learn(p->symbolizer, SLOT_UNKNOWN, &name, 1), 0);
		tell_stack(p, 200, frames, 2);
	}
	direct = lane__end(&lanes[0], NULL);
	capture = lane__end(&lanes[1], &size);
	assert_non_null(strstr(direct, "Late.f"));
	expect_replay(capture, size, direct);
	free(capture);
	free(direct);
}

/* The summary of as many domains as the kernel's table holds. */
static void holds_long_summaries(void **state)
{
	json_t *domains = json_array();
	struct lane lanes[2];
	char *direct, *capture;
	size_t size;

	(void)state;
	for (int i = 0; i < 8192; i++) {
		struct hs_counts counts = { i, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX };
		json_t *o = json_pack("{s:i, s:s}", "domain", i, "state", "terminated");

		assert_int_equal(json__add_counts(o, "", &counts), 0);
		assert_int_equal(json__add_counts(o, "base_", &counts), 0);
		json_array_append_new(domains, o);
	}
	for (int i = 0; i < 2; i++) {
		lane__begin(&lanes[i], i ? raw_sink__new : jsonl_sink__new);
		tell_json(&lanes[i].pipeline, json_pack("{s:O}", "domains", domains));
	}
	direct = lane__end(&lanes[0], NULL);
	capture = lane__end(&lanes[1], &size);
	expect_replay(capture, size, direct);
	free(capture);
	free(direct);
	json_decref(domains);
}

static void replays_what_is_left(void **state)
{
	char *capture, *whole, *text, *last = strdup("");
	size_t size, boundary = sizeof(struct raw_header);
	struct raw_chunk chunk;

	(void)state;
	capture = record(raw_sink__new, &size);
	assert_int_equal(replay(capture, size, &whole), 0);
	for (size_t n = 0; n <= size; n++) {
		int ret = replay(capture, n, &text);

		if (!n) {
			assert_int_equal(ret, -EBADMSG);
			assert_true(*capture_err.text);
			assert_string_equal(text, "");
			free(text);
			continue;
		}
		assert_int_equal(ret, 0);
		assert_string_equal(capture_err.text, "");
		/* Between two chunks it may as well have ended. */
		assert_int_equal(capture_is_cut, n != boundary);
		/* Whole lines, no fewer than before, the first ones of all. */
		assert_memory_equal(text, whole, strlen(text));
		assert_true(!*text || text[strlen(text) - 1] == '\n');
		assert_true(strlen(text) >= strlen(last));
		if (capture_is_cut)
			assert_string_equal(text, last);
		free(last);
		last = text;
		if (n == boundary && n < size) {
			memcpy(&chunk, capture + n, sizeof(chunk));
			boundary += sizeof(chunk) + (chunk.size_bytes + 7) / 8 * 8;
		}
	}
	assert_int_equal(boundary, size);
	assert_string_equal(last, whole);
	free(last);
	free(whole);
	free(capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replays_byte_for_byte),
		cmocka_unit_test(restores_locations),
		cmocka_unit_test(writes_names_once),
		cmocka_unit_test(replays_names_found_later),
		cmocka_unit_test(holds_long_summaries),
		cmocka_unit_test(replays_what_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
