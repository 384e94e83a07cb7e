/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon from its first step to its last; see daemon.h.
 *
 * In:   options.
 * Out:  an event loop in which everything has its place: connections, workers,
 *       metrics, signals.
 */
#include "user/daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "user/daemon/listen.h"
#include "user/daemon/log.h"
#include "user/daemon/metrics.h"
#include "user/daemon/sandbox.h"
#include "user/daemon/supervisor.h"

/* What workers have at the end, before they are killed. */
#define FINISH_US 5000000u
/* Connections, a channel for each worker, and the links of the workers' programs. */
#define DESCRIPTORS 65536u
/* Workers of a user, but root, for each profile that he may have. */
#define WORKERS_PER_PROFILE 2

struct server {
	sd_event *event;
	struct supervisor supervisor;
	struct listener listener;
	struct metrics *metrics;
	bool is_stopping;
	size_t n_profiles_told, n_workers_told;
};

/* ---- the end ---- */

static void exit_if_done(struct server *s)
{
	if (s->is_stopping && !workers__count(s->supervisor.workers))
		sd_event_exit(s->event, 0);
}

static int on_finish_timeout(sd_event_source *source, uint64_t us, void *ctx)
{
	struct server *s = ctx;

	(void)source;
	(void)us;
	log__line(LOG_PRIORITY_WARNING, "%zu workers have not finished in time and are killed",
		  workers__count(s->supervisor.workers));
	workers__kill(s->supervisor.workers);
	sd_event_exit(s->event, 0);
	return 0;
}

static int on_stop_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *ctx)
{
	struct server *s = ctx;

	(void)source;
	if (s->is_stopping)
		return 0;
	s->is_stopping = true;
	log__line(LOG_PRIORITY_INFO, "stopping (signal %u)", info->ssi_signo);
	sd_notify(0, "STOPPING=1\nSTATUS=Waiting for workers");
	connections__free(s->supervisor.connections);
	s->supervisor.connections = NULL;
	workers__close(s->supervisor.workers);
	if (sd_event_add_time_relative(s->event, NULL, CLOCK_MONOTONIC, FINISH_US, 0,
				       on_finish_timeout, s) < 0)
		sd_event_exit(s->event, 0);
	exit_if_done(s);
	return 0;
}

/* ---- what others see ---- */

static void on_changed(void *ctx)
{
	struct server *s = ctx;
	size_t n_profiles = table__n_alive(s->supervisor.table);
	size_t n_workers = workers__count(s->supervisor.workers);

	exit_if_done(s);
	if (s->is_stopping || (n_profiles == s->n_profiles_told && n_workers == s->n_workers_told))
		return;
	s->n_profiles_told = n_profiles;
	s->n_workers_told = n_workers;
	sd_notifyf(0, "STATUS=%zu profiles, %zu processes", n_profiles, n_workers);
}

static int on_metrics(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	struct server *s = ctx;

	(void)source;
	(void)fd;
	(void)events;
	metrics__run(s->metrics);
	return 0;
}

/* ---- the beginning ---- */

static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= DESCRIPTORS)
		return;
	limit.rlim_cur = DESCRIPTORS;
	if (limit.rlim_max < DESCRIPTORS)
		limit.rlim_max = DESCRIPTORS;
	if (!setrlimit(RLIMIT_NOFILE, &limit))
		return;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		log__line(LOG_PRIORITY_WARNING, "cannot raise the number of open files: %s",
			  strerror(errno));
}

static int set_up_signals(struct server *s)
{
	sigset_t mask;
	int ret;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &mask, NULL))
		return -errno;
	ret = sd_event_add_signal(s->event, NULL, SIGTERM, on_stop_signal, s);
	if (ret >= 0)
		ret = sd_event_add_signal(s->event, NULL, SIGINT, on_stop_signal, s);
	return ret;
}

static int set_up_metrics(struct server *s, const char *addr_port, struct hs_error *err)
{
	int ret;

	if (!addr_port)
		return 0;
	ret = metrics__new(&s->metrics, addr_port, supervisor__snapshot, &s->supervisor, err);
	if (ret)
		return ret;
	ret = sd_event_add_io(s->event, NULL, metrics__fd(s->metrics), EPOLLIN, on_metrics, s);
	return ret < 0 ? hs_error__set(err, ret, "cannot watch the metrics: %s", strerror(-ret))
		       : 0;
}

/* The event loop and what hangs in it, but for clients. */
static int set_up_loop(struct server *s, const struct daemon_options *o,
		       const struct kernel_features *kernel, struct hs_error *err)
{
	const struct table_limits limits = { .max_profiles = o->max_profiles,
					     .max_blocks = o->max_blocks,
					     .max_memory_bytes = o->max_memory_bytes };
	struct supervisor *v = &s->supervisor;
	int ret;

	v->changed = on_changed;
	v->ctx = s;
	v->max_workers = (size_t)o->max_profiles * WORKERS_PER_PROFILE;
	ret = sd_event_new(&s->event);
	if (ret >= 0)
		ret = set_up_signals(s);
	if (ret >= 0)
		ret = table__new(&v->table, &limits);
	if (ret >= 0)
		ret = workers__new(&v->workers, s->event, kernel, &supervisor_workers_ops, v);
	if (ret >= 0)
		ret = sd_event_set_watchdog(s->event, true);
	return ret < 0 ? hs_error__set(err, ret, "cannot set up: %s", strerror(-ret)) : 0;
}

/* From here on anybody may come. */
static int let_clients_in(struct server *s, struct hs_error *err)
{
	struct supervisor *v = &s->supervisor;
	int fd = s->listener.fd, ret;

	s->listener.fd = -1;
	ret = connections__new(&v->connections, s->event, fd, supervisor__on_request, v);
	return ret < 0 ? hs_error__set(err, ret, "cannot watch the socket: %s", strerror(-ret)) : 0;
}

static int set_up(struct server *s, const struct daemon_options *o,
		  const struct kernel_features *kernel, struct hs_error *err)
{
	int ret;

	raise_limits();
	ret = listener__open(&s->listener, o->socket_path, err);
	if (!ret)
		ret = set_up_loop(s, o, kernel, err);
	if (!ret)
		ret = set_up_metrics(s, o->metrics, err);
	if (!ret)
		ret = sandbox__enter(kernel, err);
	if (!ret)
		ret = let_clients_in(s, err);
	return ret;
}

static void tear_down(struct server *s)
{
	metrics__free(s->metrics);
	connections__free(s->supervisor.connections);
	workers__free(s->supervisor.workers);
	table__free(s->supervisor.table);
	sd_event_unref(s->event);
	listener__close(&s->listener);
}

int daemon__run(const struct daemon_options *options, const struct kernel_features *kernel,
		struct hs_error *err)
{
	struct server s = { .listener = { .fd = -1, .lock_fd = -1 } };
	int ret = set_up(&s, options, kernel, err);

	if (!ret) {
		log__line(LOG_PRIORITY_INFO, "listening on %s",
			  s.listener.path[0] ? s.listener.path : "systemd's socket");
		sd_notify(0, "READY=1\nSTATUS=0 profiles, 0 processes");
		ret = sd_event_loop(s.event);
		if (ret < 0)
			hs_error__set(err, ret, "the event loop has failed: %s", strerror(-ret));
	}
	tear_down(&s);
	return ret;
}
