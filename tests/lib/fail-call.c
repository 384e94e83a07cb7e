/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fail-call FILE CALL[:WHICH]=ERRNO[@N]… -- COMMAND ARG…: run COMMAND, where the N-th of these
 * system calls fails with ERRNO, of it and all that it starts; without @N each of them.
 *
 * in:   CALL, the number of a system call; WHICH of them: a number, its first argument (bpf's command,
 *       say), or /PATH, what the descriptor in its first argument is open for, or the beginning of that;
 *       any if not given; COMMAND
 * out:  COMMAND's exit status (128 + signal); in FILE the number of calls that there were
 *       of each kind, one a line
 *
 * The kernel asks us about each such call (seccomp's user notification) and does not
 * carry out one that is to fail: the command cannot tell it from a real failure.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_RULES 8

struct rule {
	int call, error;
	int has_arg;
	unsigned arg;
	const char *path; /* of path_len bytes; NULL: none */
	int path_len;
	long at, count; /* at 0: always */
};

static struct rule rules[MAX_RULES];
static int n_rules;

static void die(const char *what)
{
	perror(what);
	exit(125);
}

static void parse_rule(const char *text)
{
	struct rule *r = &rules[n_rules];
	char *p;

	if (n_rules++ == MAX_RULES)
		exit(125);
	r->call = (int)strtol(text, &p, 10);
	if (*p == ':' && p[1] == '/') {
		r->path = p + 1;
		r->path_len = (int)strcspn(r->path, "=");
		p = p + 1 + r->path_len;
	} else if (*p == ':') {
		r->has_arg = 1;
		r->arg = (unsigned)strtoul(p + 1, &p, 10);
	}
	if (*p == '=')
		r->error = (int)strtol(p + 1, &p, 10);
	if (*p == '@')
		r->at = strtol(p + 1, &p, 10);
	if (*p || r->error <= 0) {
		fprintf(stderr, "fail-call: not a rule: %s\n", text);
		exit(125);
	}
}

/* Install a filter that asks about the calls of the rules. Returns the listener. */
static int install_filter(void)
{
	struct sock_filter code[2 * MAX_RULES + 2];
	struct sock_fprog program = { .filter = code };
	int n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (int i = 0; i < n_rules; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned)rules[i].call, 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("prctl");
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* Hand a descriptor over, or with fd -1 receive one. */
static int pass(int sock, int fd)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte = 0;
	struct iovec io = { &byte, 1 };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.room,
			    .msg_controllen = sizeof(control.room) };

	if (fd >= 0) {
		control.h = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.h), &fd, sizeof(fd));
		return sendmsg(sock, &m, 0) == 1 ? 0 : -1;
	}
	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != 1 || m.msg_controllen == 0)
		return -1;
	memcpy(&fd, CMSG_DATA(&control.h), sizeof(fd));
	return fd;
}

/* Is this what the caller's descriptor is open for, or the beginning of it? */
static int is_open_for(pid_t caller, unsigned fd, const struct rule *r)
{
	char link[64], path[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/fd/%u", (int)caller, fd);
	n = readlink(link, path, sizeof(path));
	return n >= r->path_len && !strncmp(path, r->path, (size_t)r->path_len);
}

/* What the call is to fail with; 0: it goes on. */
static int judge(const struct seccomp_notif *n)
{
	const struct seccomp_data *d = &n->data;
	int error = 0;

	for (int i = 0; i < n_rules; i++) {
		struct rule *r = &rules[i];

		if (r->call != d->nr || (r->has_arg && r->arg != (unsigned)d->args[0]) ||
		    (r->path && !is_open_for((pid_t)n->pid, (unsigned)d->args[0], r)))
			continue;
		r->count++;
		if (!error && (!r->at || r->at == r->count))
			error = r->error;
	}
	return error;
}

static void answer(int listener)
{
	struct seccomp_notif ask = { 0 };
	struct seccomp_notif_resp say = { 0 };

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &ask))
		return; /* it was killed meanwhile */
	say.id = ask.id;
	say.error = -judge(&ask);
	if (!say.error)
		say.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &say);
}

static void report(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		die(path);
	for (int i = 0; i < n_rules; i++)
		fprintf(f, "%ld\n", rules[i].count);
	if (fclose(f))
		die(path);
}

int main(int argc, char **argv)
{
	int first = 2, sock[2], listener, status;
	struct pollfd fds[2];
	pid_t child;

	for (; first < argc && strcmp(argv[first], "--"); first++)
		parse_rule(argv[first]);
	if (first + 1 >= argc || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock))
		die("usage: fail-call FILE CALL[:ARG0]=ERRNO[@N]... -- COMMAND ARG...");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		listener = install_filter();
		if (listener < 0 || pass(sock[0], listener) || close(listener))
			die("seccomp");
		execvp(argv[first + 1], argv + first + 1);
		perror(argv[first + 1]);
		_exit(127);
	}
	close(sock[0]);
	listener = pass(sock[1], -1);
	fds[0] = (struct pollfd){ listener, POLLIN, 0 };
	fds[1] = (struct pollfd){ (int)syscall(SYS_pidfd_open, child, 0), POLLIN, 0 };
	while (listener >= 0 && fds[1].fd >= 0 && !fds[1].revents) {
		if (poll(fds, 2, -1) > 0 && fds[0].revents & POLLIN)
			answer(listener);
		if (fds[0].revents & POLLHUP)
			fds[0].fd = -1;
	}
	if (waitpid(child, &status, 0) != child)
		die("waitpid");
	report(argv[1]);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
