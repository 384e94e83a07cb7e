/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record and stat through a daemon that says what it is told to: what they ask, what
 * they print, how they end, and what becomes of the command.
 */
#include "tests/unit/fake_daemon.h"

#include <signal.h>

#include "user/cli/cli.h"
#include "user/cli/record_daemon.h"
#include "user/cli/stat.h"

#define OK "{\"ok\":true,\"profile\":7}\n"
#define REFUSED "{\"ok\":false,\"code\":\"EPERM\",\"error\":\"not yours\"}\n"
#define CLOSING(reason, lost, top, error)                                                          \
	"{\"ok\":true,\"profile\":7,\"reason\":\"" reason "\",\"lost\":{" lost "},\"top\":" top    \
	",\"output_error\":" error "}\n"
#define INTERRUPTED CLOSING("interrupted", "", "null", "null")
#define EXITED CLOSING("target exited", "", "null", "null")

static int record(int argc, char **argv)
{
	struct record_options o;
	int status = record_options__parse(&o, argc, argv);

	if (!status)
		status = record_daemon__run(&o);
	record_options__deinit(&o);
	return status;
}

static void records_for_a_while(void **state)
{
	(void)state;
	FAKE({ .answer = OK,
	       .output = "records\n",
	       .later = CLOSING("duration", "", "null", "null") });
	assert_int_equal(COMMAND(record, "-p42", "--duration=500ms", "-r", "0.5", "-o",
				 fake__file("file"), "--format=raw", "--top=3"),
			 0);
	fake__join();
	fake__expect(0, "{\"op\":\"start\",\"pid\":42,\"rate\":0.5,\"stack_depth\":64,\"track\":"
			"\"all\",\"ring_bytes\":33554432,\"max_blocks\":524288,"
			"\"max_stacks\":65536,\"format\":\"raw\",\"bound\":true,\"duration\":0.5,"
			"\"top\":3}");
	fake__expect_file("file", "records\n");
	fake__expect_file("out", "");
	fake__expect_file("err", "");
	fake__end();
}

static void tells_how_it_ended(void **state)
{
	(void)state;
	FAKE({ .answer = OK, .output = "records\n", .later = EXITED },
	     { .answer = OK CLOSING("target executed another program", "\"ring_full\":3",
				    "\"TABLE\\n\"", "null") },
	     { .answer = OK CLOSING("domains gone", "", "\"TABLE\\n\"", "null") },
	     { .answer = OK CLOSING("interrupted", "", "null", "\"No space left on device\"") },
	     { .answer = OK CLOSING("error", "", "null", "null") }, { .answer = OK },
	     { .answer = REFUSED });
	assert_int_equal(COMMAND(record, "-p42"), 0);
	fake__expect_file("out", "records\n");
	fake__expect_file("err", "heapsonde: PID 42 has ended\n");
	assert_int_equal(COMMAND(record, "-p42", "--top=3"), 0);
	fake__expect_file("err", "heapsonde: PID 42 runs another program now\n"
				 "heapsonde: lost ring_full: 3\nTABLE\n");
	assert_int_equal(COMMAND(record, "-p42"), 0);
	fake__expect_file("err", "heapsonde: all domains that were recorded have terminated\n");
	assert_int_equal(COMMAND(record, "-p42"), 1);
	fake__expect_file("err", "heapsonde: cannot write standard output: No space left on "
				 "device; what was written stays readable\n");
	assert_int_equal(COMMAND(record, "-p42"), 1);
	assert_int_equal(COMMAND(record, "-p42"), 1);
	assert_true(fake__file_has("err", "closed the connection"));
	assert_int_equal(COMMAND(record, "-p42"), 1);
	fake__expect_file("err", "heapsonde: not yours\n");
	fake__join();
	fake__end();
}

static void leaves_the_file_of_a_refused_recording(void **state)
{
	(void)state;
	FAKE({ .answer = REFUSED });
	fake__make_file("old", "precious");
	assert_int_equal(COMMAND(record, "-p42", "-o", fake__file("old"), "--force"), 1);
	fake__expect_file("old", "precious");
	fake__join();
	fake__end();
	assert_int_equal(COMMAND(record, "-p42", "--socket=/nowhere/s"), 1);
	fake__expect_file("err", "heapsonde: no daemon listens on /nowhere/s: start it with `sudo "
				 "heapsonde daemon`\n");
}

static void wait_for_output(const char *text)
{
	for (int i = 0; i < 6000 && !fake__file_has("out", text); i++)
		usleep(10000);
	assert_true(fake__file_has("out", text));
}

static void ends_with_a_signal(void **state)
{
	char *argv[] = { "heapsonde record", "-p42", NULL };
	pid_t pid;

	(void)state;
	FAKE({ .answer = OK, .output = "first", .closing = INTERRUPTED });
	fake__make_file("out", "");
	pid = fake__start_command(record, argv);
	wait_for_output("first");
	kill(pid, SIGTERM);
	assert_int_equal(fake__wait_command(pid), 0);
	fake__expect_file("err", "");
	fake__join();
	fake__end();
}

/* A daemon that hangs is not waited for for ever. */
static void ends_with_two_signals(void **state)
{
	char *argv[] = { "heapsonde record", "-p42", NULL };
	pid_t pid;

	(void)state;
	/* Until the connection is closed altogether nothing comes. */
	FAKE({ .output = "first", .closing = "" });
	fake__make_file("out", "");
	pid = fake__start_command(record, argv);
	wait_for_output("first");
	/* Two kinds: the same one twice may come as one. */
	kill(pid, SIGINT);
	kill(pid, SIGTERM);
	assert_int_equal(fake__wait_command(pid), 1);
	assert_true(fake__file_has("err", "interrupted before the daemon was done"));
	fake__join();
	fake__end();
}

static int record_to_nobody(int argc, char **argv)
{
	int fds[2];

	if (pipe(fds))
		return 99;
	dup2(fds[1], STDOUT_FILENO);
	close(fds[0]);
	close(fds[1]);
	return record(argc, argv);
}

static void ends_with_its_output(void **state)
{
	(void)state;
	FAKE({ .answer = OK, .closing = CLOSING("interrupted", "", "null", "\"Broken pipe\"") });
	assert_int_equal(COMMAND(record_to_nobody, "-p42"), 1);
	assert_true(fake__file_has("err", "cannot write standard output: Broken pipe"));
	fake__join();
	fake__end();
}

/* ---- commands ---- */

static void runs_a_command(void **state)
{
	(void)state;
	FAKE({ .answer = OK, .later = EXITED }, { .answer = OK, .later = EXITED },
	     /* Even if the daemon vanishes the command runs to its end. */
	     { .answer = OK }, { .answer = REFUSED });
	assert_int_equal(COMMAND(record, "-o", fake__file("file"), "--force", "--", "sh", "-c",
				 "echo hello; exit 7"),
			 7);
	fake__expect_file("out", "hello\n");
	fake__expect_file("err", "");
	assert_int_equal(COMMAND(record, "--", "sh", "-c", "kill -KILL $$"), 137);
	assert_int_equal(COMMAND(record, "--", "sh", "-c", "sleep 0.1; echo done"), 1);
	fake__expect_file("out", "done\n");
	/* Refused: it is not even started. */
	assert_int_equal(COMMAND(record, "--", "touch", fake__file("started")), 1);
	assert_int_not_equal(access(fake__file("started"), F_OK), 0);
	fake__expect_file("err", "heapsonde: not yours\n");
	fake__join();
	assert_true(json_integer_value(json_object_get(fake.asked[0], "pid")) > 1);
	fake__end();
	assert_int_equal(COMMAND(record, "--", "/nowhere/x"), 1);
}

static void passes_signals_on(void **state)
{
	char *argv[] = { "heapsonde record",
			 "--",
			 "sh",
			 "-c",
			 "trap 'echo got; exit 3' TERM; echo up; while :; do sleep 0.01; done",
			 NULL };
	pid_t pid;

	(void)state;
	FAKE({ .answer = OK, .closing = INTERRUPTED });
	fake__make_file("out", "");
	pid = fake__start_command(record, argv);
	wait_for_output("up");
	/* The first is the command's, the second ours. This daemon does not notice that
	 * the command has ended. */
	kill(pid, SIGTERM);
	wait_for_output("got");
	kill(pid, SIGTERM);
	assert_int_equal(fake__wait_command(pid), 3);
	fake__join();
	fake__end();
}

/* ---- stat ---- */

static int stat_twice(int argc, char **argv)
{
	const struct stat_options o = { .pid = 42, .interval_s = 0.02, .count = 2 };

	(void)argc;
	(void)argv;
	return stat_daemon__run(&o);
}

static int stat_for_ever(int argc, char **argv)
{
	const struct stat_options o = { .pid = 42, .interval_s = 3600 };

	(void)argc;
	(void)argv;
	return stat_daemon__run(&o);
}

#define HEADING                                                                                    \
	"  DOMAIN STATE         MINOR-WORDS PROMOTED-WORDS    MAJOR-WORDS MINOR-GC MAJOR-GC\n"

#define COUNTED(minor, base_minor)                                                                 \
	"{\"ok\":true,\"profiles\":[{\"profile\":7,\"domains\":[{\"domain\":3,\"state\":"          \
	"\"alive\",\"minor_words\":" minor ",\"promoted_words\":10,\"major_words\":15,"            \
	"\"minor_collections\":4,\"major_collections\":2,\"base_minor_words\":" base_minor         \
	",\"base_promoted_words\":4,\"base_major_words\":5,\"base_minor_collections\":3,"          \
	"\"base_major_collections\":2}]}]}\n"
/* The closing line brings the last counters: the daemon has forgotten the rest. */
#define TERMINATED                                                                                 \
	"{\"ok\":true,\"profile\":7,\"reason\":\"target exited\",\"lost\":{},\"domains\":"         \
	"[{\"domain\":1,\"state\":\"terminated\",\"minor_words\":5}]}\n"

static void shows_what_each_interval_added(void **state)
{
	(void)state;
	FAKE({ .answer = OK, .closing = INTERRUPTED }, { .answer = COUNTED("1000", "900") },
	     { .answer = COUNTED("1500", "900") });
	assert_int_equal(COMMAND(stat_twice, NULL), 0);
	fake__expect_file("out", HEADING "       3 alive                 100              6        "
					 "      4        1        0\n"
					 "       3 alive                 500              0        "
					 "      0        0        0\n");
	fake__expect_file("err", "");
	fake__join();
	fake__expect(0, "{\"op\":\"start\",\"pid\":42,\"counters_only\":true,\"bound\":true}");
	fake__expect(1, "{\"op\":\"status\",\"profile\":7}");
	fake__end();
}

static void stat_ends_with_its_target(void **state)
{
	static const struct exchange vanishing = { .answer = OK };

	(void)state;
	FAKE({ .answer = OK, .later = TERMINATED });
	assert_int_equal(COMMAND(stat_for_ever, NULL), 0);
	fake__expect_file("out", HEADING "       1 terminated              5              0        "
					 "      0        0        0\n");
	fake__expect_file("err", "");
	fake__join();
	fake__end();
	/* And with an error if it is the daemon that ends. */
	fake__begin(&vanishing, 1);
	assert_int_equal(COMMAND(stat_for_ever, NULL), 1);
	assert_true(fake__file_has("err", "closed the connection"));
	fake__join();
	fake__end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_for_a_while),
		cmocka_unit_test(tells_how_it_ended),
		cmocka_unit_test(leaves_the_file_of_a_refused_recording),
		cmocka_unit_test(ends_with_a_signal),
		cmocka_unit_test(ends_with_two_signals),
		cmocka_unit_test(ends_with_its_output),
		cmocka_unit_test(runs_a_command),
		cmocka_unit_test(passes_signals_on),
		cmocka_unit_test(shows_what_each_interval_added),
		cmocka_unit_test(stat_ends_with_its_target),
	};

	cli__init();
	return cmocka_run_group_tests(tests, fake__setup, fake__cleanup);
}
