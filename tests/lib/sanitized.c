/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a build with sanitizers (`make SANITIZE=1`) has besides: where it reports to, and
 * how it behaves, so that user/ itself is the same code in both builds.
 *
 * In:   HEAPSONDE_REPORTS, a folder that all users may write.
 * Out:  what ASan, LSan and UBSan have to say about a process and what it forks, in a
 *       file in there, named after the process; on stderr if there is no folder. The
 *       file is opened at the start, because the daemon cannot open any later
 *       (user/daemon/sandbox.h). Exit status 99 after a report.
 */
#include <fcntl.h>
#include <linux/close_range.h>
#include <sanitizer/common_interface_defs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Out of the way of descriptors that are counted or expected at a place. */
#define HIGH_FD 400

/* The sanitizers look for these names. */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
const char *__lsan_default_suppressions(void);
int __lsan_is_turned_off(void);
void __ubsan_on_report(void);

/* The file of reports, and another descriptor for it that the sanitizers have. */
static int report_fd = -1, given_fd = -1;

/*
 * An allocation that fails is an error that heapsonde handles. abort() stays what it is:
 * an assertion's message, and the status that tests of a crash wait for.
 */
const char *__asan_default_options(void)
{
	return "exitcode=99:detect_leaks=1:allocator_may_return_null=1:handle_abort=0";
}

const char *__ubsan_default_options(void)
{
	return "exitcode=99:print_stacktrace=1";
}

/* What others' libraries keep for the life of a process: ncurses, of a terminal unknown to it. */
const char *__lsan_default_suppressions(void)
{
	return "leak:new_prescr\n";
}

/*
 * LSan looks at a process by means of ptrace, from a process of its own. Within the
 * sandbox neither is to be had: whoever tries is killed. Leaks of the daemon's
 * code are looked for in the unit tests, and its growth in the soak test. Nor does it
 * work without /proc, or a descriptor to read it with.
 */
int __lsan_is_turned_off(void)
{
	int fd;

	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0)
		return 1;
	fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 1;
	close(fd);
	return 0;
}

/* For this process; each takes the descriptor for its own, and opens another file if it is not. */
static void report_here(void)
{
	__sanitizer_set_report_fd((void *)(intptr_t)given_fd);
}

/* The sanitizers close what they were given when they are set up again. */
static void give_descriptor(void)
{
	given_fd = fcntl(report_fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (given_fd < 0)
		given_fd = report_fd;
	report_here();
}

/* UBSan sets itself up when it reports for the first time, and turns to stderr. */
void __ubsan_on_report(void)
{
	if (report_fd >= 0)
		give_descriptor();
}

/* A worker closes all that it has inherited; not the reports. */
int close_range(unsigned int fd, unsigned int max_fd, int flags)
{
	unsigned int kept = (unsigned int)report_fd;

	if (report_fd < 0 || kept < fd || kept > max_fd)
		return (int)syscall(SYS_close_range, fd, max_fd, flags);
	if (kept > fd && syscall(SYS_close_range, fd, kept - 1, flags))
		return -1;
	if (kept < max_fd && syscall(SYS_close_range, kept + 1, max_fd, flags))
		return -1;
	give_descriptor();
	return 0;
}

__attribute__((constructor)) static void report_to_file(void)
{
	const char *folder = getenv("HEAPSONDE_REPORTS");
	char path[4096];
	int fd;

	if (!folder ||
	    (size_t)snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid()) >= sizeof(path))
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	report_fd = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (report_fd < 0)
		report_fd = fd;
	else
		close(fd);
	give_descriptor();
	pthread_atfork(NULL, NULL, report_here);
}
