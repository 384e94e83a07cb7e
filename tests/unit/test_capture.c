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
	/* All but the exit record, which has no line, and the stacks told again. */
	for (const char *c = direct; *c; c++)
		n_lines += *c == '\n';
	assert_int_equal(n_lines, 16);
	free(capture);
	free(direct);
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

		if (n < sizeof(struct raw_header)) {
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
		cmocka_unit_test(replays_names_found_later),
		cmocka_unit_test(holds_long_summaries),
		cmocka_unit_test(replays_what_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
