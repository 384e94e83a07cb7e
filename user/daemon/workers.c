/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forking workers, talking to them, reaping them; see workers.h.
 *
 * A worker leaves in two steps, in either order: its channel ends, and the process
 * does. What it said before is taken in first.
 */
#include "user/daemon/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/daemon/log.h"
#include "user/daemon/sandbox.h"
#include "user/daemon/worker.h"

/* Events of one worker that are taken in at a time: no worker may keep the
 * supervisor for itself. */
#define DRAIN_PACKETS 16
/* More does not fit into a channel. */
#define DRAIN_DEAD_PACKETS 4096
/* Requests and events that may wait in a channel. */
#define CHANNEL_BYTES (1 << 20)
/* Where the channel is in the child: behind stderr. */
#define CHILD_CHANNEL (STDERR_FILENO + 1)

struct workers {
	sd_event *event;
	const struct kernel_features *kernel;
	const struct workers_ops *ops;
	void *ctx;
	int null_fd; /* what workers have as stdin and stdout */
	struct worker *first;
};

int workers__new(struct workers **out, sd_event *event, const struct kernel_features *kernel,
		 const struct workers_ops *ops, void *ctx)
{
	struct workers *ws = calloc(1, sizeof(*ws));

	if (!ws)
		return -ENOMEM;
	ws->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (ws->null_fd < 0) {
		int err = -errno;

		free(ws);
		return err;
	}
	ws->event = event;
	ws->kernel = kernel;
	ws->ops = ops;
	ws->ctx = ctx;
	*out = ws;
	return 0;
}

/* By its pidfd, which sd-event has: kill(2) is not in the sandbox. */
static void kill_worker(struct worker *w)
{
	sd_event_source_send_child_signal(w->exit, SIGKILL, NULL, 0);
}

static void worker__free(struct worker *w)
{
	if (!w)
		return;
	sd_event_source_disable_unref(w->io);
	sd_event_source_disable_unref(w->exit);
	if (w->channel >= 0)
		close(w->channel);
	json_decref(w->info);
	free(w);
}

void workers__free(struct workers *ws)
{
	if (!ws)
		return;
	while (ws->first) {
		struct worker *w = ws->first;

		ws->first = w->next;
		kill_worker(w);
		worker__free(w);
	}
	close(ws->null_fd);
	free(ws);
}

/* ---- in the child ---- */

static void reset_signals(void)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t mask;

	for (int s = 1; s < NSIG; s++)
		sigaction(s, &action, NULL);
	/* Those of a terminal are the supervisor's affair. */
	action.sa_handler = SIG_IGN;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGPIPE, &action, NULL);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* Keep the channel and stderr only. Returns the channel, or a negative errno. */
static int reset_descriptors(int channel, int null_fd)
{
	int moved = fcntl(channel, F_DUPFD_CLOEXEC, CHILD_CHANNEL + 1);

	if (moved < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0 ||
	    dup3(moved, CHILD_CHANNEL, O_CLOEXEC) < 0 || close_range(CHILD_CHANNEL + 1, ~0u, 0))
		return -errno;
	return CHILD_CHANNEL;
}

static void run_child(const struct workers *ws, int channel, pid_t target)
	__attribute__((noreturn));

static void run_child(const struct workers *ws, int channel, pid_t target)
{
	struct hs_error err;

	/* Should the supervisor be dead already, the channel's end says so. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	reset_signals();
	channel = reset_descriptors(channel, ws->null_fd);
	if (channel < 0)
		_exit(1);
	if (sandbox__enter_worker(&err)) {
		log__line(LOG_PRIORITY_ERR, "worker of PID %d: %s", target, err.text);
		_exit(1);
	}
	_exit(worker__run(channel, target, ws->kernel));
}

/* ---- events and ends ---- */

static void end(struct worker *w)
{
	if (w->has_ended)
		return;
	w->has_ended = true;
	w->is_closed = true;
	w->io = sd_event_source_disable_unref(w->io);
	close(w->channel);
	w->channel = -1;
	w->all->ops->end(w->all->ctx, w);
}

/* Take in one packet: 1, or 0 if there is none. */
static int receive(struct worker *w)
{
	struct wire_message m;
	json_t *object = NULL;
	int ret;

	if (w->has_ended)
		return 0;
	ret = wire__receive_packet(w->channel, &m, &object);
	if (ret == 1)
		w->all->ops->event(w->all->ctx, w, object, &m);
	json_decref(object);
	wire_message__deinit(&m);
	if (ret == 1 || ret == -EAGAIN)
		return ret == 1;
	if (ret == -EBADMSG || ret == -EMSGSIZE || ret == -ENOMEM) {
		log__line(LOG_PRIORITY_WARNING, "worker of PID %d: a packet was dropped: %s",
			  w->target, strerror(-ret));
		return 1;
	}
	end(w);
	return 0;
}

static void drain(struct worker *w)
{
	for (int i = 0; i < DRAIN_PACKETS && receive(w); i++)
		;
}

static int on_channel(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	(void)source;
	(void)fd;
	(void)events;
	drain(ctx);
	return 0;
}

/* All that it said, and then its end. It may live and go on for ever. */
static void drain_dead(struct worker *w)
{
	for (int i = 0; i < DRAIN_DEAD_PACKETS && receive(w); i++)
		;
	end(w);
}

static void unlink_worker(struct worker *w)
{
	struct worker **at = &w->all->first;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
}

static int on_exit_of(sd_event_source *source, const siginfo_t *info, void *ctx)
{
	struct worker *w = ctx;
	struct workers *ws = w->all;

	(void)source;
	if (info->si_code != CLD_EXITED && info->si_status == SIGKILL)
		log__line(
			LOG_PRIORITY_ERR,
			"worker of PID %d was killed by signal 9 (Killed): by somebody, or by the "
			"kernel for want of memory (memory.max of the control group)",
			w->target);
	else if (info->si_code != CLD_EXITED)
		log__line(LOG_PRIORITY_ERR, "worker of PID %d was killed by signal %d (%s)",
			  w->target, info->si_status, strsignal(info->si_status));
	else if (info->si_status)
		log__line(LOG_PRIORITY_ERR, "worker of PID %d has failed", w->target);
	else
		log__line(LOG_PRIORITY_DEBUG, "worker of PID %d has ended", w->target);
	drain_dead(w);
	unlink_worker(w);
	ws->ops->gone(ws->ctx, w);
	worker__free(w);
	return 0;
}

void workers__drain(struct workers *ws)
{
	for (struct worker *w = ws->first; w; w = w->next)
		drain(w);
}

/* ---- beginning ---- */

static int open_channel(int fds[2])
{
	static const int bytes = CHANNEL_BYTES;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	for (int i = 0; i < 2; i++)
		if (setsockopt(fds[i], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
			setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (fcntl(fds[0], F_SETFL, O_RDWR | O_NONBLOCK)) {
		int err = -errno;

		close(fds[0]);
		close(fds[1]);
		return err;
	}
	return 0;
}

/* The sources of a worker that runs; without them it is of no use. */
static int watch(struct worker *w)
{
	sd_event *event = w->all->event;
	int ret = sd_event_add_child(event, &w->exit, w->pid, WEXITED, on_exit_of, w);

	if (ret >= 0)
		ret = sd_event_add_io(event, &w->io, w->channel, EPOLLIN, on_channel, w);
	return ret < 0 ? ret : 0;
}

int workers__begin(struct workers *ws, pid_t target, uid_t uid, struct worker **out,
		   struct hs_error *err)
{
	struct worker *w = calloc(1, sizeof(*w));
	int fds[2], ret;

	if (!w)
		return hs_error__set(err, -ENOMEM, "out of memory");
	w->channel = -1;
	ret = open_channel(fds);
	if (ret)
		goto fail;
	w->channel = fds[0];
	w->pid = fork();
	if (!w->pid)
		run_child(ws, fds[1], target);
	if (w->pid < 0)
		ret = -errno;
	close(fds[1]);
	if (ret)
		goto fail;
	w->all = ws;
	w->target = target;
	w->uid = uid;
	ret = watch(w);
	if (ret) {
		/* It sees the end of its channel. */
		close(w->channel);
		w->channel = -1;
		waitpid(w->pid, NULL, 0);
		goto fail;
	}
	w->next = ws->first;
	ws->first = w;
	*out = w;
	log__line(LOG_PRIORITY_DEBUG, "worker of PID %d: process %d", target, w->pid);
	return 0;
fail:
	worker__free(w);
	return hs_error__set(err, ret, "cannot begin a worker for PID %d: %s", target,
			     strerror(-ret));
}

/* ---- looking, sending, closing ---- */

struct worker *workers__find(const struct workers *ws, pid_t target)
{
	struct worker *w = ws->first;

	while (w && (w->target != target || w->is_closed))
		w = w->next;
	return w;
}

size_t workers__count(const struct workers *ws)
{
	size_t n = 0;

	for (const struct worker *w = ws->first; w; w = w->next)
		n++;
	return n;
}

size_t workers__count_of(const struct workers *ws, uid_t uid)
{
	size_t n = 0;

	for (const struct worker *w = ws->first; w; w = w->next)
		n += w->uid == uid;
	return n;
}

struct worker *workers__first(const struct workers *ws)
{
	return ws->first;
}

int worker__send(struct worker *w, const json_t *request, int connection)
{
	int ret = w->has_ended ? -EPIPE : wire__send_packet(w->channel, request, &connection, 1);

	if (ret != -EPIPE && ret != -ECONNRESET)
		return ret;
	drain_dead(w);
	return -EPIPE;
}

void worker__close(struct worker *w)
{
	w->is_closed = true;
	if (w->channel >= 0)
		shutdown(w->channel, SHUT_WR);
}

void workers__close(struct workers *ws)
{
	for (struct worker *w = ws->first; w; w = w->next)
		worker__close(w);
}

void workers__kill(struct workers *ws)
{
	for (struct worker *w = ws->first; w; w = w->next)
		kill_worker(w);
}
