/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of options; and what `list` and `version` print. */
#include "tests/unit/probe_program.h"

#include <jansson.h>
#include <math.h>

#include "user/cli/cli.h"
#include "user/common/units.h"

static void parses_rates(void **state)
{
	static const struct {
		const char *text;
		double rate;
	} good[] = {
		{ "1", 1 },       { "2^-0", 1 }, { "2^-13", 1.0 / 8192 }, { "0.00037", 0.00037 },
		{ "1e-6", 1e-6 }, { ".5", 0.5 }, { "2^-60", 0x1p-60 },    { "1.0", 1 },
	};
	static const char *const bad[] = {
		"",     "0",    "0.0",   "-1",     "1.0001", "2",     "nan",
		"inf",  "2^13", "2^-",   "2^-x",   "2^-61",  "2^--1", " 0.5",
		"0.5 ", "0x.8", "1e-6x", "1e-999", "2^-13x", "1/2",
	};
	double rate;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(cli__parse_rate(good[i].text, &rate), 0);
		assert_true(rate == good[i].rate);
	}
	rate = 42;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (cli__parse_rate(bad[i], &rate) != -EINVAL)
			fail_msg("accepted `%s`", bad[i]);
	assert_true(rate == 42);
}

static void parses_sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "1", 1 },          { "512k", 512 << 10 }, { "512K", 512 << 10 },
		{ "3M", 3 << 20 },   { "1G", 1 << 30 },     { "2T", 2ull << 40 },
		{ "8MiB", 8 << 20 }, { "4kB", 4096 },       { "18446744073709551615", UINT64_MAX },
	};
	static const char *const bad[] = { "",
					   "0",
					   "0k",
					   "-1",
					   "k",
					   "1.5M",
					   "1 k",
					   "1m",
					   "1Mx",
					   "0x10",
					   "1b",
					   "16777216T",
					   "18446744073709551616",
					   "+1" };
	uint64_t bytes = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (cli__parse_bytes(bad[i], &bytes) != -EINVAL)
			fail_msg("accepted `%s`", bad[i]);
	assert_int_equal(bytes, 42);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(cli__parse_bytes(good[i].text, &bytes), 0);
		assert_true(bytes == good[i].bytes);
	}
}

static void parses_durations(void **state)
{
	static const struct {
		const char *text;
		double seconds;
	} good[] = { { "2.5", 2.5 },   { "10s", 10 },  { "1m", 60 },
		     { "500ms", 0.5 }, { "2h", 7200 }, { "1e1", 10 } };
	static const char *const bad[] = { "",    "0",   "-1",  "s",     "1d",
					   "1 s", "inf", "nan", "1e300", "10S" };
	double seconds = 42;
	int n = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (cli__parse_seconds(bad[i], &seconds) != -EINVAL)
			fail_msg("accepted `%s`", bad[i]);
	assert_true(seconds == 42);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(cli__parse_seconds(good[i].text, &seconds), 0);
		assert_true(fabs(seconds - good[i].seconds) < 1e-12);
	}
	assert_int_equal(cli__parse_positive("0", 10, &n), -EINVAL);
	assert_int_equal(cli__parse_positive("11", 10, &n), -EINVAL);
	assert_int_equal(cli__parse_positive("1x", 10, &n), -EINVAL);
	assert_int_equal(cli__parse_positive("-1", 10, &n), -EINVAL);
	assert_int_equal(cli__parse_positive("99999999999999999999", 10, &n), -EINVAL);
	assert_int_equal(n, 42);
	assert_int_equal(cli__parse_positive("10", 10, &n), 0);
	assert_int_equal(n, 10);
}

static void shows_rates(void **state)
{
	static const struct {
		double rate;
		const char *text;
	} cases[] = {
		{ 1, "1" },
		{ 0.5, "2^-1" },
		{ 0x1p-20, "2^-20" },
		{ 0x1p-60, "2^-60" },
		{ 0.00037, "0.00037" },
		{ 0.75, "0.75" },
		{ 1e-6, "1e-06" },
		{ 0, "0" },
	};
	char text[UNITS_RATE_CHARS];
	double back;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		units__rate(cases[i].rate, text);
		assert_string_equal(text, cases[i].text);
		if (cases[i].rate > 0) {
			assert_int_equal(cli__parse_rate(text, &back), 0);
			assert_true(back == cases[i].rate);
		}
	}
}

/* Run a command in a process of its own; its output. Returns its exit status. */
static int run_command(int (*cmd)(int, char **), char *arg, const char *out, const char *errors)
{
	char *argv[] = { "heapsonde list", arg, NULL };
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (!freopen(out, "w", stdout) || !freopen(errors, "w", stderr))
			_exit(99);
		exit(cmd(arg ? 2 : 1, argv));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The first line of the file that contains text; false if there is none. */
static bool find_line(const char *file, const char *text, char *line, size_t size)
{
	FILE *f = fopen(file, "r");
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, (int)size, f))
		found = strstr(line, text) != NULL;
	fclose(f);
	return found;
}

static void lists_processes(void **state)
{
	char *argv[] = { (char *)program__path("listed"), "b\nc", NULL };
	const char *out = program__path("out"), *errors = program__path("errors");
	char line[4096], heading[4096], pid[32];
	struct running r, plain;
	json_t *o;

	(void)state;
	program__compile("listed", BASE ALL_PROBES REGISTRY_NOTE, GOOD_REGISTRY_C MAIN_C, "");
	r = program__run(argv);
	/* Looks like OCaml without the probes. */
	program__compile("plain", "", "int caml_main, caml_frametable;\n" MAIN_C, "");
	argv[0] = (char *)program__path("plain");
	plain = program__run(argv);

	assert_int_equal(run_command(cmd_list, NULL, out, errors), 0);
	snprintf(pid, sizeof(pid), "%d ", (int)r.pid);
	assert_true(find_line(out, "listed b?c", line, sizeof(line)));
	assert_true(find_line(out, "DOMAINS", heading, sizeof(heading)));
	assert_non_null(strstr(line, pid));
	/* What stands in a column stands under its heading. */
	assert_int_equal(strstr(line, "5.3.0") - line, strstr(heading, "OCAML") - heading);
	assert_int_equal(strstr(line, program__dir()) - line, strstr(heading, "COMMAND") - heading);
	assert_int_equal(line[strstr(heading, "DOMAINS") - heading + 6], '2');
	assert_true(find_line(out, "/plain b?c", line, sizeof(line)));
	assert_true(find_line(out, "LACKS", heading, sizeof(heading)));
	assert_int_equal(strstr(line, "probes: relink") - line, strstr(heading, "LACKS") - heading);

	assert_int_equal(run_command(cmd_list, "--json", out, errors), 0);
	assert_true(find_line(out, "/listed", line, sizeof(line)));
	o = json_loads(line, 0, NULL);
	assert_non_null(o);
	assert_int_equal(json_integer_value(json_object_get(o, "pid")), r.pid);
	assert_int_equal(json_integer_value(json_object_get(o, "domains")), 2);
	assert_true(json_is_true(json_object_get(o, "attachable")));
	assert_string_equal(json_string_value(json_object_get(o, "ocaml")), "5.3.0");
	json_decref(o);
	assert_true(find_line(out, "/plain", line, sizeof(line)));
	o = json_loads(line, 0, NULL);
	assert_non_null(o);
	assert_string_equal(json_string_value(json_object_get(o, "kind")), "native");
	assert_true(json_is_false(json_object_get(o, "attachable")));
	json_decref(o);
	program__end(r);
	program__end(plain);

	assert_int_equal(run_command(cmd_list, NULL, out, errors), 0);
	assert_false(find_line(out, pid, line, sizeof(line)));
}

static void errors_have_their_status(void **state)
{
	const char *out = program__path("out"), *errors = program__path("errors");
	char line[4096];

	(void)state;
	assert_int_equal(run_command(cmd_list, "nonsense", out, errors), CLI_EXIT_USAGE);
	assert_true(find_line(errors, "nonsense", line, sizeof(line)));
	assert_int_equal(run_command(cmd_version, "--nonsense", out, errors), CLI_EXIT_USAGE);
	assert_int_equal(run_command(cmd_version, NULL, "/dev/full", errors), CLI_EXIT_ERROR);
	assert_true(find_line(errors, "heapsonde: cannot write", line, sizeof(line)));
}

static void prints_versions(void **state)
{
	const char *out = program__path("out"), *errors = program__path("errors");
	char line[4096];
	json_t *o;

	(void)state;
	assert_int_equal(run_command(cmd_version, NULL, out, errors), 0);
	assert_true(find_line(out, "heapsonde " HEAPSONDE_VERSION, line, sizeof(line)));
	assert_true(find_line(out, "bpf_loop", line, sizeof(line)));
	assert_int_equal(run_command(cmd_version, "--json", out, errors), 0);
	assert_true(find_line(out, "{", line, sizeof(line)));
	o = json_loads(line, 0, NULL);
	assert_non_null(o);
	assert_true(json_is_boolean(json_object_get(json_object_get(o, "features"), "nop10")));
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_rates),     cmocka_unit_test(parses_sizes),
		cmocka_unit_test(parses_durations), cmocka_unit_test(shows_rates),
		cmocka_unit_test(lists_processes),  cmocka_unit_test(errors_have_their_status),
		cmocka_unit_test(prints_versions),
	};

	return cmocka_run_group_tests(tests, NULL, program__cleanup);
}
