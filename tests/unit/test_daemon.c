/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The supervisor, with a real socket and real worker processes that attach to
 * nothing: who may do what, what becomes of profiles whose worker bounces, finishes
 * or dies, and clients that misbehave. In the end it has no descriptor more than
 * before.
 */
#include "tests/unit/fake_workers.h"

#include <poll.h>
#include <time.h>

#define ALICE 60001u
#define BOB 60002u

#define STATUS "{\"op\":\"status\",\"profile\":%d}"
#define STOP "{\"op\":\"stop\",\"profile\":%d}"
#define DISCARD "{\"op\":\"discard\",\"profile\":%d}"
#define FOLLOW "{\"op\":\"follow\",\"profile\":%d}"
#define FINISH "{\"op\":\"rate\",\"profile\":%d,\"rate\":0.5}"
#define CRASH "{\"op\":\"rate\",\"profile\":%d,\"rate\":0.25}"
#define STAY "{\"op\":\"rate\",\"profile\":%d,\"rate\":0.125}"

static int set_up(void **state)
{
	static struct fake_daemon d;

	fake__begin(&d);
	*state = &d;
	return 0;
}

static int tear_down(void **state)
{
	fake__end(*state);
	return 0;
}

/* What the list says of a profile, "" if it is not in there. */
static const char *listed(const struct fake_daemon *d, int profile, const char *member)
{
	static char text[64];
	json_t *list = fake__list(d, 0), *status;
	size_t i;

	text[0] = 0;
	json_array_foreach(list, i, status) if (json_integer_value(json_object_get(
							status, "profile")) == profile)
	{
		const char *value = json_string_value(json_object_get(status, member));

		snprintf(text, sizeof(text), "%s", value ? value : "null");
	}
	json_decref(list);
	return text;
}

/* Wait up to a minute for it. */
static void wait_for_state(const struct fake_daemon *d, int profile, const char *state)
{
	for (int i = 0; i < 6000 && strcmp(listed(d, profile, "state"), state); i++)
		usleep(10000);
	assert_string_equal(listed(d, profile, "state"), state);
}

/* Wait until the daemon has this many children. */
static void wait_for_workers(const struct fake_daemon *d, int n)
{
	char path[64], text[4096];
	int found = -1;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", d->pid, d->pid);
	for (int i = 0; i < 6000 && found != n; i++) {
		FILE *f = fopen(path, "r");

		found = 0;
		while (f && fscanf(f, "%4095s", text) == 1)
			found++;
		if (f)
			fclose(f);
		usleep(10000);
	}
	assert_int_equal(found, n);
}

/* ---- the life of a profile ---- */

static void lives_and_dies(void **state)
{
	const struct fake_daemon *d = *state;
	int first = fake__start_on(d, ALICE, 4711, FAKE_OK), second;

	assert_int_equal(first, 1);
	assert_string_equal(listed(d, first, "state"), "sampling");
	second = fake__start_on(d, ALICE, 4711, FAKE_OK);
	assert_int_equal(second, 2);
	wait_for_workers(d, 1);
	assert_int_equal(fake__code(d, ALICE, STOP, first), 0);
	assert_string_equal(listed(d, first, "state"), "stopped");
	assert_int_equal(fake__code(d, ALICE, FOLLOW, first), 0);
	assert_int_equal(fake__code(d, ALICE, STATUS, first), 0);
	assert_int_equal(fake__code(d, ALICE, DISCARD, first), 0);
	assert_string_equal(listed(d, first, "state"), "");
	assert_int_equal(fake__code(d, ALICE, DISCARD, first), -EALREADY);
	assert_int_equal(fake__code(d, 0, DISCARD, second), 0);
	/* An idle worker is let go. */
	wait_for_workers(d, 0);
}

static void hands_the_output_on(void **state)
{
	const struct fake_daemon *d = *state;
	char text[64] = "", expected[64];
	json_t *answer;
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	answer = fake__ask_with(d, ALICE, "{\"op\":\"start\",\"pid\":4712}", fds[1]);
	assert_int_equal(wire__code(answer), 0);
	json_decref(answer);
	close(fds[1]);
	/* To its end: the supervisor has none of it. */
	assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
	snprintf(expected, sizeof(expected), "uid %u gid %u pid 4712\n", ALICE, getegid());
	assert_string_equal(text, expected);
	assert_int_equal(read(fds[0], text, sizeof(text)), 0);
	close(fds[0]);
}

static void keeps_users_apart(void **state)
{
	const struct fake_daemon *d = *state;
	int profile = fake__start_on(d, ALICE, 4711, FAKE_OK);
	json_t *list;

	assert_int_equal(fake__code(d, BOB, STATUS, profile), -ENOENT);
	assert_int_equal(fake__code(d, BOB, STOP, profile), -ENOENT);
	assert_int_equal(fake__code(d, BOB, DISCARD, profile), -ENOENT);
	assert_int_equal(fake__code(d, BOB, FOLLOW, profile), -ENOENT);
	list = fake__list(d, BOB);
	assert_int_equal(json_array_size(list), 0);
	json_decref(list);
	list = fake__list(d, ALICE);
	assert_int_equal(json_array_size(list), 1);
	json_decref(list);
	assert_int_equal(fake__code(d, 0, STOP, profile), 0);
	assert_int_equal(fake__code(d, 0, STOP, 99), -ENOENT);
}

static void keeps_what_has_finished(void **state)
{
	const struct fake_daemon *d = *state;
	int profile = fake__start_on(d, ALICE, 4711, FAKE_OK);
	json_t *answer;

	assert_int_equal(fake__code(d, ALICE, FINISH, profile), 0);
	assert_string_equal(listed(d, profile, "state"), "finished");
	wait_for_workers(d, 0);
	assert_int_equal(fake__code(d, ALICE, STATUS, profile), 0);
	assert_int_equal(fake__code(d, ALICE, STOP, profile), -EALREADY);
	assert_int_equal(fake__code(d, ALICE, FOLLOW, profile), -EALREADY);
	assert_int_equal(fake__code(d, ALICE, FINISH, profile), -EALREADY);
	assert_int_equal(fake__code(d, BOB, STATUS, profile), -ENOENT);
	answer = fake__ask_with(d, ALICE, "{\"op\":\"discard\",\"profile\":1}", -1);
	assert_int_equal(wire__code(answer), 0);
	assert_string_equal(json_string_value(json_object_get(answer, "output_error")),
			    "disk full");
	json_decref(answer);
	assert_int_equal(fake__code(d, ALICE, STATUS, profile), -EALREADY);
}

static void limits_users(void **state)
{
	const struct fake_daemon *d = *state;

	for (int i = 0; i < 4; i++)
		assert_int_equal(fake__start_on(d, ALICE, 4711, FAKE_OK), i + 1);
	assert_int_equal(fake__start_on(d, ALICE, 4711, FAKE_OK), -EDQUOT);
	assert_int_equal(fake__start_on(d, BOB, 4711, FAKE_OK), 5);
	assert_int_equal(fake__code(d, ALICE, DISCARD, 1), 0);
	assert_int_equal(fake__start_on(d, ALICE, 4711, FAKE_OK), 6);
	assert_int_equal(fake__code(d, ALICE, FINISH, 2), 0);
	/* Refused ones give their room back. */
	for (int i = 0; i < 8; i++)
		assert_int_equal(fake__start_on(d, ALICE, 4711, FAKE_REFUSE), -ESRCH);
	assert_int_equal(fake__start_on(d, ALICE, 4711, FAKE_OK), 15);
}

/* ---- workers ---- */

static void bounces_once(void **state)
{
	const struct fake_daemon *d = *state;
	int first = fake__start_on(d, ALICE, 4711, FAKE_OK);

	/* The second process of that number gets a worker of its own. */
	assert_int_equal(fake__start_on(d, ALICE, 4711, FAKE_BOUNCE_LATER), 2);
	wait_for_workers(d, 2);
	assert_int_equal(fake__start_on(d, ALICE, 4711, FAKE_OK), 3);
	wait_for_workers(d, 2);
	/* The old one still serves its own. */
	assert_int_equal(fake__code(d, ALICE, STOP, first), 0);
	assert_int_equal(fake__code(d, ALICE, DISCARD, first), 0);
	wait_for_workers(d, 1);
	assert_int_equal(fake__start_on(d, ALICE, 4712, FAKE_BOUNCE), -ESRCH);
	wait_for_workers(d, 1);
	assert_string_equal(listed(d, 3, "state"), "sampling");
}

static void survives_its_workers(void **state)
{
	const struct fake_daemon *d = *state;
	int profile = fake__start_on(d, ALICE, 4711, FAKE_OK);

	assert_int_equal(fake__start_on(d, ALICE, 4712, FAKE_CRASH), -ECONNRESET);
	assert_int_equal(fake__code(d, ALICE, CRASH, profile), -ECONNRESET);
	wait_for_state(d, profile, "finished");
	assert_string_equal(listed(d, profile, "reason"), "error");
	assert_string_equal(listed(d, 2, "state"), "");
	wait_for_workers(d, 0);
	assert_int_equal(fake__start_on(d, ALICE, 4711, FAKE_OK), 3);
}

/* Ask for a stop many times at once: the first answer, or NULL if there is none. */
static json_t *first_answer(const struct fake_daemon *d, int profile)
{
	struct pollfd fds[32];
	json_t *answer = NULL;

	for (size_t i = 0; i < COUNT(fds); i++) {
		fds[i] = (struct pollfd){ .fd = fake__connect_as(d, ALICE), .events = POLLIN };
		dprintf(fds[i].fd, STOP "\n", profile);
	}
	/* The daemon has read all requests when it has answered this one. */
	assert_int_equal(fake__code(d, BOB, STATUS, 99), -ENOENT);
	poll(fds, COUNT(fds), 20);
	for (size_t i = 0; i < COUNT(fds); i++) {
		if (!answer && fds[i].revents & POLLIN)
			answer = fake__line(fds[i].fd);
		close(fds[i].fd);
	}
	return answer;
}

static void does_not_wait_for_workers(void **state)
{
	const struct fake_daemon *d = *state;
	int profile = fake__start_on(d, ALICE, 4711, FAKE_DEAF);
	json_t *answer = NULL;

	/* Fill the channel: all but the last stay without an answer. */
	for (int n = 0; !answer && n < 200; n++)
		answer = first_answer(d, profile);
	assert_non_null(answer);
	assert_int_equal(wire__code(answer), -EAGAIN);
	assert_non_null(strstr(json_string_value(json_object_get(answer, "error")), "4711"));
	json_decref(answer);
	/* Others are served. */
	assert_true(fake__start_on(d, BOB, 4712, FAKE_OK) > 0);
}

static void does_not_believe_workers(void **state)
{
	const struct fake_daemon *d = *state;

	assert_int_equal(fake__start_on(d, ALICE, 4711, FAKE_OK), 1);
	assert_int_equal(fake__start_on(d, BOB, 4712, FAKE_FORGED), 2);
	assert_string_equal(listed(d, 1, "state"), "sampling");
	assert_string_equal(listed(d, 2, "state"), "sampling");
	assert_int_equal(fake__code(d, ALICE, STOP, 1), 0);
	assert_int_equal(fake__code(d, BOB, STOP, 2), 0);
}

/* ---- clients ---- */

/* What the daemon says to these bytes; the connection stays open on our side. */
static int code_of_bytes(const struct fake_daemon *d, const char *bytes, size_t n)
{
	int fd = fake__connect_as(d, ALICE), code;
	json_t *answer;

	assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
	answer = fake__line(fd);
	code = answer ? wire__code(answer) : -ECONNRESET;
	json_decref(answer);
	close(fd);
	return code;
}

static void answers_nonsense(void **state)
{
	const struct fake_daemon *d = *state;
	char *longer = malloc(WIRE_REQUEST_MAX_BYTES + 2);

	memset(longer, 'x', WIRE_REQUEST_MAX_BYTES + 2);
	assert_int_equal(code_of_bytes(d, "\n", 1), -EBADMSG);
	assert_int_equal(code_of_bytes(d, "GET / HTTP/1.0\r\n\r\n", 18), -EBADMSG);
	assert_int_equal(code_of_bytes(d, "{\"op\":\"stop\"}\n", 14), -EBADMSG);
	assert_int_equal(code_of_bytes(d, longer, WIRE_REQUEST_MAX_BYTES + 2), -EMSGSIZE);
	assert_int_equal(fake__code(d, ALICE, "{\"op\":\"start\",\"pid\":1,\"uid\":%d}", 0),
			 -EBADMSG);
	free(longer);
}

/* Descriptors that nobody asked for, clients that go away, many of them. */
static void leaks_nothing(void **state)
{
	const struct fake_daemon *d = *state;
	int n, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Once before, so that whatever is opened but once is; its connection may still be among
	 * them. */
	json_decref(fake__ask_with(d, ALICE, "{\"op\":\"status\"}", null));
	n = fake__n_open(d->pid);
	for (int i = 0; i < 300; i++) {
		int fd = fake__connect_as(d, ALICE);

		if (i % 3)
			dprintf(fd, "%s", i % 3 == 1 ? "{\"op\":" : "{\"op\":\"status\"}\n");
		close(fd);
		json_decref(fake__ask_with(d, ALICE, "{\"op\":\"status\"}", null));
		json_decref(fake__ask_with(d, ALICE, "{\"op\":\"stop\",\"profile\":9}", null));
	}
	for (int i = 0; i < 20; i++) {
		int profile = fake__start_on(d, ALICE, 4711 + i % 3, FAKE_OK);

		assert_true(profile > 0);
		fake__start_on(d, ALICE, 4720 + i % 3, FAKE_REFUSE);
		fake__start_on(d, ALICE, 4720 + i % 3, FAKE_BOUNCE);
		fake__start_on(d, ALICE, 4720 + i % 3, FAKE_CRASH);
		assert_int_equal(fake__code(d, ALICE, i % 2 ? DISCARD : CRASH, profile),
				 i % 2 ? 0 : -ECONNRESET);
	}
	wait_for_workers(d, 0);
	fake__expect_open_at_most(d->pid, n);
	close(null);
}

static void limits_connections(void **state)
{
	const struct fake_daemon *d = *state;
	int fds[64];

	for (size_t i = 0; i < COUNT(fds); i++)
		fds[i] = fake__connect_as(d, ALICE);
	assert_int_equal(code_of_bytes(d, "{\"op\":\"status\"}\n", 16), -EDQUOT);
	assert_int_equal(fake__code(d, BOB, STATUS, 1), -ENOENT);
	/* They are not forgotten. */
	dprintf(fds[63], STATUS "\n", 1);
	json_decref(fake__line(fds[63]));
	assert_int_equal(fake__code(d, ALICE, STATUS, 1), -ENOENT);
	/* After 10 s they are closed. */
	assert_null(fake__line(fds[0]));
	for (size_t i = 0; i < COUNT(fds); i++)
		close(fds[i]);
}

/* ---- beginning and end ---- */

static void lets_one_listen(void **state)
{
	struct fake_daemon *d = *state, second = *d;

	fake__run(&second);
	assert_int_equal(fake__wait(&second), EADDRINUSE);
	assert_int_equal(fake__start_on(d, ALICE, 4711, FAKE_OK), 1);
	/* A dead one's socket is replaced; its worker goes with it. */
	kill(d->pid, SIGKILL);
	waitpid(d->pid, NULL, 0);
	assert_true(fake__connect(d) < 0);
	fake__run(d);
	for (int i = 0, fd = -1; i < 6000 && fd < 0; i++) {
		usleep(10000);
		fd = fake__connect(d);
		if (fd >= 0)
			close(fd);
	}
	assert_int_equal(fake__start_on(d, ALICE, 4711, FAKE_OK), 1);
}

static void kills_workers_in_the_end(void **state)
{
	struct fake_daemon *d = *state;
	int profile = fake__start_on(d, ALICE, 4711, FAKE_OK);
	time_t begin = time(NULL);

	assert_int_equal(fake__code(d, ALICE, STAY, profile), 0);
	fake__end(d);
	/* They had their time; that they would have stayed for ever shows that they were killed. */
	assert_true(time(NULL) - begin >= 4);
	fake__begin(d);
}

int main(void)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test(lives_and_dies),
		cmocka_unit_test(hands_the_output_on),
		cmocka_unit_test(keeps_users_apart),
		cmocka_unit_test(keeps_what_has_finished),
		cmocka_unit_test(limits_users),
		cmocka_unit_test(bounces_once),
		cmocka_unit_test(survives_its_workers),
		cmocka_unit_test(does_not_wait_for_workers),
		cmocka_unit_test(does_not_believe_workers),
		cmocka_unit_test(answers_nonsense),
		cmocka_unit_test(leaks_nothing),
		cmocka_unit_test(limits_connections),
		cmocka_unit_test(lets_one_listen),
		cmocka_unit_test(kills_workers_in_the_end),
	};

	/* A daemon of its own for each. */
	for (size_t i = 0; i < COUNT(tests); i++) {
		tests[i].setup_func = set_up;
		tests[i].teardown_func = tear_down;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
