/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon that says what a test tells it to, on a socket in a temporary folder; and
 * commands run against it, in processes of their own.
 *
 * In:   a list of exchanges, one for each connection.
 * Out:  what was asked, and whether a descriptor came with it.
 */
#ifndef TEST_FAKE_DAEMON_H
#define TEST_FAKE_DAEMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/wire/wire.h"

#define FAKE_EXCHANGES_MAX 8

struct exchange {
	const char *answer;  /* sent as it is; NULL: nothing */
	const char *later;   /* sent 20 ms after that; NULL: nothing */
	const char *closing; /* sent when the client has closed its side; NULL: not waited for */
	const char *output;  /* written to the descriptor that came */
	bool at_once;        /* close without reading the request */
};

static struct {
	char dir[64], path[96];
	int fd;
	pthread_t thread;
	const struct exchange *script;
	size_t n_script;
	int fds[FAKE_EXCHANGES_MAX];
	json_t *asked[FAKE_EXCHANGES_MAX];
	bool had_fd[FAKE_EXCHANGES_MAX];
} fake;

static char *fake__file(const char *name)
{
	static char paths[8][128];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", fake.dir, name);
	return path;
}

static void fake__say(int fd, const char *text)
{
	size_t n = strlen(text);

	while (n) {
		ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		text += sent;
		n -= (size_t)sent;
	}
}

static void fake__serve(int fd, size_t i)
{
	const struct exchange *e = &fake.script[i];
	struct wire_message m;
	char byte;

	wire_message__init(&m);
	if (!e->at_once)
		while (!wire__receive_line(fd, &m, WIRE_REQUEST_MAX_BYTES, &fake.asked[i]))
			;
	fake.had_fd[i] = m.n_fds > 0;
	if (e->output && m.n_fds)
		dprintf(m.fds[0], "%s", e->output);
	wire_message__deinit(&m);
	if (e->answer)
		fake__say(fd, e->answer);
	if (e->later) {
		usleep(20000);
		fake__say(fd, e->later);
	}
	if (e->closing) {
		while (recv(fd, &byte, 1, 0) > 0)
			;
		fake__say(fd, e->closing);
	}
	close(fd);
}

static void *fake__serve_one(void *number)
{
	size_t i = (size_t)number;

	fake__serve(fake.fds[i], i);
	return NULL;
}

/* A thread for each connection: some last while others come. */
static void *fake__run(void *unused)
{
	pthread_t threads[FAKE_EXCHANGES_MAX];
	size_t n = 0;

	while (n < fake.n_script) {
		fake.fds[n] = accept4(fake.fd, NULL, NULL, SOCK_CLOEXEC);
		if (fake.fds[n] < 0 ||
		    pthread_create(&threads[n], NULL, fake__serve_one, (void *)n))
			break;
		n++;
	}
	while (n)
		pthread_join(threads[--n], NULL);
	return unused;
}

/* One for the whole group. */
static int fake__setup(void **state)
{
	(void)state;
	strcpy(fake.dir, "/tmp/heapsonde-client.XXXXXX");
	if (!mkdtemp(fake.dir))
		return -1;
	snprintf(fake.path, sizeof(fake.path), "%s/s", fake.dir);
	return setenv("HEAPSONDE_SOCKET", fake.path, 1);
}

static int fake__cleanup(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", fake.dir);
	return system(command);
}

static inline void fake__begin(const struct exchange *script, size_t n)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	assert_true(n <= FAKE_EXCHANGES_MAX);
	fake.script = script;
	fake.n_script = n;
	strcpy(address.sun_path, fake.path);
	unlink(fake.path);
	fake.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fake.fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fake.fd, 8), 0);
	assert_int_equal(pthread_create(&fake.thread, NULL, fake__run, NULL), 0);
}

/* Wait until the script has been played. */
static inline void fake__join(void)
{
	assert_int_equal(pthread_join(fake.thread, NULL), 0);
	close(fake.fd);
	unlink(fake.path);
}

/* Forget what was asked. */
static inline void fake__end(void)
{
	for (size_t i = 0; i < FAKE_EXCHANGES_MAX; i++) {
		json_decref(fake.asked[i]);
		fake.asked[i] = NULL;
		fake.had_fd[i] = false;
	}
}

#define FAKE(...)                                                                                  \
	static const struct exchange script[] = { __VA_ARGS__ };                                   \
	fake__begin(script, sizeof(script) / sizeof(script[0]))

/* Was exchange i asked this JSON? */
static inline void fake__expect(size_t i, const char *text)
{
	json_t *expected = json_loads(text, 0, NULL);

	assert_non_null(expected);
	if (!json_equal(fake.asked[i], expected))
		fail_msg("asked %s\nnot   %s", json_dumps(fake.asked[i], JSON_COMPACT), text);
	json_decref(expected);
}

/* ---- commands ---- */

/* Start a command (argv NULL-terminated) with stdout and stderr in the files out, err. */
static inline pid_t fake__start_command(int (*run)(int, char **), char **argv)
{
	int argc = 0;
	pid_t pid;

	while (argv[argc])
		argc++;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (!freopen(fake__file("out"), "w", stdout) ||
		    !freopen(fake__file("err"), "w", stderr))
			_exit(99);
		exit(run(argc, argv));
	}
	return pid;
}

static inline int fake__wait_command(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define COMMAND(run, ...)                                                                          \
	fake__wait_command(                                                                        \
		fake__start_command(run, (char *[]){ "heapsonde test", __VA_ARGS__, NULL }))

/* Is this what the file holds? */
static inline void fake__expect_file(const char *name, const char *text)
{
	char found[8192] = "";
	FILE *f = fopen(fake__file(name), "r");

	assert_non_null(f);
	found[fread(found, 1, sizeof(found) - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(found, text);
}

static inline bool fake__file_has(const char *name, const char *text)
{
	char found[65536] = "";
	FILE *f = fopen(fake__file(name), "r");

	assert_non_null(f);
	found[fread(found, 1, sizeof(found) - 1, f)] = '\0';
	fclose(f);
	return strstr(found, text);
}

static inline void fake__make_file(const char *name, const char *text)
{
	FILE *f = fopen(fake__file(name), "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

#endif /* TEST_FAKE_DAEMON_H */
