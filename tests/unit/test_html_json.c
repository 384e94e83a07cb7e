/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON within a page: whatever a text holds, it cannot end the script that it is in, and it
 * is the same text when it is read back.
 */
#include "tests/unit/records_make.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "user/export/html_json.h"

/* What a function of html_json.h wrote; the caller's. */
static char *written(int (*put)(FILE *f, const void *arg), const void *arg)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	assert_int_equal(put(f, arg), 0);
	assert_int_equal(fclose(f), 0);
	return text;
}

static int put_text(FILE *f, const void *arg)
{
	return html_json__text(f, arg);
}

static void text_cannot_end_a_script(void **state)
{
	static const char *const texts[] = {
		"</script>", "<!--<script>",   "<<<",
		"]]>\"\\'",  "\x01\x1f\x7f\n", "\xe2\x80\xa8\xe2\x80\xae",
		"",          "plain",          "<",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *text = written(put_text, texts[i]);
		json_t *back = json_loads(text, JSON_DECODE_ANY, NULL);

		for (const char *c = text; *c; c++) {
			assert_in_range(*c, ' ', 0x7f);
			assert_int_not_equal(*c, '<');
		}
		assert_string_equal(json_string_value(back), texts[i]);
		json_decref(back);
		free(text);
	}
}

static void text_that_is_not_utf8_is_replaced(void **state)
{
	char *text = written(put_text, "<\xff>");

	(void)state;
	assert_string_equal(text, "\"\\u003c\\uFFFD>\"");
	free(text);
	text = written(put_text, NULL);
	assert_string_equal(text, "null");
	free(text);
}

static int put_object(FILE *f, const void *arg)
{
	return html_json__put(f, arg);
}

static void names_of_members_too(void **state)
{
	json_t *object = json_pack("{s:s, s:[i]}", "</script>", "<b>", "n", 7);
	char *text = written(put_object, object);
	json_t *back = json_loads(text, 0, NULL);

	(void)state;
	assert_null(strchr(text, '<'));
	assert_true(json_equal(object, back));
	json_decref(object);
	json_decref(back);
	free(text);
}

static int put_column(FILE *f, const void *arg)
{
	html_json__column(f, "x", arg, 2 * sizeof(double), 6, 9);
	return 0;
}

static void columns_are_json_whatever_the_numbers(void **state)
{
	static const double pairs[6][2] = { { 0, 1 },   { 1.0 / 3, 2 },  { 123456789, 3 },
					    { NAN, 4 }, { INFINITY, 5 }, { DBL_MAX, 6 } };
	char *text = written(put_column, pairs);

	(void)state;
	assert_string_equal(text, ",\"x\":[0,0.333333333,123456789,0,0,1.79769313e+308]");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_cannot_end_a_script),
		cmocka_unit_test(text_that_is_not_utf8_is_replaced),
		cmocka_unit_test(names_of_members_too),
		cmocka_unit_test(columns_are_json_whatever_the_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
