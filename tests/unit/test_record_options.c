/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of `heapsonde record`: what they become, where a command's own
 * options begin; usage errors end in status 2 with a message (in a child, because
 * argp exits).
 */
#include "tests/unit/records_make.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "user/cli/cli.h"
#include "user/cli/record.h"

#define MAX_ARGS 16

/* Parse a NULL-terminated list of arguments. argv must live as long as *o. */
static void parse_list(struct record_options *o, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	assert_int_equal(record_options__parse(o, argc, argv), 0);
}

#define PARSE(o, ...) parse_list(o, (char *[]){ "heapsonde record", __VA_ARGS__, NULL })

static void has_defaults(void **state)
{
	struct record_options o;

	(void)state;
	PARSE(&o, "-p", "42");
	assert_int_equal(o.pid, 42);
	assert_null(o.command);
	assert_null(o.output);
	assert_int_equal(o.format, SINK_JSONL);
	assert_int_equal(o.top, 0);
	assert_null(o.socket);
	assert_true(o.duration_s == 0);
	assert_int_equal(o.profile.attach.number, 1);
	assert_string_equal(o.profile.track, "all");
	assert_false(o.profile.attach.counters_only);
	assert_true(o.profile.attach.tier.rate == 0x1p-20);
	assert_int_equal(o.profile.attach.tier.tier, 20);
	assert_int_equal(o.profile.attach.stack_depth, 64);
	assert_true(o.profile.attach.lifetimes);
	assert_int_equal(o.profile.attach.heaps & 3, 3);
	assert_int_equal(o.profile.attach.sources & 15, 15);
	assert_null(o.profile.attach.domains);
	assert_int_equal(o.profile.attach.n_domains, 0);
	assert_int_equal(o.profile.attach.ring_bytes, 0);
	assert_int_equal(o.profile.attach.max_blocks, 0);
	assert_int_equal(o.profile.attach.max_stacks, 0);
	record_options__deinit(&o);
}

static void takes_every_option(void **state)
{
	struct record_options o;

	(void)state;
	PARSE(&o, "--pid=7", "-r", "2^-13", "--stack-depth", "1024", "--duration=2.5", "-o",
	      "/tmp/x", "--format=raw", "--top", "12", "--ring-size", "1M", "--max-blocks", "1000",
	      "--max-stacks=4194304", "--socket=/tmp/s");
	assert_string_equal(o.socket, "/tmp/s");
	assert_int_equal(o.pid, 7);
	assert_true(o.profile.attach.tier.rate == 0x1p-13);
	assert_int_equal(o.profile.attach.tier.tier, 13);
	assert_true(o.profile.attach.tier.keep_p == 1ull << 32);
	assert_int_equal(o.profile.attach.stack_depth, 1024);
	assert_true(o.duration_s == 2.5);
	assert_string_equal(o.output, "/tmp/x");
	assert_int_equal(o.format, SINK_RAW);
	assert_int_equal(o.top, 12);
	assert_int_equal(o.profile.attach.ring_bytes, 1 << 20);
	assert_int_equal(o.profile.attach.max_blocks, 1000);
	assert_int_equal(o.profile.attach.max_stacks, 4194304);
	record_options__deinit(&o);

	PARSE(&o, "-p7", "--stack-depth=0", "--format=jsonl", "--ring-size=5000");
	assert_int_equal(o.profile.attach.stack_depth, 0);
	assert_int_equal(o.format, SINK_JSONL);
	assert_int_equal(o.profile.attach.ring_bytes, 8192);
	record_options__deinit(&o);
	/* The name tells the format, unless it is given. */
	PARSE(&o, "-p7", "-o", "x.hsd", "--force");
	assert_int_equal(o.format, SINK_HSD);
	assert_true(o.force);
	record_options__deinit(&o);
	PARSE(&o, "-p7", "--format=raw", "-o", "x.hsd");
	assert_int_equal(o.format, SINK_RAW);
	assert_false(o.force);
	record_options__deinit(&o);
	PARSE(&o, "-p7", "-o", "x.hsd.jsonl");
	assert_int_equal(o.format, SINK_JSONL);
	record_options__deinit(&o);
	PARSE(&o, "-p7", "--ring-size=1", "--rate=0.00037");
	assert_int_equal(o.profile.attach.ring_bytes, sysconf(_SC_PAGESIZE));
	assert_int_equal(o.profile.attach.tier.tier, 11);
	assert_true(o.profile.attach.tier.rate > 0.00037 * 0.9999999);
	assert_true(o.profile.attach.tier.rate < 0.00037 * 1.0000001);
	record_options__deinit(&o);
	/* Standard output, as without it. */
	PARSE(&o, "-p7", "-o", "x", "-o", "-");
	assert_null(o.output);
	PARSE(&o, "-p7", "--ring-size=1G");
	assert_int_equal(o.profile.attach.ring_bytes, 1 << 30);
	record_options__deinit(&o);
}

static void turns_intervals_into_rates(void **state)
{
	struct record_options o;

	(void)state;
	PARSE(&o, "-p7", "--interval", "512k");
	assert_true(o.profile.attach.tier.rate == 8.0 / 524288);
	assert_int_equal(o.profile.attach.tier.tier, 16);
	PARSE(&o, "-p7", "--interval=8");
	assert_true(o.profile.attach.tier.rate == 1);
	PARSE(&o, "-p7", "--interval=8M");
	assert_true(o.profile.attach.tier.rate == 0x1p-20);
}

#define MINOR (1u << HS_HEAP_MINOR)
#define MAJOR (1u << HS_HEAP_MAJOR)
#define SOURCE(name) (1u << SONDE_SRC_##name)

static void selects_sizes(void **state)
{
	const struct {
		const char *kinds;
		uint64_t min_words, max_words;
	} cases[] = {
		{ "size=16", 16, 16 },
		{ "size=16-", 16, 0 },
		{ "size=-16", 0, 16 },
		{ "size=16-31", 16, 31 },
		{ "minor,size=2-3,alloc", 2, 3 },
		{ "minor", 0, 0 },
		{ "size=18014398509481983-", 18014398509481983, 0 },
		{ "size=4k-", 4096, 0 },
		{ "size=512-2K", 512, 2048 },
		{ "size=1k-1M", 1024, 1048576 },
		{ "size=-8G", 0, 8589934592 },
		{ "size=17179869183M-", 17179869183ull << 20, 0 },
	};
	struct record_options o;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char option[64];

		snprintf(option, sizeof(option), "--track=%s", cases[i].kinds);
		PARSE(&o, "-p7", option);
		assert_int_equal(o.profile.attach.min_words, cases[i].min_words);
		assert_int_equal(o.profile.attach.max_words, cases[i].max_words);
		record_options__deinit(&o);
	}
}

static void selects_what_to_track(void **state)
{
	static const struct {
		const char *kinds;
		uint32_t heaps, sources;
		bool lifetimes;
	} cases[] = {
		{ "all", 3, 15, true },
		{ "minor", MINOR, 15, true },
		{ "major", MAJOR, 15, true },
		{ "minor,major", 3, 15, true },
		{ "normal", 3, SOURCE(NORMAL), true },
		{ "marshal", 3, SOURCE(MARSHAL), true },
		{ "custom", 3, SOURCE(CUSTOM), true },
		{ "map_file", 3, SOURCE(MAP_FILE), true },
		{ "custom,map_file", 3, SOURCE(CUSTOM) | SOURCE(MAP_FILE), true },
		{ "major,marshal,normal", MAJOR, SOURCE(MARSHAL) | SOURCE(NORMAL), true },
		{ "alloc", 3, 15, false },
		{ "minor,alloc", MINOR, 15, false },
		{ "alloc,custom,major", MAJOR, SOURCE(CUSTOM), false },
	};
	struct record_options o;
	char option[160];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(option, sizeof(option), "--track=%s", cases[i].kinds);
		PARSE(&o, "-p7", option);
		assert_int_equal(o.profile.attach.heaps & 3, cases[i].heaps);
		assert_int_equal(o.profile.attach.sources & 15, cases[i].sources);
		assert_int_equal(o.profile.attach.lifetimes, cases[i].lifetimes);
		assert_string_equal(o.profile.track, cases[i].kinds);
	}
	/* Given twice, the last one counts. */
	PARSE(&o, "-p7", "--track=alloc,minor", "--track=custom");
	assert_int_equal(o.profile.attach.heaps & 3, 3);
	assert_int_equal(o.profile.attach.sources & 15, SOURCE(CUSTOM));
	assert_true(o.profile.attach.lifetimes);
}

static void collects_domains(void **state)
{
	struct record_options o;

	(void)state;
	PARSE(&o, "--domain", "3", "-p", "7", "--domain=0", "--domain=4294967294");
	assert_int_equal(o.profile.attach.n_domains, 3);
	assert_ptr_equal(o.profile.attach.domains, o.profile.domains);
	assert_int_equal(o.profile.attach.domains[0], 3);
	assert_int_equal(o.profile.attach.domains[1], 0);
	assert_int_equal(o.profile.attach.domains[2], UINT32_MAX - 1);
	record_options__deinit(&o);
	assert_null(o.profile.domains);
	assert_null(o.profile.attach.domains);
	record_options__deinit(&o);
}

static void expect_command(char **command, const char *const *expected)
{
	assert_non_null(command);
	for (; *expected; expected++, command++) {
		assert_non_null(*command);
		assert_string_equal(*command, *expected);
	}
	assert_null(*command);
}

#define COMMAND(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void leaves_the_command_alone(void **state)
{
	struct record_options o;

	(void)state;
	PARSE(&o, "--", "CMD", "-p", "3");
	expect_command(o.command, COMMAND("CMD", "-p", "3"));
	assert_int_equal(o.pid, 0);
	PARSE(&o, "-r", "0.5", "--", "CMD", "--rate", "x", "--", "--help", "-o");
	expect_command(o.command, COMMAND("CMD", "--rate", "x", "--", "--help", "-o"));
	assert_true(o.profile.attach.tier.rate == 0.5);
	assert_null(o.output);
	/* Without the two dashes a command begins with what is no option. */
	PARSE(&o, "-o", "x", "CMD", "-p", "3", "--format=raw");
	expect_command(o.command, COMMAND("CMD", "-p", "3", "--format=raw"));
	assert_string_equal(o.output, "x");
	assert_int_equal(o.format, SINK_JSONL);
	PARSE(&o, "--", "-strange");
	expect_command(o.command, COMMAND("-strange"));
	PARSE(&o, "CMD", "");
	expect_command(o.command, COMMAND("CMD", ""));
}

/* ---- usage errors ---- */

/* A terminal, for what is not to be written to one. */
static int open_terminal(int *master)
{
	*master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*master < 0 || grantpt(*master) || unlockpt(*master))
		return -1;
	return open(ptsname(*master), O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* Parse in a child with the given stdout; its messages in text. Returns its status,
 * 0 if it has accepted. */
static int status_of(const char *const *args, int out_fd, char *text, size_t size)
{
	char *argv[MAX_ARGS] = { "heapsonde record" };
	int argc = 1, fds[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	for (; *args && argc < MAX_ARGS - 1; args++)
		argv[argc++] = (char *)*args;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct record_options o;

		dup2(out_fd, STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		cli__init();
		_exit(record_options__parse(&o, argc, argv));
	}
	close(fds[1]);
	while ((got = read(fds[0], text + n, size - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void refuses_with_status_2(void **state)
{
	/* Arguments, and what the message must say. */
	static const struct {
		const char *args[6];
		const char *message;
	} cases[] = {
		{ { NULL }, "-p PID or a command" },
		{ { "-r", "0.5", NULL }, "-p PID or a command" },
		{ { "-p", "7", "CMD", NULL }, "-p PID or a command" },
		{ { "-p", "7", "--", "CMD", NULL }, "-p PID or a command" },
		{ { "-p", "0", NULL }, "not a PID: 0" },
		{ { "-p", "-7", NULL }, "not a PID: -7" },
		{ { "-p", "x", NULL }, "not a PID: x" },
		{ { "-p", "2147483648", NULL }, "not a PID" },
		{ { "-p", NULL }, "requires an argument" },
		{ { "-p7", "--nonsense", NULL }, "nonsense" },
		{ { "-p7", "-r", "0", NULL }, "(0, 1]" },
		{ { "-p7", "-r", "1.5", NULL }, "1.5" },
		{ { "-p7", "-r", "2^-100", NULL }, "2^-100" },
		{ { "-p7", "-r", "", NULL }, "rate" },
		{ { "-p7", "-r", "0.5", "--interval=8M", NULL }, "one rate or interval" },
		{ { "-p7", "-r1", "-r1", NULL }, "one rate or interval" },
		{ { "-p7", "--interval=7", NULL }, "at least 8 bytes" },
		{ { "-p7", "--interval=x", NULL }, "at least 8 bytes" },
		{ { "-p7", "--stack-depth=1025", NULL }, "0 to 1024" },
		{ { "-p7", "--stack-depth=-1", NULL }, "0 to 1024" },
		{ { "-p7", "--domain=x", NULL }, "not a domain id: x" },
		{ { "-p7", "--domain=-1", NULL }, "not a domain id: -1" },
		{ { "-p7", "--domain=1x", NULL }, "not a domain id: 1x" },
		{ { "-p7", "--domain=4294967295", NULL }, "not a domain id" },
		{ { "-p7", "--domain=99999999999999999999", NULL }, "not a domain id" },
		{ { "--domain=1", "CMD", NULL }, "needs a running process" },
		{ { "-p7", "--track=minor,nonsense", NULL }, "unknown kinds" },
		{ { "-p7", "--track=", NULL }, "unknown kinds" },
		{ { "-p7", "--track=minor,,major", NULL }, "unknown kinds" },
		{ { "-p7", "--track=MINOR", NULL }, "unknown kinds: MINOR" },
		{ { "-p7", "--track=size=", NULL }, "unknown kinds" },
		{ { "-p7", "--track=size=-", NULL }, "unknown kinds" },
		{ { "-p7", "--track=size=0-", NULL }, "unknown kinds" },
		{ { "-p7", "--track=size=9-8", NULL }, "unknown kinds" },
		{ { "-p7", "--track=size=1-2-3", NULL }, "unknown kinds" },
		{ { "-p7", "--track=size=+1", NULL }, "unknown kinds" },
		{ { "-p7", "--track=size=2x", NULL }, "unknown kinds" },
		{ { "-p7", "--track=size=k", NULL }, "unknown kinds" },
		{ { "-p7", "--track=size=4kk", NULL }, "unknown kinds" },
		{ { "-p7", "--track=size=2k-1k", NULL }, "unknown kinds" },
		{ { "-p7", "--track=size=17179869184M-", NULL }, "unknown kinds" },
		{ { "-p7", "--track=size=1-,size=-2", NULL }, "unknown kinds" },
		{ { "-p7", "--track=size=18014398509481984-", NULL }, "unknown kinds" },
		{ { "-p7", "--duration=0", NULL }, "duration" },
		{ { "-p7", "--duration=1d", NULL }, "1d" },
		{ { "-p7", "--format=xml", NULL }, "jsonl, hsd or raw, not xml" },
		{ { "-p7", "--top=0", NULL }, "number of sites" },
		{ { "-p7", "--ring-size=2G", NULL }, "up to 1G" },
		{ { "-p7", "--ring-size=0", NULL }, "ring buffer size" },
		{ { "-p7", "--max-blocks=0", NULL }, "number of blocks" },
		{ { "-p7", "--max-blocks=4194305", NULL }, "number of blocks" },
		{ { "-p7", "--max-stacks=x", NULL }, "number of stacks" },
	};
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	char text[4096];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		int status = status_of(cases[i].args, null, text, sizeof(text));

		if (status != CLI_EXIT_USAGE)
			fail_msg("`%s`: status %d", cases[i].message, status);
		if (!strstr(text, cases[i].message))
			fail_msg("does not say `%s`: %s", cases[i].message, text);
	}
	assert_int_equal(status_of(COMMAND("-p7"), null, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	close(null);
}

static void spares_the_terminal(void **state)
{
	int master, terminal = open_terminal(&master);
	char text[4096];

	(void)state;
	assert_true(terminal >= 0);
	assert_int_equal(status_of(COMMAND("-p7", "--format=raw"), terminal, text, sizeof(text)),
			 CLI_EXIT_USAGE);
	assert_non_null(strstr(text, "-o FILE"));
	assert_int_equal(
		status_of(COMMAND("-p7", "--format=raw", "-o-"), terminal, text, sizeof(text)),
		CLI_EXIT_USAGE);
	assert_int_equal(
		status_of(COMMAND("-p7", "--format=raw", "-o", "x"), terminal, text, sizeof(text)),
		0);
	assert_int_equal(status_of(COMMAND("-p7"), terminal, text, sizeof(text)), 0);
	close(terminal);
	close(master);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_defaults),
		cmocka_unit_test(takes_every_option),
		cmocka_unit_test(turns_intervals_into_rates),
		cmocka_unit_test(selects_what_to_track),
		cmocka_unit_test(selects_sizes),
		cmocka_unit_test(collects_domains),
		cmocka_unit_test(leaves_the_command_alone),
		cmocka_unit_test(refuses_with_status_2),
		cmocka_unit_test(spares_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
