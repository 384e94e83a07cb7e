/* SPDX-License-Identifier: BSD-2-Clause */
/* See child.h. */
#include "user/attach/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
	pid_t pid;
	bool held;   /* traced and stopped: child__resume has not been called */
	bool reaped; /* status is final, pid no longer ours */
	int status;
	sigset_t arrived; /* signals held back until it runs */
};

static struct {
	sigset_t blocked, ignored; /* all empty unless remembered */
} start_signals;

void child__remember_signals(void)
{
	sigprocmask(SIG_BLOCK, NULL, &start_signals.blocked);
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction sa;

		if (!sigaction(sig, NULL, &sa) && sa.sa_handler == SIG_IGN)
			sigaddset(&start_signals.ignored, sig);
	}
}

/* ---- in the child: from fork to exec, async-signal-safe calls only ------------ */

static void restore_signals(void)
{
	/* Handlers go with exec, but ignored signals would stay ignored. */
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction sa = { 0 };

		sa.sa_handler = sigismember(&start_signals.ignored, sig) == 1 ? SIG_IGN : SIG_DFL;
		sigaction(sig, &sa, NULL); /* SIGKILL and a few others refuse: fine */
	}
	sigprocmask(SIG_SETMASK, &start_signals.blocked, NULL);
}

static _Noreturn void run_child(char *const argv[], int go, int report)
{
	char byte;
	int code;

	/* End of file: the parent gave up, or is gone. */
	if (read(go, &byte, 1) != 1)
		_exit(127);
	restore_signals();
	execvp(argv[0], argv);
	code = errno;
	while (write(report, &code, sizeof(code)) < 0 && errno == EINTR)
		;
	_exit(127);
}

/* ---- in the parent ------------------------------------------------------------ */

static pid_t wait_for(pid_t pid, int *status, int flags)
{
	pid_t ret;

	do
		ret = waitpid(pid, status, flags | __WALL);
	while (ret < 0 && errno == EINTR);
	return ret;
}

/* The child has ended before its exec: find out why. */
static int start_failed(struct child *c, char *const argv[], int report, struct hs_error *err)
{
	int code = 0;

	if (read(report, &code, sizeof(code)) == (ssize_t)sizeof(code) && code > 0)
		return hs_error__set(err, -code, "cannot run %s: %s", argv[0], strerror(code));
	return hs_error__set(err, -EINTR, "cannot run %s: it was killed while starting (status %d)",
			     argv[0], child__exit_code(c->status));
}

/* Follow the traced child until the new program is in place, or the child gone. */
static int wait_for_exec(struct child *c, char *const argv[], int report, struct hs_error *err)
{
	for (;;) {
		int status, sig, event;

		if (wait_for(c->pid, &status, 0) < 0)
			return hs_error__set(err, -errno, "waitpid: %s", strerror(errno));
		if (!WIFSTOPPED(status)) {
			c->reaped = true;
			c->status = status;
			return start_failed(c, argv, report, err);
		}
		sig = WSTOPSIG(status);
		event = status >> 16;
		if (event == PTRACE_EVENT_EXEC)
			return 0;
		/*
		 * With an event of its own: a group stop, after which it must
		 * go on all the same. Without: a signal, kept for later.
		 */
		if (!event)
			sigaddset(&c->arrived, sig);
		if (ptrace(PTRACE_CONT, c->pid, 0, 0) && errno != ESRCH)
			return hs_error__set(err, -errno, "ptrace: %s", strerror(errno));
	}
}

static int seize(struct child *c, int go, struct hs_error *err)
{
	/*
	 * Seized from outside rather than by PTRACE_TRACEME, so that the options
	 * hold from the beginning and exec is an event, never a mere SIGTRAP
	 * that somebody could have sent.
	 */
	if (ptrace(PTRACE_SEIZE, c->pid, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC))
		return hs_error__set(err, -errno, "cannot hold the program at its start: %s",
				     strerror(errno));
	if (write(go, "", 1) != 1)
		return hs_error__set(err, -EINTR, "the program was killed while starting");
	return 0;
}

static void close_pipe(int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int fork_child(struct child *c, char *const argv[], int go[2], int report[2],
		      struct hs_error *err)
{
	struct sigaction chld;
	sigset_t all, old;

	/* Inherited so, it would make the kernel forget the exit status. */
	if (!sigaction(SIGCHLD, NULL, &chld) && chld.sa_handler == SIG_IGN)
		signal(SIGCHLD, SIG_DFL);
	/* None of our handlers may run in the child. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	c->pid = fork();
	if (c->pid == 0) {
		/* Or the child would keep its own `go` from ending. */
		close(go[1]);
		close(report[0]);
		run_child(argv, go[0], report[1]);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (c->pid < 0)
		return hs_error__set(err, -errno, "fork: %s", strerror(errno));
	return 0;
}

int child__start(struct child **out, char *const argv[], struct hs_error *err)
{
	int go[2] = { -1, -1 }, report[2] = { -1, -1 }, ret;
	struct child *c;

	*out = NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return hs_error__set(err, -ENOMEM, "out of memory");
	if (pipe2(go, O_CLOEXEC) || pipe2(report, O_CLOEXEC)) {
		ret = hs_error__set(err, -errno, "pipe: %s", strerror(errno));
		goto out;
	}
	ret = fork_child(c, argv, go, report, err);
	if (ret)
		goto out;
	/* So that reading ends with the child; go[0] stays, against SIGPIPE. */
	close(report[1]);
	report[1] = -1;
	ret = seize(c, go[1], err);
	if (!ret) {
		c->held = true;
		ret = wait_for_exec(c, argv, report[0], err);
	}
out:
	close_pipe(go);
	close_pipe(report);
	if (ret) {
		child__kill(c);
		free(c);
		return ret;
	}
	*out = c;
	return 0;
}

pid_t child__pid(const struct child *c)
{
	return c->pid;
}

int child__resume(struct child *c)
{
	if (!c->held)
		return 0;
	c->held = false;
	if (ptrace(PTRACE_DETACH, c->pid, 0, 0))
		return -errno;
	for (int sig = 1; sig < NSIG; sig++)
		if (sigismember(&c->arrived, sig) == 1)
			kill(c->pid, sig);
	return 0;
}

int child__wait(struct child *c, int *wait_status, bool block)
{
	while (!c->reaped) {
		int status;
		pid_t ret = waitpid(c->pid, &status, (block ? 0 : WNOHANG) | __WALL);

		if (ret < 0)
			return -errno;
		if (ret == 0)
			return 0;
		/* While held, stops are reported too; they end nothing. */
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			c->reaped = true;
			c->status = status;
		}
	}
	*wait_status = c->status;
	return 1;
}

void child__kill(struct child *c)
{
	int status;

	if (!c || c->pid <= 0 || c->reaped)
		return;
	kill(c->pid, SIGKILL);
	while (wait_for(c->pid, &status, 0) == c->pid)
		if (!WIFSTOPPED(status)) {
			c->status = status;
			break;
		}
	c->reaped = true;
	c->held = false;
}

void child__free(struct child *c)
{
	if (!c)
		return;
	if (c->held)
		child__kill(c);
	free(c);
}

int child__exit_code(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}
