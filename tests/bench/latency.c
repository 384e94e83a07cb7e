/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long attaching and detaching take: latency HEAPSONDE PID RATE
 *
 * In:   the command; a process that can be attached to and allocates, and the rate to sample at.
 * Out:  one line on stdout, in ms: from starting `heapsonde record` to its header, which it writes
 *       when all is attached; from there to the first record of a stack with a function's name;
 *       from SIGINT, sent then, to the command's end, when all is detached. Exit status 1 if one of
 *       them does not come within 60 s, 2 for wrong arguments.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* `heapsonde record`, with its stdout in *out. Its PID, or -1. */
static pid_t start(char **argv, FILE **out)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGINT);
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl(argv[1], argv[1], "record", "-q", "-p", argv[2], "-r", argv[3], (char *)NULL);
		perror(argv[1]);
		_exit(127);
	}
	close(ends[1]);
	*out = fdopen(ends[0], "r");
	return *out ? pid : -1;
}

/* Read up to a line that has both texts in it. Its time, or -1 if there is none. */
static double wait_for(FILE *f, const char *type, const char *text)
{
	static char *line;
	static size_t room;

	while (getline(&line, &room, f) > 0)
		if (strstr(line, type) && strstr(line, text))
			return now_ms();
	return -1;
}

int main(int argc, char **argv)
{
	double begin = now_ms(), attached, named, told;
	char buffer[65536];
	int status;
	FILE *out;
	pid_t pid;

	if (argc != 4) {
		fputs("usage: latency HEAPSONDE PID RATE\n", stderr);
		return 2;
	}
	pid = start(argv, &out);
	if (pid < 0) {
		perror("latency");
		return 1;
	}
	alarm(60);
	attached = wait_for(out, "\"type\":\"header\"", "");
	named = wait_for(out, "\"type\":\"stack\"", "\"function\":\"");
	told = now_ms();
	kill(pid, SIGINT);
	while (fread(buffer, 1, sizeof(buffer), out) > 0)
		;
	if (waitpid(pid, &status, 0) != pid || status || attached < 0 || named < 0) {
		fputs("latency: the recording failed, or had no stack with a name\n", stderr);
		return 1;
	}
	printf("%.1f %.1f %.1f\n", attached - begin, named - attached, now_ms() - told);
	return 0;
}
