/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * start, stop, discard, rate, status and follow against a daemon that says what it is
 * told to: what they ask, what they print, how they end.
 */
#include "tests/unit/fake_daemon.h"

#include <signal.h>
#include <sys/stat.h>

#include "user/cli/cli.h"

#define OK "{\"ok\":true,\"profile\":7}\n"
#define REFUSED "{\"ok\":false,\"code\":\"EPERM\",\"error\":\"not yours\"}\n"
#define START_DEFAULTS "\"rate\":9.5367431640625e-07,\"stack_depth\":64,\"track\":\"all\""

static void starts(void **state)
{
	(void)state;
	FAKE({ .answer = OK }, { .answer = OK });
	assert_int_equal(COMMAND(cmd_start, "-p", "42"), 0);
	fake__expect_file("out", "7\n");
	fake__expect_file("err", "");
	assert_int_equal(COMMAND(cmd_start, "-p42", "-r", "2^-13", "--stack-depth=0", "--domain=3",
				 "--domain", "0", "--track=alloc", "--ring-size=1M",
				 "--max-blocks=10", "--max-stacks=20", "--json"),
			 0);
	fake__expect_file("out", "{\"profile\":7}\n");
	fake__join();
	fake__expect(0, "{\"op\":\"start\",\"pid\":42," START_DEFAULTS "}");
	fake__expect(1, "{\"op\":\"start\",\"pid\":42,\"rate\":0.0001220703125,\"stack_depth\":0,"
			"\"track\":\"alloc\",\"domains\":[3,0],\"ring_bytes\":1048576,"
			"\"max_blocks\":10,\"max_stacks\":20}");
	assert_false(fake.had_fd[0]);
	fake__end();
}

static void starts_with_a_file(void **state)
{
	struct stat st;

	(void)state;
	FAKE({ .answer = OK, .output = "new\n" }, { .answer = OK, .output = "newer\n" },
	     { .answer = OK, .output = "newest\n" });
	assert_int_equal(COMMAND(cmd_start, "-p42", "-o", fake__file("file"), "--format=raw"), 0);
	fake__expect_file("file", "new\n");
	/* What was there is replaced, and keeps its mode; also behind a link. */
	assert_int_equal(chmod(fake__file("file"), 0640), 0);
	assert_int_equal(COMMAND(cmd_start, "-p42", "-o", fake__file("file"), "--force"), 0);
	fake__expect_file("file", "newer\n");
	assert_int_equal(symlink("file", fake__file("link")), 0);
	assert_int_equal(COMMAND(cmd_start, "-p42", "-o", fake__file("link"), "--force"), 0);
	fake__expect_file("file", "newest\n");
	assert_int_equal(stat(fake__file("file"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_int_equal(lstat(fake__file("link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	fake__join();
	fake__expect(0, "{\"op\":\"start\",\"pid\":42," START_DEFAULTS ",\"format\":\"raw\"}");
	assert_true(fake.had_fd[0]);
	fake__end();
}

/* Names in the folder, but for those of the tests themselves. */
static int count_files(void)
{
	char command[256], text[32] = "";
	FILE *f;

	snprintf(command, sizeof(command), "ls %s | grep -vcE '^(out|err|s)$'", fake.dir);
	f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	pclose(f);
	return atoi(text);
}

static void a_start_that_is_refused_changes_no_file(void **state)
{
	int before = count_files();

	(void)state;
	FAKE({ .answer = REFUSED }, { .answer = REFUSED }, { .answer = NULL });
	fake__make_file("old", "precious");
	assert_int_equal(COMMAND(cmd_start, "-p42", "-o", fake__file("none")), 1);
	fake__expect_file("out", "");
	fake__expect_file("err", "heapsonde: not yours\n");
	assert_int_equal(COMMAND(cmd_start, "-p42", "-o", fake__file("old"), "--force"), 1);
	assert_int_equal(COMMAND(cmd_start, "-p42", "-o", fake__file("old"), "--force"), 1);
	fake__expect_file("old", "precious");
	fake__join();
	fake__end();
	/* Without a daemon it is not even opened. */
	assert_int_equal(COMMAND(cmd_start, "-p42", "-o", fake__file("none")), 1);
	assert_true(fake__file_has("err", "sudo heapsonde daemon"));
	assert_int_equal(count_files(), before + 1);
}

static void refuses_usage(void **state)
{
	(void)state;
	assert_int_equal(COMMAND(cmd_start, "-r", "0.5"), 2);
	assert_int_equal(COMMAND(cmd_start, "-p7", "-r", "7"), 2);
	assert_int_equal(COMMAND(cmd_start, "-p7", "-r1", "--interval=8"), 2);
	assert_true(fake__file_has("err", "one rate or interval"));
	assert_int_equal(COMMAND(cmd_start, "-p7", "extra"), 2);
	assert_int_equal(COMMAND(cmd_start, "-p7", "--format=raw"), 2);
	assert_int_equal(COMMAND(cmd_start, "-p7", "-o", "-"), 2);
	assert_true(fake__file_has("err", "use record or follow"));
	assert_int_equal(COMMAND(cmd_stop, "--nonsense"), 2);
	assert_int_equal(COMMAND(cmd_stop, "0"), 2);
	assert_int_equal(COMMAND(cmd_stop, "7", "8"), 2);
	assert_int_equal(COMMAND(cmd_discard, "x"), 2);
	assert_int_equal(COMMAND(cmd_rate, "7"), 2);
	assert_int_equal(COMMAND(cmd_rate, "7", "2"), 2);
	assert_true(fake__file_has("err", "(0, 1]"));
	assert_int_equal(COMMAND(cmd_rate, "7", "0.5", "1"), 2);
	assert_int_equal(COMMAND(cmd_status, "-1"), 2);
	assert_int_equal(COMMAND(cmd_follow, "--socket=/x"), 2);
	assert_int_equal(COMMAND(cmd_follow, "7", "8"), 2);
	fake__expect_file("out", "");
}

static void changes_profiles(void **state)
{
	(void)state;
	FAKE({ .answer = OK }, { .answer = OK }, { .answer = OK },
	     { .answer = "{\"ok\":true,\"profile\":7,\"output_error\":\"No space left on "
			 "device\"}\n" },
	     { .answer = REFUSED });
	assert_int_equal(COMMAND(cmd_stop, "7"), 0);
	assert_int_equal(COMMAND(cmd_rate, "7", "2^-10"), 0);
	assert_int_equal(COMMAND(cmd_discard, "7"), 0);
	fake__expect_file("err", "");
	assert_int_equal(COMMAND(cmd_discard, "7"), 1);
	fake__expect_file("err", "heapsonde: the output of profile 7 is incomplete: No space left "
				 "on device\n");
	assert_int_equal(COMMAND(cmd_stop, "--socket", fake.path, "7"), 1);
	fake__expect_file("err", "heapsonde: not yours\n");
	fake__expect_file("out", "");
	fake__join();
	fake__expect(0, "{\"op\":\"stop\",\"profile\":7}");
	fake__expect(1, "{\"op\":\"rate\",\"profile\":7,\"rate\":0.0009765625}");
	fake__expect(2, "{\"op\":\"discard\",\"profile\":7}");
	fake__end();
}

/* ---- status ---- */

#define PROFILE                                                                                    \
	"{\"profile\":7,\"pid\":4711,\"uid\":0,\"command\":\"./service 60\",\"state\":"            \
	"\"sampling\",\"reason\":null,\"rate\":9.5367431640625e-07,\"rates\":2,\"stack_depth\":"   \
	"64,\"track\":\"all\",\"counters_only\":false,\"bound\":false,\"listed\":[0,2],\"time\":"  \
	"1,\"records\":123,\"samples\":130,\"live_words\":14100000.0,\"followers\":1,\"lost\":{"   \
	"\"ring_full\":3,\"output_full\":4},\"output_bytes\":5000,\"output_error\":null"
#define OTHER                                                                                      \
	"{\"profile\":12,\"pid\":5,\"uid\":0,\"command\":\"x\",\"state\":\"stopped\",\"rate\":0.3" \
	",\"records\":0,\"live_words\":0.0,\"lost\":{}}"
#define DOMAIN                                                                                     \
	"{\"domain\":2,\"state\":\"alive\",\"sampled\":true,\"rate\":0.5,\"minor_words\":1000,"    \
	"\"promoted_words\":20,\"major_words\":50,\"records\":9,\"tracked\":8}"

static void shows_the_status(void **state)
{
	(void)state;
	FAKE({ .answer = "{\"ok\":true,\"profiles\":[" PROFILE "}," OTHER "]}\n" },
	     { .answer = "{\"ok\":true,\"profiles\":[" PROFILE "}," OTHER "]}\n" },
	     { .answer = "{\"ok\":true,\"profiles\":[]}\n" }, { .answer = "{\"ok\":true}\n" });
	assert_int_equal(COMMAND(cmd_status, NULL), 0);
	fake__expect_file(
		"out", "ID   PID  USER  STATE     RATE   RECORDS  LIVE-WORDS  LOST  COMMAND\n"
		       " 7  4711  root  sampling  2^-20      123       14.1M     7  ./service 60\n"
		       "12     5  root  stopped   0.3          0           0     0  x\n");
	assert_int_equal(COMMAND(cmd_status, "--json"), 0);
	assert_true(fake__file_has("out", "{\"profile\":7,\"pid\":4711,\"uid\":0,"));
	assert_true(fake__file_has("out", "}\n{\"profile\":12,\"pid\":5,\"uid\":0,\"command\":"
					  "\"x\",\"state\":\"stopped\","));
	assert_int_equal(COMMAND(cmd_status, NULL), 0);
	fake__expect_file("out", "no profiles\n");
	assert_int_equal(COMMAND(cmd_status, NULL), 1);
	fake__join();
	fake__expect(0, "{\"op\":\"status\"}");
	fake__end();
}

/* A daemon that makes numbers up: each is shown as it is, and no sum of them is nonsense. */
static void shows_wild_numbers(void **state)
{
	(void)state;
	FAKE({ .answer = "{\"ok\":true,\"profiles\":[{\"lost\":{\"a\":9223372036854775807,\"b\":"
			 "9223372036854775807}}]}\n" },
	     { .answer = "{\"ok\":true,\"profiles\":[{\"domains\":[{\"major_words\":"
			 "-9223372036854775808,\"promoted_words\":1}]}]}\n" });
	assert_int_equal(COMMAND(cmd_status, NULL), 0);
	assert_true(fake__file_has("out", "  9223372036854775807  "));
	assert_int_equal(COMMAND(cmd_status, "7"), 0);
	assert_true(fake__file_has("out", "              1              0          0        0\n"));
	fake__join();
	fake__end();
}

static void shows_one_profile(void **state)
{
	(void)state;
	FAKE({ .answer = "{\"ok\":true,\"profiles\":[" PROFILE ",\"domains\":[" DOMAIN "]}]}\n" },
	     { .answer = "{\"ok\":true,\"profiles\":[{}]}\n" },
	     { .answer = "{\"ok\":true,\"profiles\":[]}\n" });
	assert_int_equal(COMMAND(cmd_status, "7"), 0);
	assert_true(fake__file_has("out", "process     4711  ./service 60\n"));
	assert_true(fake__file_has("out", "rate        2^-20 (2 rates"));
	assert_true(fake__file_has("out", "domains     0, 2, and"));
	assert_true(fake__file_has("out", "lost        output_full: 4\n"));
	assert_true(fake__file_has("out", "       2 alive      2^-1                 1000         "
					  "    20             30          9        8\n"));
	/* Whatever a daemon leaves out. */
	assert_int_equal(COMMAND(cmd_status, "7"), 0);
	assert_int_equal(COMMAND(cmd_status, "7"), 1);
	fake__expect_file("err", "heapsonde: no profile 7\n");
	fake__join();
	fake__expect(0, "{\"op\":\"status\",\"profile\":7}");
	fake__end();
}

/* ---- follow ---- */

#define SUMMARY "{\"type\":\"summary\",\"reason\":\"interrupted\"}\n"

static void follows_to_the_end(void **state)
{
	(void)state;
	FAKE({ .answer = OK "{\"type\":\"header\"}\n{\"type\":",
	       .later = "\"profile\"}\n" SUMMARY },
	     { .answer = OK "{\"type\":\"header\"}\n{\"type\":\"alloc" },
	     { .answer = "{\"ok\":false,\"code\":\"ENOENT\",\"error\":\"no profile 7\"}\n" });
	assert_int_equal(COMMAND(cmd_follow, "7"), 0);
	fake__expect_file("out", "{\"type\":\"header\"}\n{\"type\":\"profile\"}\n" SUMMARY);
	fake__expect_file("err", "");
	/* The daemon dies: whole lines only, and an error. */
	assert_int_equal(COMMAND(cmd_follow, "7"), 1);
	fake__expect_file("out", "{\"type\":\"header\"}\n");
	assert_true(fake__file_has("err", "before the end of profile 7"));
	assert_int_equal(COMMAND(cmd_follow, "7"), 1);
	fake__expect_file("err", "heapsonde: no profile 7\n");
	fake__join();
	fake__expect(0, "{\"op\":\"follow\",\"profile\":7}");
	fake__end();
}

static void wait_for_output(const char *text)
{
	for (int i = 0; i < 6000 && !fake__file_has("out", text); i++)
		usleep(10000);
	assert_true(fake__file_has("out", text));
}

static void follows_until_a_signal(void **state)
{
	char *argv[] = { "heapsonde follow", "7", NULL };
	pid_t pid;

	(void)state;
	fake__make_file("out", "");
	FAKE({ .answer = OK "{\"type\":\"header\"}\n{\"type\":", .closing = "" });
	pid = fake__start_command(cmd_follow, argv);
	wait_for_output("header");
	kill(pid, SIGINT);
	assert_int_equal(fake__wait_command(pid), 0);
	fake__expect_file("out", "{\"type\":\"header\"}\n");
	fake__expect_file("err", "");
	fake__join();
	fake__end();
}

static int follow_to_nobody(int argc, char **argv)
{
	int fds[2];

	if (pipe(fds))
		return 99;
	dup2(fds[1], STDOUT_FILENO);
	close(fds[0]);
	close(fds[1]);
	return cmd_follow(argc, argv);
}

static int follow_to_a_full_disk(int argc, char **argv)
{
	dup2(open("/dev/full", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
	return cmd_follow(argc, argv);
}

/* Noticed while nothing is written, too. */
static void follow_ends_with_its_output(void **state)
{
	(void)state;
	FAKE({ .answer = OK, .closing = "" }, { .answer = OK SUMMARY, .closing = "" });
	assert_int_equal(COMMAND(follow_to_nobody, "7"), 1);
	fake__expect_file("err", "heapsonde: cannot write the output: Broken pipe\n");
	assert_int_equal(COMMAND(follow_to_a_full_disk, "7"), 1);
	fake__expect_file("err", "heapsonde: cannot write the output: No space left on device\n");
	fake__join();
	fake__end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts),
		cmocka_unit_test(starts_with_a_file),
		cmocka_unit_test(a_start_that_is_refused_changes_no_file),
		cmocka_unit_test(refuses_usage),
		cmocka_unit_test(changes_profiles),
		cmocka_unit_test(shows_the_status),
		cmocka_unit_test(shows_wild_numbers),
		cmocka_unit_test(shows_one_profile),
		cmocka_unit_test(follows_to_the_end),
		cmocka_unit_test(follows_until_a_signal),
		cmocka_unit_test(follow_ends_with_its_output),
	};

	cli__init();
	return cmocka_run_group_tests(tests, fake__setup, fake__cleanup);
}
