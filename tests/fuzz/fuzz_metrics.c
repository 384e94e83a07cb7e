/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests for metrics, over HTTP.
 *
 * In:   pieces (fuzz__piece): what a client writes at a time.
 * Out:  user/daemon/metrics.h, all of it but the sockets' beginning: libmicrohttpd reads the
 *       request, and what it makes of it is ours to judge.
 */
#include "tests/fuzz/fuzz.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/daemon/metrics.h"

#define PIECES_MAX 16
#define RUNS_MAX 4
#define CONNECT_TRIES 20

static json_t *snapshot(void *ctx)
{
	(void)ctx;
	return json_pack("{s:[{s:i,s:s}],s:[]}", "targets", "pid", 1, "command", "a \"b\"\n",
			 "profiles");
}

/* Only what is there now: no input may take longer than another. */
static void run(struct metrics *m)
{
	struct pollfd p = { .fd = metrics__fd(m), .events = POLLIN };

	for (int i = 0; i < RUNS_MAX && poll(&p, 1, 0) > 0; i++)
		metrics__run(m);
}

/* Never waits for long: the server is this thread, and must have let the last one go. */
static int connect_to(struct metrics *m)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)metrics__port(m)),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), n = 0;
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	CHECK(fd >= 0);
	CHECK(!connect(fd, (struct sockaddr *)&a, sizeof(a)) || errno == EINPROGRESS);
	while (poll(&p, 1, 1000) != 1) {
		CHECK(n++ < CONNECT_TRIES);
		run(m);
	}
	CHECK(p.revents == POLLOUT);
	return fd;
}

/* Whatever was asked, an answer is HTTP, with a status. */
static bool hear(int fd, bool is_first)
{
	char answer[16384];
	ssize_t n = recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT);

	/* What comes later may begin anywhere within an answer. */
	if (n <= 0 || !is_first)
		return is_first;
	answer[n] = '\0';
	CHECK(!strncmp(answer, "HTTP/1.", 7));
	CHECK(answer[9] >= '1' && answer[9] <= '5'); /* 100: it may send its body */
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct metrics *m;
	const struct linger at_once = { .l_onoff = 1 };
	struct fuzz_bytes b = { data, size };
	struct hs_error err;
	bool is_first = true;
	int fd;

	if (!m)
		CHECK(!metrics__new(&m, "127.0.0.1:0", snapshot, NULL, &err));
	fd = connect_to(m);
	/* Without that each input leaves a socket that waits for a minute. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	for (int i = 0; i < PIECES_MAX && b.left; i++) {
		struct fuzz_bytes piece = fuzz__piece(&b);

		if (send(fd, piece.at, piece.left, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		run(m);
		is_first = hear(fd, is_first);
	}
	close(fd);
	run(m);
	return 0;
}
