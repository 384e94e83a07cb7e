/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of any bytes as a JSON string: what is UTF-8 stays as it is, what is not
 * becomes U+FFFD, and the output is valid JSON in ASCII.
 */
#include "tests/unit/records_make.h"

#include "user/sinks/json.h"

/* Given bytes, the string that json__text makes of them. */
static void expect_text(const char *bytes, const char *expected)
{
	json_t *string = json__text(bytes), *parsed;
	char *dump;

	if (!json_is_string(string))
		fail_msg("no string for `%s`", expected);
	assert_string_equal(json_string_value(string), expected);
	dump = json_dumps(string, JSON_LINE_FLAGS | JSON_ENCODE_ANY);
	assert_non_null(dump);
	for (const char *c = dump; *c; c++)
		assert_in_range(*c, ' ', 0x7f);
	parsed = json_loads(dump, JSON_DECODE_ANY, NULL);
	assert_true(json_equal(parsed, string));
	json_decref(parsed);
	json_decref(string);
	free(dump);
}

/* The first and last characters of each length, and those beside the surrogates. */
#define EDGES                                                                                      \
	"\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80"     \
	"\xf4\x8f\xbf\xbf"
#define U_FFFD "\xef\xbf\xbd"

static void keeps_utf8(void **state)
{
	static const char *const kept[] = {
		"",    "plain",          "\"quotes\" and \\ and /", "\x01\x02\x1f\x7f\t\n\r\b\f",
		EDGES, "x\xe2\x82\xacy",
	};
	json_t *none = json__text(NULL);

	(void)state;
	assert_true(json_is_null(none));
	json_decref(none);
	for (size_t i = 0; i < COUNT(kept); i++)
		expect_text(kept[i], kept[i]);
}

static void replaces_the_rest(void **state)
{
	static const char *const cleaned[][2] = {
		{ "\x80", U_FFFD },
		{ "a\xff"
		  "b",
		  "a" U_FFFD "b" },
		{ "\xc3", U_FFFD },
		{ "\xc3(", U_FFFD "(" },
		/* Cut off, at the end and before it. */
		{ "\xe2\x82", U_FFFD U_FFFD },
		{ "\xe2\x82"
		  "e",
		  U_FFFD U_FFFD "e" },
		{ "\xf0\x90\x80", U_FFFD U_FFFD U_FFFD },
		/* Overlong. */
		{ "\xc0\x80", U_FFFD U_FFFD },
		{ "\xc1\xbf", U_FFFD U_FFFD },
		{ "\xe0\x9f\xbf", U_FFFD U_FFFD U_FFFD },
		{ "\xf0\x8f\xbf\xbf", U_FFFD U_FFFD U_FFFD U_FFFD },
		/* Surrogates, and beyond U+10FFFF. */
		{ "\xed\xa0\x80", U_FFFD U_FFFD U_FFFD },
		{ "\xed\xbf\xbf", U_FFFD U_FFFD U_FFFD },
		{ "\xf4\x90\x80\x80", U_FFFD U_FFFD U_FFFD U_FFFD },
		{ "\xf8\x88\x80\x80\x80", U_FFFD U_FFFD U_FFFD U_FFFD U_FFFD },
		/* What is good beside what is not stays. */
		{ "\xe2\x82\xac\xff\"\n", "\xe2\x82\xac" U_FFFD "\"\n" },
		{ "\xff" EDGES, U_FFFD EDGES },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cleaned); i++)
		expect_text(cleaned[i][0], cleaned[i][1]);
}

static void survives_random_bytes(void **state)
{
	uint64_t seed = 1;
	char bytes[64];

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t n = make__random(&seed) % sizeof(bytes);
		char *exact;
		json_t *string;

		for (size_t k = 0; k < n; k++)
			bytes[k] = (char)(make__random(&seed) % 255 + 1);
		exact = strndup(bytes, n);
		string = json__text(exact);
		assert_true(json_is_string(string));
		/* Where nothing was replaced nothing has changed. */
		if (!strstr(json_string_value(string), U_FFFD))
			assert_string_equal(json_string_value(string), exact);
		json_decref(string);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_utf8),
		cmocka_unit_test(replaces_the_rest),
		cmocka_unit_test(survives_random_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
