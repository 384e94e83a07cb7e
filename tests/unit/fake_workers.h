/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A daemon with workers that attach to nothing, for tests of the supervisor: what a
 * worker does, its requests say.
 *
 * In:   `start` with a stack_depth of enum fake_start; `rate` with a rate of FAKE_*.
 * Out:  a daemon process, and answers to what it is asked.
 */
#ifndef TEST_FAKE_WORKERS_H
#define TEST_FAKE_WORKERS_H

#include "tests/unit/records_make.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "user/daemon/daemon.h"
#include "user/daemon/requests.h"
#include "user/daemon/worker.h"
#include "user/wire/wire.h"

enum fake_start {
	FAKE_REFUSE = 1,
	FAKE_BOUNCE,       /* each time */
	FAKE_BOUNCE_LATER, /* if there is a profile already */
	FAKE_CRASH,
	FAKE_DEAF,   /* reads nothing after that */
	FAKE_FORGED, /* speaks of others' profiles, and of nothing that is known */
	FAKE_OK = 64,
};

#define FAKE_RATE_FINISH 0.5 /* the target's end */
#define FAKE_RATE_CRASH 0.25
#define FAKE_RATE_STAY 0.125 /* it will not end by itself */

#define FAKE_EXIT_LEAKED 99

/* The daemon links with these instead of worker.c; and, so that a sanitizer's own
 * system calls are let through, instead of sandbox.c. */
int worker__run(int channel, pid_t pid, const struct kernel_features *kernel);

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

#include "user/daemon/sandbox.h"

int sandbox__enter(const struct kernel_features *kernel, struct hs_error *err)
{
	(void)kernel;
	(void)err;
	return 0;
}

int sandbox__enter_worker(struct hs_error *err)
{
	(void)err;
	return 0;
}
#endif

/* ---- the worker ---- */

static inline void fake__send(int fd, json_t *o, const int *fds, size_t n_fds)
{
	wire__send_packet(fd, o, fds, n_fds);
	json_decref(o);
}

static inline void fake__say(int channel, uint32_t profile, const char *state, const char *reason)
{
	fake__send(channel,
		   json_pack("{s:s, s:{s:s}, s:[{s:i, s:s, s:s?, s:s}]}", "event", "status",
			     "target", "command", "fake", "profiles", "profile", profile, "state",
			     state, "reason", reason, "output_error", "disk full"),
		   NULL, 0);
}

/* Answer and close. */
static inline void fake__answer(int connection, json_t *o)
{
	wire__send_line(connection, o, NULL, 0);
	json_decref(o);
	close(connection);
}

static inline void fake__ok(int connection, uint32_t profile)
{
	fake__answer(connection,
		     json_pack("{s:b, s:i, s:i}", "ok", 1, "profile", profile, "worker", getpid()));
}

/* Tell the supervisor what is not this worker's to tell. */
static inline void fake__forge(int channel, uint32_t profile)
{
	fake__say(channel, 1, "discarded", NULL);
	fake__send(channel, json_pack("{s:s, s:i}", "event", "refused", "profile", 1), NULL, 0);
	fake__send(channel, json_pack("{s:s, s:{s:i}}", "event", "bounce", "request", "profile", 1),
		   &channel, 1);
	fake__send(channel, json_pack("{s:s}", "event", "fly"), &channel, 1);
	fake__send(channel, json_pack("{s:i, s:[i]}", "event", 1, "profiles", 1), NULL, 0);
	send(channel, "nonsense", 8, 0);
	fake__say(channel, profile, "flying", NULL);
}

static inline void fake__start(int channel, const json_t *object, const struct request *r,
			       int connection, int *n_started)
{
	uint32_t how = r->options.attach.stack_depth;
	struct hs_error err;
	int output;

	if (how == FAKE_CRASH)
		__builtin_trap();
	if (how == FAKE_BOUNCE || (how == FAKE_BOUNCE_LATER && *n_started)) {
		fake__send(channel, json_pack("{s:s, s:O}", "event", "bounce", "request", object),
			   &connection, 1);
		close(connection);
		return;
	}
	if (how == FAKE_REFUSE || request__take_output(connection, &output, &err)) {
		fake__send(channel,
			   json_pack("{s:s, s:i}", "event", "refused", "profile", r->profile), NULL,
			   0);
		hs_error__set(&err, -ESRCH, "no process %d", r->pid);
		fake__answer(connection, wire__error(-ESRCH, &err));
		return;
	}
	if (how == FAKE_FORGED)
		fake__forge(channel, r->profile);
	++*n_started;
	if (output >= 0) {
		dprintf(output, "uid %u gid %u pid %d\n", r->uid, r->gid, r->pid);
		close(output);
	}
	fake__send(channel,
		   json_pack("{s:s, s:i, s:{s:s, s:s}}", "event", "started", "profile", r->profile,
			     "status", "state", "sampling", "command", "fake"),
		   NULL, 0);
	fake__ok(connection, r->profile);
	while (how == FAKE_DEAF)
		pause();
}

/* Returns whether to stay when the channel has ended. */
static inline bool fake__rate(int channel, const struct request *r)
{
	if (r->tier.rate == FAKE_RATE_CRASH)
		__builtin_trap();
	if (r->tier.rate == FAKE_RATE_FINISH)
		fake__say(channel, r->profile, "finished", "target exited");
	return r->tier.rate == FAKE_RATE_STAY;
}

int worker__run(int channel, pid_t pid, const struct kernel_features *kernel)
{
	bool stay = false;
	int n_started = 0;

	(void)pid;
	(void)kernel;
	for (;;) {
		struct wire_message m;
		struct hs_error err;
		struct request r;
		json_t *object = NULL;

		if (wire__receive_packet(channel, &m, &object) != 1)
			break;
		if (m.n_fds != 1 || request__parse(object, &r, &err) || !r.is_handed)
			_exit(3);
		if (r.op == REQUEST_START) {
			fake__start(channel, object, &r, m.fds[0], &n_started);
		} else {
			if (r.op == REQUEST_STOP)
				fake__say(channel, r.profile, "stopped", "interrupted");
			else if (r.op == REQUEST_DISCARD)
				fake__say(channel, r.profile, "discarded", NULL);
			else if (r.op == REQUEST_RATE)
				stay |= fake__rate(channel, &r);
			fake__ok(m.fds[0], r.profile);
		}
		m.fds[0] = -1;
		wire_message__deinit(&m);
		request__deinit(&r);
		json_decref(object);
	}
	while (stay)
		pause();
	return 0;
}

/* ---- the daemon ---- */

struct fake_daemon {
	char folder[32], path[64];
	pid_t pid;
};

static inline int fake__connect(const struct fake_daemon *d)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, d->path);
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

/* Begin a daemon on d->path; its exit status is daemon__run's errno. */
static inline void fake__run(struct fake_daemon *d)
{
	static const struct kernel_features kernel = { .uprobe_multi = true,
						       .uprobe_multi_by_pid = true };
	const struct daemon_options options = { .socket_path = d->path,
						.max_profiles = 4,
						.max_blocks = 1 << 20,
						.max_memory_bytes = 64 << 20 };

	d->pid = fork();
	assert_true(d->pid >= 0);
	if (!d->pid) {
		struct hs_error err = { "" };
		int null = open("/dev/null", O_WRONLY), ret;

		/* Whoever starts it: all users get at the socket. */
		umask(0077);
		/* Its log belongs to no test. */
		if (!getenv("TEST_DAEMON_LOG"))
			dup2(null, STDERR_FILENO);
		ret = -daemon__run(&options, &kernel, &err);
#ifdef __SANITIZE_ADDRESS__
		if (__lsan_do_recoverable_leak_check())
			ret = FAKE_EXIT_LEAKED;
#endif
		_exit(ret);
	}
}

static inline void fake__begin(struct fake_daemon *d)
{
	int fd = -1;

	strcpy(d->folder, "/tmp/test_daemon.XXXXXX");
	assert_non_null(mkdtemp(d->folder));
	assert_int_equal(chmod(d->folder, 0755), 0);
	snprintf(d->path, sizeof(d->path), "%s/run/control.sock", d->folder);
	fake__run(d);
	for (int i = 0; i < 6000 && fd < 0; i++) {
		usleep(10000);
		fd = fake__connect(d);
	}
	assert_true(fd >= 0);
	close(fd);
}

/* The exit status of a daemon that ends by itself. */
static inline int fake__wait(const struct fake_daemon *d)
{
	int status;

	assert_int_equal(waitpid(d->pid, &status, 0), d->pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static inline void fake__end(struct fake_daemon *d)
{
	char command[64];

	kill(d->pid, SIGTERM);
	assert_int_equal(fake__wait(d), 0);
	snprintf(command, sizeof(command), "rm -rf %s", d->folder);
	assert_int_equal(system(command), 0);
}

static inline int fake__n_open(pid_t pid)
{
	char path[32];
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* No more are open when those of clients that have gone are closed. */
static inline void fake__expect_open_at_most(pid_t pid, int n)
{
	for (int i = 0; i < 6000 && fake__n_open(pid) > n; i++)
		usleep(10000);
	assert_true(fake__n_open(pid) <= n);
}

/* ---- clients ---- */

static inline int fake__connect_as(const struct fake_daemon *d, uid_t uid)
{
	int fd;

	assert_int_equal(seteuid(uid), 0);
	fd = fake__connect(d);
	assert_int_equal(seteuid(0), 0);
	assert_true(fd >= 0);
	return fd;
}

/* The next line, or NULL if the connection has been closed. */
static inline json_t *fake__line(int fd)
{
	struct wire_message m;
	json_t *object = NULL;
	int ret;

	wire_message__init(&m);
	do {
		ret = wire__receive_line(fd, &m, 1 << 24, &object);
	} while (!ret);
	wire_message__deinit(&m);
	return ret == 1 ? object : NULL;
}

/* Ask as this user, with a descriptor unless it is -1. NULL: no answer. */
static inline json_t *fake__ask_with(const struct fake_daemon *d, uid_t uid, const char *text,
				     int passed)
{
	int fd = fake__connect_as(d, uid);
	json_t *request = json_loads(text, 0, NULL), *answer;

	assert_non_null(request);
	assert_int_equal(wire__send_line(fd, request, &passed, passed >= 0), 0);
	answer = fake__line(fd);
	json_decref(request);
	close(fd);
	return answer;
}

/* As above, with a text of a profile's number, and the answer's code only. */
static inline int fake__code(const struct fake_daemon *d, uid_t uid, const char *format, int number)
{
	char text[128];
	json_t *answer;
	int code;

	snprintf(text, sizeof(text), format, number);
	answer = fake__ask_with(d, uid, text, -1);
	code = answer ? wire__code(answer) : -ECONNRESET;
	json_decref(answer);
	return code;
}

/* Start a profile on pid; its number, or the error. */
static inline int fake__start_on(const struct fake_daemon *d, uid_t uid, int pid,
				 enum fake_start how)
{
	char text[128];
	json_t *answer;
	int ret;

	snprintf(text, sizeof(text), "{\"op\":\"start\",\"pid\":%d,\"stack_depth\":%d}", pid, how);
	answer = fake__ask_with(d, uid, text, -1);
	ret = answer ? wire__code(answer) : -ECONNRESET;
	if (!ret)
		ret = (int)json_integer_value(json_object_get(answer, "profile"));
	json_decref(answer);
	return ret;
}

/* The profiles that this user sees; their state and reason are pointers into it. */
static inline json_t *fake__list(const struct fake_daemon *d, uid_t uid)
{
	json_t *answer = fake__ask_with(d, uid, "{\"op\":\"status\"}", -1);
	json_t *list = json_incref(json_object_get(answer, "profiles"));

	assert_int_equal(wire__code(answer), 0);
	json_decref(answer);
	return list;
}

#endif /* TEST_FAKE_WORKERS_H */
