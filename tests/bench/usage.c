/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a command uses: usage COMMAND [ARG...]
 *
 * In:   the command; its stdout is thrown away, its stdin and stderr are ours.
 * Out:  one line on stdout: wall time and CPU time (user and system) in seconds, the largest
 *       resident set in KiB. Exit status 1 if it failed, 2 for wrong arguments.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void become(char **argv)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null >= 0 && dup2(null, STDOUT_FILENO) >= 0)
		execvp(argv[0], argv);
	perror(argv[0]);
	_exit(127);
}

int main(int argc, char **argv)
{
	double begin = now_s();
	struct rusage usage;
	int status;
	pid_t pid;

	if (argc < 2) {
		fputs("usage: usage COMMAND [ARG...]\n", stderr);
		return 2;
	}
	pid = fork();
	if (!pid)
		become(argv + 1);
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid) {
		perror("usage");
		return 1;
	}
	printf("%.3f %.3f %ld\n", now_s() - begin,
	       seconds(&usage.ru_utime) + seconds(&usage.ru_stime), usage.ru_maxrss);
	return !WIFEXITED(status) || WEXITSTATUS(status);
}
