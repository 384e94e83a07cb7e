/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the sandbox share: children that enter it and say where they
 * failed, and a folder with files to try things on.
 *
 * In:   functions to be run within.
 * Out:  verdicts of cmocka.
 */
#ifndef HEAPSONDE_TEST_SANDBOX_CHILD_H
#define HEAPSONDE_TEST_SANDBOX_CHILD_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "user/daemon/sandbox.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))
#define NOBODY 65534

/* Within a child: where it failed, for the parent to see. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			*failed_line = __LINE__;                                                   \
			*failed_errno = errno;                                                     \
			return;                                                                    \
		}                                                                                  \
	} while (0)
#define CHECK_FAILS(call, error)                                                                   \
	do {                                                                                       \
		errno = 0;                                                                         \
		CHECK((call) == -1 && errno == (error));                                           \
	} while (0)

static volatile int *failed_line, *failed_errno;
static struct kernel_features kernel;
static char folder[] = "/tmp/heapsonde-sandbox.XXXXXX";

/* In the supervisor, or in a worker. */
enum role { SUPERVISOR, WORKER };

/* Run what in a child within the sandbox; returns its wait status. */
static int run(enum role role, void (*what)(const void *), const void *arg)
{
	int status = 0;
	pid_t pid;

	*failed_line = 0;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct hs_error err;

		if (sandbox__enter(&kernel, &err) ||
		    (role == WORKER && sandbox__enter_worker(&err))) {
			fprintf(stderr, "%s\n", err.text);
			_exit(99);
		}
		what(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void passes(enum role role, void (*what)(const void *), const void *arg)
{
	int status = run(role, what, arg);

	if (*failed_line)
		fail_msg("line %d: %s", *failed_line, strerror(*failed_errno));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int set_up(void **state)
{
	char path[128];
	struct hs_error err;
	int fd;

	(void)state;
	failed_line = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	failed_errno = failed_line + 1;
	if (failed_line == MAP_FAILED || !mkdtemp(folder) || kernel_features__probe(&kernel, &err))
		return -1;
	snprintf(path, sizeof(path), "%s/old", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	close(fd);
	snprintf(path, sizeof(path), "%s/private", folder);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/private/exe", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (!geteuid() && (fchown(fd, NOBODY, NOBODY)))
		return -1;
	close(fd);
	snprintf(path, sizeof(path), "%s/private", folder);
	return geteuid() ? 0 : chown(path, NOBODY, NOBODY);
}

static int clean_up(void **state)
{
	static const char *const names[] = { "old", "private/exe", "private", "" };
	char path[128];

	(void)state;
	for (size_t i = 0; i < N_OF(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		remove(path);
	}
	return 0;
}

#endif /* HEAPSONDE_TEST_SANDBOX_CHILD_H */
