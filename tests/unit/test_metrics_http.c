/* SPDX-License-Identifier: BSD-2-Clause */
/* The metrics over real sockets, with the loop run by hand. */
#include "tests/unit/metrics_snapshots.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "user/daemon/metrics.h"
#include "user/daemon/sandbox.h"

#define DEADLINE_MS 60000
#define ANSWER_BYTES (1 << 20)

static char answer[ANSWER_BYTES];
static int n_snapshots;
static bool is_short_of_memory;

static json_t *snapshot(void *ctx)
{
	n_snapshots++;
	if (is_short_of_memory)
		return NULL;
	return a_snapshot(json_pack("[o]", a_target(4711, "busy", 2, n_snapshots, 0, 0)),
			  json_pack("[o]", a_profile(7, 4711, "sampling", *(int *)ctx)));
}

static struct metrics *start(const char *addr_port)
{
	static int n = 10;
	struct metrics *m = NULL;
	struct hs_error err = { "" };

	if (metrics__new(&m, addr_port, snapshot, &n, &err))
		fail_msg("%s", err.text);
	assert_true(metrics__fd(m) >= 0);
	return m;
}

static int connect_to(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Is the answer to a GET all there? */
static bool is_whole(size_t len)
{
	const char *body = strstr(answer, "\r\n\r\n"), *length = strstr(answer, "Content-Length: ");

	return body && length &&
	       len >= (size_t)(body + 4 - answer) + strtoul(length + 16, NULL, 10);
}

/*
 * Run the server until fd has an answer with its body, or, if to_end, is closed.
 * Returns its length. Without an answer for wait_ms: 0.
 */
static size_t receive(struct metrics *m, int fd, bool to_end, int wait_ms)
{
	struct pollfd p[] = { { .fd = fd, .events = POLLIN },
			      { .fd = m ? metrics__fd(m) : -1, .events = POLLIN } };
	size_t len = 0;

	answer[0] = 0;
	while (len < sizeof(answer) - 1) {
		if (poll(p, 2, wait_ms) == 0)
			return 0;
		if (p[1].revents)
			metrics__run(m);
		if (p[0].revents) {
			ssize_t n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0);

			if (n <= 0)
				break;
			len += (size_t)n;
			answer[len] = 0;
			if (!to_end && is_whole(len))
				break;
		}
	}
	return len;
}

/* One request on a connection of its own, until that is closed. */
static const char *ask(struct metrics *m, const char *request)
{
	int fd = connect_to(metrics__port(m));

	say(fd, request);
	if (!receive(m, fd, true, DEADLINE_MS))
		fail_msg("no answer to %.40s", request);
	close(fd);
	return answer;
}

static void expect_status(const char *text, int status)
{
	char expected[32];

	snprintf(expected, sizeof(expected), "HTTP/1.1 %d ", status);
	if (strncmp(text, expected, strlen(expected)))
		fail_msg("not %d but: %.60s", status, text);
}

#define END "Host: x\r\nConnection: close\r\n\r\n"

static void get(void **state)
{
	struct metrics *m = start("127.0.0.1:0");
	const char *text = ask(m, "GET /metrics HTTP/1.1\r\n" END), *body;

	(void)state;
	expect_status(text, 200);
	assert_non_null(strstr(text, "\r\nContent-Type: text/plain; version=0.0.4"));
	body = strstr(text, "\r\n\r\n") + 4;
	assert_non_null(strstr(body, "\nheapsonde_targets 1\n"));
	check_with_promtool(body, strlen(body));
	text = ask(m, "HEAD /metrics HTTP/1.1\r\n" END);
	expect_status(text, 200);
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
	text = ask(m, "GET / HTTP/1.1\r\n" END);
	expect_status(text, 200);
	assert_non_null(strstr(text, "href=\"/metrics\""));
	metrics__free(m);
}

static void refusals(void **state)
{
	static const struct {
		const char *request;
		int status;
	} requests[] = {
		{ "GET /metric HTTP/1.1\r\n" END, 404 },
		{ "GET /metrics/ HTTP/1.1\r\n" END, 404 },
		{ "GET /../metrics HTTP/1.1\r\n" END, 404 },
		{ "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n" END "abc", 405 },
		{ "PUT / HTTP/1.1\r\nContent-Length: 1000000\r\n" END, 405 },
		{ "DELETE /metrics HTTP/1.1\r\n" END, 405 },
		{ "OPTIONS * HTTP/1.1\r\n" END, 405 },
		{ "GET /metrics HTTP/1.1\r\nContent-Length: 3\r\n" END "abc", 413 },
		{ "GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" END "3\r\nabc\r\n",
		  413 },
	};
	struct metrics *m = start("127.0.0.1:0");

	(void)state;
	n_snapshots = 0;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		expect_status(ask(m, requests[i].request), requests[i].status);
	assert_non_null(strstr(ask(m, requests[3].request), "Allow: GET, HEAD"));
	assert_int_equal(n_snapshots, 0);
	metrics__free(m);
}

/* What is no HTTP, or has no end, is closed, and nobody else notices. */
static void nonsense(void **state)
{
	struct metrics *m = start("127.0.0.1:0");
	char header[METRICS_CONNECTION_BYTES + 100];
	int fd = connect_to(metrics__port(m));

	(void)state;
	say(fd, "\x16\x03\x01\x02\r\n\r\n\r\n");
	receive(m, fd, true, DEADLINE_MS);
	close(fd);
	memset(header, 'a', sizeof(header));
	memcpy(header, "GET /", 5);
	header[sizeof(header) - 1] = 0;
	fd = connect_to(metrics__port(m));
	say(fd, header);
	receive(m, fd, true, DEADLINE_MS);
	assert_true(!*answer || !strncmp(answer, "HTTP/1.1 4", 10));
	close(fd);
	expect_status(ask(m, "GET /metrics HTTP/1.1\r\n" END), 200);
	metrics__free(m);
}

static void no_memory(void **state)
{
	struct metrics *m = start("127.0.0.1:0");

	(void)state;
	is_short_of_memory = true;
	expect_status(ask(m, "GET /metrics HTTP/1.1\r\n" END), 503);
	is_short_of_memory = false;
	expect_status(ask(m, "GET /metrics HTTP/1.1\r\n" END), 200);
	metrics__free(m);
}

static void one_snapshot_for_many(void **state)
{
	struct timespec pause = { .tv_nsec = (METRICS_FRESH_MS + 20) * 1000000L };
	struct metrics *m = start("127.0.0.1:0");
	int fd = connect_to(metrics__port(m)), before;

	(void)state;
	n_snapshots = 0;
	for (int i = 0; i < 50; i++) {
		say(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
		assert_true(receive(m, fd, false, DEADLINE_MS) > 0);
		expect_status(answer, 200);
	}
	/* However slow this machine is, not one for each. */
	assert_in_range(n_snapshots, 1, 49);
	before = n_snapshots;
	nanosleep(&pause, NULL);
	say(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_true(receive(m, fd, false, DEADLINE_MS) > 0);
	assert_int_equal(n_snapshots, before + 1);
	close(fd);
	metrics__free(m);
}

static void too_many_connections(void **state)
{
	struct metrics *m = start("127.0.0.1:0");
	int fds[METRICS_CONNECTIONS_MAX + 1], last = METRICS_CONNECTIONS_MAX;

	(void)state;
	for (int i = 0; i <= last; i++) {
		fds[i] = connect_to(metrics__port(m));
		say(fds[i], "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	}
	for (int i = 0; i < last; i++) {
		assert_true(receive(m, fds[i], false, DEADLINE_MS) > 0);
		expect_status(answer, 200);
	}
	/* Kept open, they keep the last one waiting, until one goes. */
	assert_int_equal(receive(m, fds[last], false, 300), 0);
	close(fds[0]);
	assert_true(receive(m, fds[last], false, DEADLINE_MS) > 0);
	expect_status(answer, 200);
	for (int i = 1; i <= last; i++)
		close(fds[i]);
	metrics__free(m);
}

/* ---- addresses ---- */

static void refuses(const char *addr_port, int code)
{
	struct metrics *m = NULL;
	struct hs_error err = { "" };
	int ret = metrics__new(&m, addr_port, snapshot, NULL, &err);

	if (ret != code || !strstr(err.text, addr_port))
		fail_msg("%s: %d, %s", addr_port, ret, err.text);
	assert_null(m);
}

static void addresses(void **state)
{
	static const char *const good[] = { ":0", "*:0", "localhost:0", "127.0.0.1:00" };
	static const char *const bad[] = {
		"",           "9000",           ":",          "127.0.0.1", "::1:0",
		"[::1]",      "[]:1",           "127.0.0.1:", ":-1",       ":99999",
		":999999999", "127.0.0.1:http", ": 1",        "1.2.3.4:x", "[::1:1",
	};
	struct metrics *m;
	char taken[32];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		m = start(good[i]);
		if (i < 2) /* all addresses: IPv4's too */
			expect_status(ask(m, "GET / HTTP/1.1\r\n" END), 200);
		metrics__free(m);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses(bad[i], -EINVAL);
	m = start("127.0.0.1:0");
	snprintf(taken, sizeof(taken), "127.0.0.1:%d", metrics__port(m));
	refuses(taken, -EADDRINUSE);
	metrics__free(m);
	metrics__free(NULL);
}

static void ipv6(void **state)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool is_there = fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a));
	struct metrics *m = NULL;
	struct hs_error err;

	(void)state;
	close(fd);
	if (!is_there) { /* on a machine without it, it fails, but not because of its form */
		assert_int_not_equal(metrics__new(&m, "[::1]:0", snapshot, NULL, &err), 0);
		assert_null(strstr(err.text, "not an address"));
		return;
	}
	m = start("[::1]:0");
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	a.sin6_port = htons((uint16_t)metrics__port(m));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	say(fd, "GET /metrics HTTP/1.1\r\n" END);
	assert_true(receive(m, fd, true, DEADLINE_MS) > 0);
	expect_status(answer, 200);
	close(fd);
	metrics__free(m);
}

/* ---- within the sandbox ---- */

static void serve(struct metrics *m) __attribute__((noreturn));

static void serve(struct metrics *m)
{
	const struct kernel_features kernel = { .uprobe_multi = true, .uprobe_multi_by_pid = true };
	struct pollfd p = { .fd = metrics__fd(m), .events = POLLIN };
	struct hs_error err;

	if (sandbox__enter(&kernel, &err))
		_exit(1);
	while (poll(&p, 1, DEADLINE_MS) > 0)
		metrics__run(m);
	_exit(0);
}

static void in_the_sandbox(void **state)
{
	struct metrics *m = start("127.0.0.1:0");
	int port = metrics__port(m), fd, status = 0;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		serve(m);
	for (int i = 0; i < 3; i++) {
		fd = connect_to(port);
		say(fd, "GET /metrics HTTP/1.1\r\n" END);
		assert_true(receive(NULL, fd, true, DEADLINE_MS) > 0);
		expect_status(answer, 200);
		assert_non_null(strstr(answer, "\nheapsonde_targets 1\n"));
		close(fd);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	/* It had not died before. */
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	metrics__free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get),
		cmocka_unit_test(refusals),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(one_snapshot_for_many),
		cmocka_unit_test(too_many_connections),
		cmocka_unit_test(addresses),
		cmocka_unit_test(ipv6),
		cmocka_unit_test(in_the_sandbox),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
