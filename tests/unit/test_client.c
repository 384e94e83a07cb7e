/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's side of a connection: answers, errors, what comes after a line, and
 * daemons that vanish, talk nonsense or are not there.
 */
#include "tests/unit/fake_daemon.h"

#include <errno.h>

#include "user/client/client.h"

static json_t *status_request(void)
{
	json_t *request = json_pack("{s:s}", "op", "status");

	assert_non_null(request);
	return request;
}

/* Ask for the status. The answer is in *answer, or the error in err. */
static int ask(json_t **answer, struct hs_error *err)
{
	json_t *request = status_request();
	int ret = client__request(NULL, request, answer, err);

	json_decref(request);
	return ret;
}

static void finds_the_socket(void **state)
{
	(void)state;
	assert_string_equal(client__path("/x"), "/x");
	assert_string_equal(client__path(NULL), fake.path);
	setenv("HEAPSONDE_SOCKET", "", 1);
	assert_string_equal(client__path(NULL), WIRE_SOCKET_DEFAULT);
	unsetenv("HEAPSONDE_SOCKET");
	assert_string_equal(client__path(NULL), WIRE_SOCKET_DEFAULT);
	setenv("HEAPSONDE_SOCKET", fake.path, 1);
}

static void gets_answers(void **state)
{
	struct hs_error err;
	json_t *answer;

	(void)state;
	FAKE({ .answer = "{\"ok\":true,\"profiles\":[]}\n" });
	assert_int_equal(ask(&answer, &err), 0);
	assert_true(json_is_array(json_object_get(answer, "profiles")));
	json_decref(answer);
	fake__join();
	fake__expect(0, "{\"op\":\"status\"}");
	assert_false(fake.had_fd[0]);
	fake__end();
}

/* In pieces, and longer than a socket's buffer. */
static void gets_long_answers(void **state)
{
	static char text[3000000] = "{\"ok\":true,\"x\":\"";
	const struct exchange script[] = { { .answer = text, .later = "\"}\n" } };
	struct hs_error err;
	json_t *answer;

	(void)state;
	memset(text + strlen(text), 'x', sizeof(text) - 1 - strlen(text));
	fake__begin(script, 1);
	assert_int_equal(ask(&answer, &err), 0);
	assert_int_equal(json_string_length(json_object_get(answer, "x")), sizeof(text) - 17);
	json_decref(answer);
	fake__join();
	fake__end();
}

static void passes_a_descriptor(void **state)
{
	json_t *request = status_request(), *answer;
	struct client c;
	int fds[2];
	char text[8] = "";

	(void)state;
	FAKE({ .answer = "{\"ok\":true}\n", .output = "hello" });
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(client__connect(&c, fake.path, NULL), 0);
	assert_int_equal(client__ask(&c, request, fds[1], &answer, NULL), 0);
	client__close(&c);
	client__close(&c);
	close(fds[1]);
	assert_int_equal(read(fds[0], text, sizeof(text)), 5);
	assert_string_equal(text, "hello");
	close(fds[0]);
	json_decref(answer);
	json_decref(request);
	fake__join();
	assert_true(fake.had_fd[0]);
	fake__end();
}

static void turns_errors_into_errnos(void **state)
{
	struct hs_error err;
	json_t *answer;

	(void)state;
	FAKE({ .answer = "{\"ok\":false,\"code\":\"ENOENT\",\"error\":\"no profile 7\"}\n" },
	     { .answer = "{\"ok\":false,\"code\":\"EDQUOT\",\"error\":\"too\\nmany\"}\n" },
	     { .answer = "{\"ok\":false,\"code\":\"ENONSENSE\",\"error\":\"hm\"}\n" },
	     { .answer = "{\"ok\":false,\"code\":\"EPERM\"}\n" }, { .answer = "{\"ok\":false}\n" });
	assert_int_equal(ask(&answer, &err), -ENOENT);
	assert_string_equal(err.text, "no profile 7");
	/* A message is one line. */
	assert_int_equal(ask(&answer, &err), -EDQUOT);
	assert_string_equal(err.text, "too?many");
	assert_int_equal(ask(&answer, &err), -EPROTO);
	assert_string_equal(err.text, "hm");
	assert_int_equal(ask(&answer, &err), -EPERM);
	assert_int_equal(ask(&answer, &err), -EPROTO);
	fake__join();
	fake__end();
}

/* Who listens may be anybody, and commands show what he says. */
static void takes_control_characters_out(void **state)
{
	const json_t *profile, *lost;
	struct hs_error err;
	json_t *answer;

	(void)state;
	FAKE({ .answer = "{\"ok\":true,\"profiles\":[{\"command\":\"a\\u001b[2Jb\\u009b\\u007f "
			 "\\u00e9\","
			 "\"lost\":{\"ring_full\":1,\"x\\u001b\":2}}]}\n" });
	assert_int_equal(ask(&answer, &err), 0);
	profile = json_array_get(json_object_get(answer, "profiles"), 0);
	assert_string_equal(json_string_value(json_object_get(profile, "command")),
			    "a?[2Jb??? \u00e9");
	lost = json_object_get(profile, "lost");
	assert_int_equal(json_object_size(lost), 1);
	assert_int_equal(json_integer_value(json_object_get(lost, "ring_full")), 1);
	json_decref(answer);
	fake__join();
	fake__end();
}

static void refuses_what_is_no_answer(void **state)
{
	struct hs_error err;
	json_t *answer;

	(void)state;
	FAKE({ .answer = "SSH-2.0-OpenSSH_9.2\n" }, { .answer = "[true]\n" }, { .answer = "{}\n" },
	     { .answer = "\n" }, { .answer = "{\"ok\":1}\n" },
	     { .answer = "{\"ok\":false,\"error\":\"\"}\n" });
	for (int i = 0; i < 6; i++) {
		assert_int_equal(ask(&answer, &err), -EPROTO);
		assert_non_null(strstr(err.text, "is no heapsonde daemon"));
	}
	fake__join();
	fake__end();
}

static void notices_that_the_daemon_vanishes(void **state)
{
	struct hs_error err;
	json_t *answer;

	(void)state;
	FAKE({ .answer = NULL }, { .answer = "{\"ok\":tr" }, { .at_once = true },
	     /* What it said before it closed is what counts. */
	     { .at_once = true,
	       .answer = "{\"ok\":false,\"code\":\"EMSGSIZE\",\"error\":\"long\"}\n" });
	assert_int_equal(ask(&answer, &err), -ECONNRESET);
	assert_non_null(strstr(err.text, "closed the connection"));
	assert_int_equal(ask(&answer, &err), -ECONNRESET);
	assert_non_null(strstr(err.text, "in the middle of an answer"));
	assert_int_equal(ask(&answer, &err), -ECONNRESET);
	assert_int_equal(ask(&answer, &err), -EMSGSIZE);
	fake__join();
	fake__end();
}

/* Three lines in one breath: each is taken alone, and the rest is still there. */
static void leaves_what_comes_after_a_line(void **state)
{
	json_t *request = status_request(), *answer;
	char rest[64] = "";
	struct client c;

	(void)state;
	FAKE({ .answer = "{\"ok\":true,\"profile\":7}\n{\"ok\":true,\"x\":1}\n"
			 "{\"type\":\"header\"}\nrest" });
	assert_int_equal(client__connect(&c, NULL, NULL), 0);
	assert_int_equal(client__ask(&c, request, -1, &answer, NULL), 0);
	assert_int_equal(json_integer_value(json_object_get(answer, "profile")), 7);
	json_decref(answer);
	assert_int_equal(client__receive(&c, &answer, NULL), 1);
	assert_int_equal(json_integer_value(json_object_get(answer, "x")), 1);
	json_decref(answer);
	assert_int_equal(recv(c.fd, rest, sizeof(rest) - 1, MSG_WAITALL), 22);
	assert_string_equal(rest, "{\"type\":\"header\"}\nrest");
	client__close(&c);
	json_decref(request);
	fake__join();
	fake__end();
}

static void hears_the_closing_line(void **state)
{
	json_t *request = status_request(), *answer;
	struct client c;

	(void)state;
	FAKE({ .answer = "{\"ok\":true}\n", .closing = "{\"ok\":true,\"profile\":9}\n" });
	assert_int_equal(client__connect(&c, NULL, NULL), 0);
	assert_int_equal(client__ask(&c, request, -1, &answer, NULL), 0);
	json_decref(answer);
	client__shutdown(&c);
	assert_int_equal(client__receive(&c, &answer, NULL), 1);
	assert_int_equal(json_integer_value(json_object_get(answer, "profile")), 9);
	json_decref(answer);
	assert_int_equal(client__receive(&c, &answer, NULL), -ECONNRESET);
	client__close(&c);
	json_decref(request);
	fake__join();
	fake__end();
}

static void says_how_to_start_a_daemon(void **state)
{
	static const struct exchange none[1];
	char long_path[200];
	struct hs_error err;
	json_t *answer;
	struct client c;

	(void)state;
	/* No such file; and a socket that nobody listens on any more. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ask(&answer, &err), i ? -ECONNREFUSED : -ENOENT);
		assert_non_null(strstr(err.text, fake.path));
		assert_non_null(strstr(err.text, "sudo heapsonde daemon"));
		assert_false(client__is_there(NULL));
		fake__begin(none, 0);
		assert_true(client__is_there(NULL));
		assert_int_equal(pthread_join(fake.thread, NULL), 0);
		close(fake.fd);
	}
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	assert_int_equal(client__connect(&c, long_path, &err), -ENAMETOOLONG);
	client__close(&c);
	assert_int_equal(client__connect(&c, "/dev/null", &err), -ECONNREFUSED);
	unlink(fake.path);
}

static void sends_no_request_that_is_too_long(void **state)
{
	json_t *request = status_request(), *answer, *domains = json_array();
	struct hs_error err;
	struct client c;

	(void)state;
	for (int i = 0; i < 10000; i++)
		json_array_append_new(domains, json_integer(1000000 + i));
	json_object_set_new(request, "domains", domains);
	FAKE({ .answer = NULL });
	assert_int_equal(client__connect(&c, NULL, &err), 0);
	assert_int_equal(client__ask(&c, request, -1, &answer, &err), -EMSGSIZE);
	client__close(&c);
	json_decref(request);
	fake__join();
	fake__end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_socket),
		cmocka_unit_test(gets_answers),
		cmocka_unit_test(gets_long_answers),
		cmocka_unit_test(passes_a_descriptor),
		cmocka_unit_test(turns_errors_into_errnos),
		cmocka_unit_test(takes_control_characters_out),
		cmocka_unit_test(refuses_what_is_no_answer),
		cmocka_unit_test(notices_that_the_daemon_vanishes),
		cmocka_unit_test(leaves_what_comes_after_a_line),
		cmocka_unit_test(hears_the_closing_line),
		cmocka_unit_test(says_how_to_start_a_daemon),
		cmocka_unit_test(sends_no_request_that_is_too_long),
	};

	return cmocka_run_group_tests(tests, fake__setup, fake__cleanup);
}
