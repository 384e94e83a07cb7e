/* SPDX-License-Identifier: BSD-2-Clause */
/* Folded stacks and speedscope files, from a capture made by hand. */
#include "tests/unit/export_made.h"

static void expect_folded(void (*play)(struct pipeline *p), enum rows_metric metric,
			  const char *expected)
{
	size_t size;
	char *text = made__export(&export_folded, play, metric, &size);

	assert_string_equal(text, expected);
	free(text);
}

static void folds(void **state)
{
	(void)state;
	/* Blocks 1 and 2 have one line, though their domains differ. */
	expect_folded(made__play, ROWS_ALLOC,
		      "(no OCaml frame) 4\n"
		      "(stack lost) 4\n"
		      "caml_main;" NAME_HARD_FOLDED ";Stdlib__List.map 76\n"
		      "caml_main;(unknown) 20\n");
	expect_folded(made__play, ROWS_LIVE,
		      "(no OCaml frame) 4\n"
		      "(stack lost) 4\n"
		      "caml_main;" NAME_HARD_FOLDED ";Stdlib__List.map 64\n"
		      "caml_main;(unknown) 20\n");
	expect_folded(made__play, ROWS_PROMOTED, "caml_main;(unknown) 20\n");
	expect_folded(made__play_nothing, ROWS_ALLOC, "");
}

static void folds_huge_numbers(void **state)
{
	size_t size;
	char *text = made__export(&export_folded, made__play_huge, ROWS_ALLOC, &size);
	double words;

	(void)state;
	/* All digits, without an exponent. */
	assert_int_equal(strspn(text + strlen("(no OCaml frame) "), "0123456789"), 26);
	assert_int_equal(sscanf(text, "(no OCaml frame) %lf", &words), 1);
	assert_true(words > 9.2e25 && words < 9.3e25);
	free(text);
}

/* ---- speedscope ---- */

static json_t *scope_of(void (*play)(struct pipeline *p), enum rows_metric metric)
{
	size_t size;
	char *text = made__export(&export_speedscope, play, metric, &size);
	json_error_t err;
	json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &err);

	if (!object)
		fail_msg("%s at %d: %s", err.text, err.position, text);
	free(text);
	return object;
}

static json_t *profile(json_t *scope, size_t k)
{
	return json_array_get(json_object_get(scope, "profiles"), k);
}

static const char *string(json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

/* A stack as "outermost;…;innermost", of frame names. */
static void join(json_t *scope, json_t *sample, char *text, size_t room)
{
	json_t *frames = json_object_get(json_object_get(scope, "shared"), "frames"), *index;
	size_t i, used = 0;

	json_array_foreach(sample, i, index) used += (size_t)snprintf(
		text + used, room - used, "%s%s", i ? ";" : "",
		string(json_array_get(frames, (size_t)json_integer_value(index)), "name"));
}

static void expect_profile(json_t *scope, size_t k, const char *const *stacks, const int *bytes,
			   size_t n)
{
	json_t *p = profile(scope, k), *samples = json_object_get(p, "samples");
	json_t *weights = json_object_get(p, "weights");
	json_int_t total = 0;
	char text[200];

	assert_string_equal(string(p, "type"), "sampled");
	assert_string_equal(string(p, "unit"), "bytes");
	assert_int_equal(json_array_size(samples), n);
	assert_int_equal(json_array_size(weights), n);
	for (size_t i = 0; i < n; i++) {
		join(scope, json_array_get(samples, i), text, sizeof(text));
		assert_string_equal(text, stacks[i]);
		assert_int_equal(json_integer_value(json_array_get(weights, i)), bytes[i]);
		total += bytes[i];
	}
	assert_int_equal(json_integer_value(json_object_get(p, "startValue")), 0);
	assert_int_equal(json_integer_value(json_object_get(p, "endValue")), total);
}

static void has_profiles(void **state)
{
	static const char *const stacks[] = { "(no OCaml frame)", "(stack lost)",
					      "caml_main;" NAME_HARD ";Stdlib__List.map",
					      "caml_main;(unknown)" };
	static const int allocated[] = { 32, 32, 608, 160 }, live[] = { 32, 32, 512, 160 };
	json_t *scope = scope_of(made__play, ROWS_ALLOC);

	(void)state;
	assert_string_equal(string(scope, "$schema"),
			    "https://www.speedscope.app/file-format-schema.json");
	assert_string_equal(string(scope, "exporter"), "heapsonde " HEAPSONDE_VERSION);
	assert_string_equal(string(scope, "name"), "./x\x1b[31m \xc2\x9bm");
	assert_int_equal(json_integer_value(json_object_get(scope, "activeProfileIndex")), 0);
	assert_int_equal(json_array_size(json_object_get(scope, "profiles")), 4);
	expect_profile(scope, 0, stacks, allocated, 4);
	expect_profile(scope, 1, stacks, live, 4);
	expect_profile(scope, 2, stacks + 3, allocated + 3, 1);
	expect_profile(scope, 3, NULL, NULL, 0);
	json_decref(scope);
}

static void has_frames_once(void **state)
{
	json_t *scope = scope_of(made__play, ROWS_SURVIVORS), *frames, *frame;

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(scope, "activeProfileIndex")), 3);
	frames = json_object_get(json_object_get(scope, "shared"), "frames");
	assert_int_equal(json_array_size(frames), 6);
	frame = json_array_get(frames, 3);
	assert_string_equal(string(frame, "name"), NAME_HARD);
	assert_string_equal(string(frame, "file"), "a b.ml");
	assert_int_equal(json_integer_value(json_object_get(frame, "line")), 7);
	/* Without debug information neither is there. */
	frame = json_array_get(frames, 2);
	assert_string_equal(string(frame, "name"), "caml_main");
	assert_int_equal(json_object_size(frame), 1);
	json_decref(scope);
}

static void is_whole_without_stacks(void **state)
{
	json_t *scope = scope_of(made__play_nothing, ROWS_LIVE);

	(void)state;
	/* No command: the capture's name. */
	assert_string_equal(string(scope, "name"), "x.hsd");
	/* Survivors are not known of a capture that does not tell when cycles ended. */
	assert_int_equal(json_array_size(json_object_get(scope, "profiles")), 3);
	for (size_t k = 0; k < 3; k++)
		expect_profile(scope, k, NULL, NULL, 0);
	json_decref(scope);
	scope = scope_of(made__play_huge, ROWS_ALLOC);
	assert_true(json_is_number(json_object_get(profile(scope, 0), "endValue")));
	json_decref(scope);
}

static void has_what_is_known_only(void **state)
{
	static const char *const stacks[] = { "(no OCaml frame)" };
	static const int allocated[] = { 24 };
	json_t *scope = scope_of(made__play_allocs, ROWS_ALLOC);

	(void)state;
	assert_int_equal(json_array_size(json_object_get(scope, "profiles")), 1);
	expect_profile(scope, 0, stacks, allocated, 1);
	json_decref(scope);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folds),
		cmocka_unit_test(folds_huge_numbers),
		cmocka_unit_test(has_profiles),
		cmocka_unit_test(has_frames_once),
		cmocka_unit_test(is_whole_without_stacks),
		cmocka_unit_test(has_what_is_known_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
