/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs of sockets, for the tests of user/wire.
 *
 * In:   nothing.
 * Out:  two connected sockets, and when they are closed a check that no descriptor
 *       has been left open meanwhile.
 */
#ifndef TEST_WIRE_PAIRS_H
#define TEST_WIRE_PAIRS_H

#include "tests/unit/records_make.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "user/wire/wire.h"

#define MAX_BYTES WIRE_REQUEST_MAX_BYTES

static inline int n_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

struct pair {
	int a, b, n_open_before;
};

/* Two sockets, b non-blocking. */
static inline struct pair pair_of(int type)
{
	struct pair p;
	int fds[2];

	p.n_open_before = n_open();
	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds), 0);
	p.a = fds[0];
	p.b = fds[1];
	assert_int_equal(fcntl(p.b, F_SETFL, O_NONBLOCK), 0);
	return p;
}

static inline void close_pair(struct pair *p)
{
	if (p->a >= 0)
		close(p->a);
	close(p->b);
	assert_int_equal(n_open(), p->n_open_before);
}

static inline void put(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* Receive until there is a result other than "more bytes". */
static inline int receive(int fd, struct wire_message *m, json_t **object)
{
	int ret;

	do {
		ret = wire__receive_line(fd, m, MAX_BYTES, object);
	} while (!ret);
	return ret;
}

static inline int peek(int fd, struct wire_message *m, json_t **object)
{
	int ret;

	do {
		ret = wire__peek_line(fd, m, MAX_BYTES, object);
	} while (!ret);
	return ret;
}

/* A line of n bytes, newline included. */
static inline char *line_of(size_t n)
{
	char *line = malloc(n + 1);

	assert_non_null(line);
	memset(line, ' ', n);
	line[0] = '{';
	line[n - 2] = '}';
	line[n - 1] = '\n';
	line[n] = 0;
	return line;
}

#endif /* TEST_WIRE_PAIRS_H */
