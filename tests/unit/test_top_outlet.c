/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes to top's terminal: all of it, in order, and without waiting for one that nobody
 * reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "user/top/outlet.h"

/* More than a terminal keeps for one who does not read. */
#define BIG_BYTES (4u << 20)

static int master, terminal;
static struct outlet outlet;

static int setup(void **state)
{
	struct termios t;

	(void)state;
	master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	if (master < 0 || grantpt(master) || unlockpt(master))
		return -1;
	terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
	if (terminal < 0 || tcgetattr(terminal, &t))
		return -1;
	/* So that what is read is what was written. */
	cfmakeraw(&t);
	return tcsetattr(terminal, TCSANOW, &t) || outlet__open(&outlet, terminal);
}

static int teardown(void **state)
{
	(void)state;
	outlet__close(&outlet);
	if (master >= 0)
		close(master);
	close(terminal);
	return 0;
}

/* As ncurses writes: a sequence that tells its place. */
static void library_writes(uint32_t *next, size_t bytes)
{
	uint32_t block[1024];

	for (size_t n = 0; n < bytes; n += sizeof(block)) {
		for (size_t i = 0; i < 1024; i++)
			block[i] = (*next)++;
		assert_int_equal(write(outlet.memory_fd, block, sizeof(block)), sizeof(block));
	}
}

/* Read what is there; it goes on where it was. */
static void read_all(size_t *n)
{
	unsigned char bytes[4096];
	ssize_t got;

	while ((got = read(master, bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < got; i++, (*n)++) {
			uint32_t word = (uint32_t)(*n / 4);

			assert_int_equal(bytes[i], ((unsigned char *)&word)[*n % 4]);
		}
}

static void test_nobody_reads(void **state)
{
	uint32_t next = 0;
	size_t n = 0;

	(void)state;
	library_writes(&next, BIG_BYTES);
	/* Would hang here if anything waited. */
	assert_false(outlet__send(&outlet));
	assert_true(outlet.n > outlet.n_sent);
	assert_false(outlet__send_within(&outlet, 20));
	/* What comes meanwhile stands in line. */
	library_writes(&next, 4096);
	outlet__add(&outlet, (const char *)&next, sizeof(next));
	next++;
	while (!outlet__send(&outlet))
		read_all(&n);
	while (n < next * sizeof(next))
		read_all(&n);
	assert_int_equal(n, next * sizeof(next));
	assert_false(outlet.has_dropped);
	/* The file does not grow. */
	assert_int_equal(lseek(outlet.memory_fd, 0, SEEK_END), 0);
	/* Nor is anything said twice. */
	assert_true(outlet__send(&outlet));
	assert_int_equal(read(master, &next, sizeof(next)), -1);
}

static void test_gone(void **state)
{
	uint32_t next = 0;

	(void)state;
	library_writes(&next, BIG_BYTES);
	assert_false(outlet__send(&outlet));
	close(master);
	master = -1;
	/* Nobody will ever read it. */
	assert_true(outlet__send(&outlet));
	library_writes(&next, 4096);
	assert_true(outlet__send_within(&outlet, 100000));
}

/* The descriptor that we were given does not change, for who shares it. */
static void test_shared(void **state)
{
	(void)state;
	assert_true(outlet.is_own);
	assert_int_equal(fcntl(terminal, F_GETFL) & O_NONBLOCK, 0);
	outlet__close(&outlet);
	assert_int_equal(fcntl(terminal, F_GETFL) & O_NONBLOCK, 0);
	outlet__close(&outlet);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_nobody_reads), TEST(test_gone),
					    TEST(test_shared) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
