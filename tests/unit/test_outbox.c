/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outputs that fail or hang: full disks, closed pipes and terminals that nobody reads
 * hang nobody, and files end on a whole line or record.
 */
#include "tests/unit/capture_make.h"
#include "tests/unit/consumer_tally.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* ---- outputs that fail ---- */

/* Events and flushes until the consumer has noticed. */
static void send_until_error(struct sink *s)
{
	for (int ms = 0; !consumer__error(s); ms++) {
		assert_true(ms < PATIENCE_MS);
		for (uint64_t id = 1; id <= 20; id++)
			send_alloc(s, id, (uint32_t)id);
		flush(s);
		sleep_ms(1);
	}
}

static void survives_closed_readers(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_DFL);
	for (int kind = 0; kind < 4; kind++) {
		uint64_t dropped;
		struct sink *s;
		int fds[2], done;

		if (kind < 2)
			assert_int_equal(pipe(fds), 0);
		else
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		s = new_consumer(fds[1], kind % 2 ? SINK_RAW : SINK_JSONL);
		send_alloc(s, 1, 1);
		flush(s);
		expect_ready(fds[0], POLLIN);
		close(fds[0]);
		send_until_error(s);
		assert_true(consumer__error(s) == -EPIPE || consumer__error(s) == -ECONNRESET);
		/* From then on everything is thrown away, and the queue does not fill. */
		dropped = consumer__dropped(s);
		for (uint64_t id = 1; id <= 10000; id++)
			send_alloc(s, id, 1);
		send_stack(s, 3);
		send_rate(s, 1, 1);
		send_json(s, summary());
		flush(s);
		assert_int_equal(consumer__dropped(s), dropped);
		assert_int_equal(consumer__queued(s), 0);
		done = consumer__finish(s);
		expect_ready(done, POLLIN);
		sink__free(s);
	}
	expect_no_threads();
}

static void refuses_bad_descriptors(void **state)
{
	struct sink *s = new_consumer(-1, SINK_JSONL);
	int fds[2];

	(void)state;
	send_until_error(s);
	assert_int_equal(consumer__error(s), -EBADF);
	sink__free(s);
	/* The wrong end of a pipe is not written to, though it could be opened again. */
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(dup(fds[0]), SINK_JSONL);
	send_until_error(s);
	assert_int_equal(consumer__error(s), -EBADF);
	assert_false(is_ready(fds[0]));
	sink__free(s);
	close(fds[0]);
	close(fds[1]);
	expect_no_threads();
}

/* A file system of 256 KiB that goes away with this process. */
static void mount_small(char *path)
{
	assert_non_null(mkdtemp(path));
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount("none", "/", "", MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", path, "tmpfs", 0, "size=256k"), 0);
}

static void leaves_whole_lines_on_a_full_disk(void **state)
{
	char path[] = "/tmp/heapsonde-test.XXXXXX", name[64], *replayed;
	struct line_tally got;
	struct text t;
	struct sink *s;
	int fd;

	(void)state;
	if (geteuid())
		skip();
	mount_small(path);
	snprintf(name, sizeof(name), "%s/out", path);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	s = new_consumer(dup(fd), SINK_JSONL);
	send_until_error(s);
	assert_int_equal(consumer__error(s), -ENOSPC);
	t = finish_file(s, fd);
	assert_in_range(t.n, 256 * 1024 - 300, 256 * 1024);
	/* More was written at first than is there. */
	assert_in_range(consumer__written(s) - t.n, 0, 300);
	got = tally(&t); /* every line is whole */
	assert_true(got.allocs > 1000);
	tally__free(&got);
	free(t.bytes);
	sink__free(s);

	assert_int_equal(ftruncate(fd, 0), 0);
	lseek(fd, 0, SEEK_SET);
	s = new_consumer(dup(fd), SINK_RAW);
	send_until_error(s);
	assert_int_equal(consumer__error(s), -ENOSPC);
	t = finish_file(s, fd);
	assert_int_equal(replay(t.bytes, t.n, &replayed), 0);
	assert_int_equal(replayed[strlen(replayed) - 1], '\n');
	free(replayed);
	free(t.bytes);
	sink__free(s);
	close(fd);
	assert_int_equal(umount(path), 0);
	rmdir(path);
	expect_no_threads();
}

/* Only what we have written ourselves is cut. */
static void cuts_its_own_only(void **state)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct text t;
	struct sink *s;

	(void)state;
	/* Limits within, at the end of, and after the first line, which is the thread's. */
	for (rlim_t more = 0; more <= 400; more += 20) {
		const struct rlimit limit = { 14 + more, RLIM_INFINITY };
		char path[] = "/tmp/heapsonde-test.XXXXXX";
		int fd = mkstemp(path), file, done;

		assert_true(fd >= 0);
		file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
		unlink(path);
		assert_int_equal(write(fd, "no newline yet", 14), 14);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		s = new_consumer(file, SINK_JSONL);
		for (uint64_t id = 1; id <= 10; id++)
			send_alloc(s, id, 0);
		done = consumer__finish(s);
		expect_ready(done, POLLIN);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
		assert_int_equal(consumer__error(s), -EFBIG);
		t = finish_file(s, fd);
		assert_in_range(t.n, 14, 14 + more);
		assert_memory_equal(t.bytes, "no newline yet", 14);
		assert_true(t.n == 14 || t.bytes[t.n - 1] == '\n');
		assert_true(t.n + 250 > 14 + more);
		free(t.bytes);
		sink__free(s);
		close(fd);
	}
	expect_no_threads();
}

/* A file of a real file system: a memfd has no limit of size. */
static int new_tmpfile(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

/* A file that goes on behind what we have written is not cut. */
static void cuts_ends_only(void **state)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	const struct rlimit limit = { 100, RLIM_INFINITY };
	static char old[10000];
	int fd = new_tmpfile();
	struct sink *s;
	struct text t;

	(void)state;
	memset(old, 'x', sizeof(old));
	assert_int_equal(write(fd, old, sizeof(old)), sizeof(old));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	lseek(fd, 0, SEEK_SET);
	s = new_consumer(dup(fd), SINK_JSONL);
	for (uint64_t id = 1; id <= 10; id++)
		send_alloc(s, id, 0);
	expect_ready(consumer__finish(s), POLLIN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(consumer__error(s), -EFBIG);
	t = finish_file(s, fd);
	assert_int_equal(t.n, sizeof(old));
	assert_int_equal(t.bytes[100], 'x');
	free(t.bytes);
	sink__free(s);
	close(fd);
	expect_no_threads();
}

/* Freed at any moment, a file has whole lines. */
static void is_given_up_between_lines(void **state)
{
	(void)state;
	for (int round = 0; round < 100; round++) {
		int fd = new_memfd();
		struct sink *s = new_consumer(dup(fd), SINK_JSONL);
		struct text t = { NULL };
		struct line_tally got;

		for (uint64_t id = 1; id <= (uint64_t)(20 * round); id++)
			send_alloc(s, id, (uint32_t)(id % STACKS));
		flush(s);
		sink__free(s);
		expect_no_threads();
		lseek(fd, 0, SEEK_SET);
		while (read_some(fd, &t, 65536))
			;
		got = tally(&t);
		tally__free(&got);
		free(t.bytes);
		close(fd);
	}
}

/* ---- outputs that hang ---- */

static void gives_up_pipes_and_sockets(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct text t = { NULL };
		struct sink *s;
		int fds[2], done;

		if (kind < 2)
			assert_int_equal(pipe(fds), 0);
		else
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
		s = new_consumer(fds[1], SINK_JSONL);
		fill_with_allocs(s);
		while (!consumer__written(s))
			sleep_ms(1);
		if (kind % 2) {
			done = consumer__finish(s);
			assert_false(is_ready(done));
		}
		sink__free(s);
		/* The thread ends, and with it the other end: no more than was there. */
		expect_no_threads();
		t = read_all(fds[0]);
		assert_true(t.n > 0 && t.n < QUEUE / 2);
		free(t.bytes);
		close(fds[0]);
	}
}

/* A write that nothing interrupts: to a terminal that nobody reads. */
static void leaves_stuck_threads_behind(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave, done;
	pid_t tids[4];
	struct sink *s;

	(void)state;
	assert_true(master >= 0);
	assert_int_equal(grantpt(master) || unlockpt(master), 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	s = new_consumer(slave, SINK_JSONL);
	fill_with_allocs(s);
	expect_ready(master, POLLIN);
	done = consumer__finish(s);
	sleep_ms(50);
	assert_false(is_ready(done));
	assert_int_equal(other_threads(tids, 4), 1);
	sink__free(s);
	sleep_ms(50);
	assert_int_equal(other_threads(tids, 4), 1);
	/* When the write returns the thread goes. */
	close(master);
	expect_no_threads();
}

/* Signals are for the others. */
static void blocks_signals(void **state)
{
	char path[64], line[256] = "";
	struct sink *s;
	pid_t tid = 0;
	int fds[2];
	FILE *f;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	s = new_consumer(fds[1], SINK_JSONL);
	assert_int_equal(other_threads(&tid, 1), 1);
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && strncmp(line, "SigBlk:", 7))
		;
	fclose(f);
	/* All of 1 to 31 but KILL and STOP, which cannot be. */
	assert_int_equal(strtoull(line + 7, NULL, 16) & 0x7fffffff,
			 0x7fffffff & ~(1u << (SIGKILL - 1) | 1u << (SIGSTOP - 1)));
	sink__free(s);
	close(fds[0]);
	expect_no_threads();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_closed_readers),
		cmocka_unit_test(refuses_bad_descriptors),
		cmocka_unit_test(leaves_whole_lines_on_a_full_disk),
		cmocka_unit_test(cuts_its_own_only),
		cmocka_unit_test(cuts_ends_only),
		cmocka_unit_test(is_given_up_between_lines),
		cmocka_unit_test(gives_up_pipes_and_sockets),
		cmocka_unit_test(leaves_stuck_threads_behind),
		cmocka_unit_test(blocks_signals),
	};

	return cmocka_run_group_tests(tests, setup_stacks, NULL);
}
