/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said on stderr, and whether in colour. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/common/colour.h"
#include "user/common/say.h"

/* What both kinds of lines leave on stderr at a level. */
static void said_at(enum say_level level, char *out, size_t size)
{
	int ends[2], kept = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	say__set_level(level);
	say__note("a %s", "note\x1b[31m");
	say__detail("detail %d", 7);
	dup2(kept, STDERR_FILENO);
	close(kept);
	close(ends[1]);
	n = read(ends[0], out, size - 1);
	close(ends[0]);
	assert_true(n >= 0);
	out[n] = 0;
}

static void test_levels(void **state)
{
	char text[256];

	(void)state;
	said_at(SAY_ERRORS, text, sizeof(text));
	assert_string_equal(text, "");
	said_at(SAY_NOTES, text, sizeof(text));
	assert_string_equal(text, "heapsonde: a note?[31m\n");
	said_at(SAY_DETAILS, text, sizeof(text));
	assert_string_equal(text, "heapsonde: a note?[31m\nheapsonde: detail 7\n");
}

static void test_colour_environment(void **state)
{
	(void)state;
	unsetenv("NO_COLOR");
	setenv("TERM", "xterm", 1);
	assert_true(colour__allowed());
	/* By the convention an empty one is as if it were not there. */
	setenv("NO_COLOR", "", 1);
	assert_true(colour__allowed());
	setenv("NO_COLOR", "0", 1);
	assert_false(colour__allowed());
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	assert_false(colour__allowed());
	unsetenv("TERM");
	assert_false(colour__allowed());
}

static FILE *open_terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	FILE *f;

	assert_true(master >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	f = fopen(ptsname(master), "w");
	assert_non_null(f);
	return f;
}

static void test_colour_terminal(void **state)
{
	FILE *terminal = open_terminal(), *file = tmpfile();

	(void)state;
	assert_non_null(file);
	unsetenv("NO_COLOR");
	setenv("TERM", "xterm", 1);
	assert_true(colour__wanted(terminal));
	assert_false(colour__wanted(file));
	setenv("NO_COLOR", "1", 1);
	assert_false(colour__wanted(terminal));
	fclose(terminal);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_colour_environment),
		cmocka_unit_test(test_colour_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
