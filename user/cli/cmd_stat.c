/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heapsonde stat: the counters of each domain, as vmstat shows a machine's.
 *
 * The counters come from the GC probes: exact, and as of each domain's last
 * collection. A line shows what an interval added.
 */
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "user/attach/attach.h"
#include "user/cli/attach_notes.h"
#include "user/cli/cli.h"
#include "user/cli/common_args.h"
#include "user/cli/record_daemon.h"
#include "user/cli/stat.h"
#include "user/common/clock.h"
#include "user/track/domains.h"

struct stat_session {
	struct target *target;
	struct attachment *attachment;
	struct domain_book *book;
	int signal_fd;
	int n_lines; /* since the last heading */
};

static const struct argp_option option_list[] = {
	{ "pid", 'p', "PID", 0, "The process", 0 },
	{ "socket", CLI_OPT_SOCKET, "PATH", 0, RECORD_DAEMON_SOCKET_HELP, 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct stat_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		return 0;
	case 'p':
		o->pid = cli__argp_pid(state, arg);
		return 0;
	case CLI_OPT_SOCKET:
		o->socket = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0 && cli__parse_seconds(arg, &o->interval_s))
			cli__argp_error(state, "not an interval in seconds: %s", arg);
		else if (state->arg_num == 1 && cli__parse_positive(arg, INT32_MAX, &o->count))
			cli__argp_error(state, "not a number of lines: %s", arg);
		else if (state->arg_num > 1)
			cli__argp_error(state, "too many arguments");
		return 0;
	case ARGP_KEY_END:
		if (!o->pid)
			cli__argp_error(state, "give -p PID");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int begin(struct stat_session *s, const struct stat_options *o, struct hs_error *err)
{
	const struct attach_options attach = { .counters_only = true };
	struct kernel_features kernel;
	uint64_t before_ns;
	int ret = kernel_features__probe(&kernel, err);

	if (!ret)
		ret = target__open_probed(&s->target, o->pid, err);
	if (!ret)
		ret = kernel_features__require(&kernel, err);
	if (ret)
		return ret;
	s->signal_fd = cli__open_signals(err);
	if (s->signal_fd < 0)
		return s->signal_fd;
	if (domain_book__new(&s->book))
		return hs_error__set(err, -ENOMEM, "out of memory");
	attach_notes__target(s->target, &kernel);
	before_ns = clock__now_ns();
	ret = attachment__new(&s->attachment, s->target, &attach, &kernel, err);
	if (!ret)
		attach_notes__attached(&attach, clock__now_ns() - before_ns);
	return ret;
}

/* One line per domain that did something or is alive. */
static void print_interval(struct stat_session *s)
{
	const struct domain_entry *e;
	size_t n = domain_book__entries(s->book, &e);

	for (size_t i = 0; i < n; i++, e++) {
		const struct hs_counts *before = &e->before.now;
		struct stat_line line = { .domain = e->unique_id };

		/* In the first interval of a domain count from its first event. */
		if (!(e->before.flags & HS_DOMAIN_BASED))
			before = &e->now.base;
		if (e->unique_id == DOMAIN_NONE)
			continue;
		if (e->now.flags & HS_DOMAIN_TERMINATED && e->before.flags & HS_DOMAIN_TERMINATED)
			continue;
		line.is_terminated = e->now.flags & HS_DOMAIN_TERMINATED;
		line.added = stat__difference(&e->now.now, before);
		stat_columns__print(&line, &s->n_lines);
	}
}

/* Sleep until the next line: 1 go on, 0 a signal or the target's end. */
static int wait_until(struct stat_session *s, const struct timespec *until)
{
	struct pollfd fds[] = {
		{ .fd = s->signal_fd, .events = POLLIN },
		{ .fd = s->target->pidfd, .events = POLLIN },
	};
	struct timespec now;

	for (;;) {
		long ms;

		clock_gettime(CLOCK_MONOTONIC, &now);
		ms = (until->tv_sec - now.tv_sec) * 1000 + (until->tv_nsec - now.tv_nsec) / 1000000;
		if (ms <= 0)
			return 1;
		if (poll(fds, 2, ms > 1000 ? 1000 : (int)ms) > 0)
			return 0;
	}
}

static int run(struct stat_session *s, const struct stat_options *o, struct hs_error *err)
{
	struct timespec until;
	int go_on = 1;

	clock_gettime(CLOCK_MONOTONIC, &until);
	for (int i = 0; go_on && (!o->count || i < o->count); i++) {
		until.tv_sec += (time_t)o->interval_s;
		until.tv_nsec += (long)((o->interval_s - (double)(time_t)o->interval_s) * 1e9);
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		go_on = wait_until(s, &until);
		if (domain_book__update(s->book, s->attachment, s->target->pid))
			return hs_error__set(err, -ENOMEM, "out of memory");
		print_interval(s);
		if (stat_columns__flush(err))
			return -EIO;
	}
	return 0;
}

int cmd_stat(int argc, char **argv)
{
	static const struct argp argp = {
		option_list,
		parse,
		"-p PID [INTERVAL [COUNT]]",
		"Show what each domain allocates and collects, every "
		"INTERVAL seconds, COUNT times; without an interval once, "
		"after a second.\v"
		"Words include headers. PROMOTED-WORDS are those that a domain "
		"has copied, its own or another's; MAJOR-WORDS those allocated "
		"in the major heap directly. Counters are as of a domain's last "
		"collection.",
		NULL,
		NULL,
		NULL
	};
	struct stat_options o = { 0 };
	struct stat_session s = { .signal_fd = -1 };
	struct hs_error err;
	int status = 0;

	if (common_args__parse(&argp, argc, argv, 0, &o))
		return CLI_EXIT_USAGE;
	if (o.interval_s == 0) {
		o.interval_s = 1.0;
		o.count = 1;
	}
	if (record_daemon__is_wanted(o.socket))
		return stat_daemon__run(&o);
	if (begin(&s, &o, &err) || run(&s, &o, &err))
		status = cli__die(&err);
	attachment__free(s.attachment);
	domain_book__free(s.book);
	target__free(s.target);
	if (s.signal_fd >= 0)
		close(s.signal_fd);
	return status;
}
