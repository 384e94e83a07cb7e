/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heapsonde top: what a program allocates, and what becomes of it, as it runs.
 *
 * In:   a process; keys.
 * Out:  a full-screen view, or plain tables where there is no terminal.
 */
#include <argp.h>
#include <string.h>

#include "user/cli/cli.h"
#include "user/cli/common_args.h"
#include "user/cli/profile_args.h"
#include "user/cli/record_daemon.h"
#include "user/top/rate.h"
#include "user/top/run.h"

enum { OPT_DELAY = 256, OPT_DURATION, OPT_BY, OPT_METRIC, OPT_PLAIN, OPT_ROWS };

/* More would be no live view. */
#define DELAY_MAX_S 3600.0
#define DELAY_MIN_S 0.05

static const struct argp_option option_list[] = {
	{ NULL, 0, NULL, 0, "What to attach to:", PROFILE_ARGS_WHAT },
	{ "pid", 'p', "PID", 0, "The process", PROFILE_ARGS_WHAT },
	{ "socket", CLI_OPT_SOCKET, "PATH", 0, RECORD_DAEMON_SOCKET_HELP, PROFILE_ARGS_WHAT },
	{ NULL, 0, NULL, 0, "What to show:", PROFILE_ARGS_OUTPUT },
	{ "by", OPT_BY, "WHAT", 0, "A row for each: site (default), or stack",
	  PROFILE_ARGS_OUTPUT },
	{ "metric", OPT_METRIC, "WHAT", 0,
	  "What rows are sorted by at first: alloc (default), live or promoted",
	  PROFILE_ARGS_OUTPUT },
	{ "delay", OPT_DELAY, "S", 0, "Seconds between refreshes (default 1)",
	  PROFILE_ARGS_OUTPUT },
	{ "duration", OPT_DURATION, "S", 0, "End after this many seconds", PROFILE_ARGS_OUTPUT },
	{ "iterations", 'n', "N", 0, "End after so many refreshes", PROFILE_ARGS_OUTPUT },
	{ "plain", OPT_PLAIN, NULL, 0,
	  "Tables one after the other, as where standard output is no terminal",
	  PROFILE_ARGS_OUTPUT },
	{ "rows", OPT_ROWS, "N", 0, "Rows of these tables (default 20)", PROFILE_ARGS_OUTPUT },
	{ 0 },
};

static const char doc[] =
	"Show what a running OCaml program allocates, and what becomes of it.\v"
	"Figures are estimates from samples, with 95 % confidence intervals; blocks allocated "
	"before attaching are not seen. Without a rate the sampling follows the program: about a "
	"thousand samples a second, at most 2^-14. ? in the view lists the keys. q or Ctrl-C "
	"ends it; then nothing stays attached.";

struct parsing {
	struct top_options *o;
	struct profile_args args;
};

static void set_view(struct top_options *o, int key, const char *arg,
		     const struct argp_state *state)
{
	if (key == OPT_BY) {
		if (rows__parse_by(arg, &o->by) ||
		    (o->by != ROWS_BY_SITE && o->by != ROWS_BY_STACK))
			cli__argp_error(state, "rows are by site or stack, not by %s", arg);
	} else if (rows__parse_metric(arg, &o->metric) || o->metric == ROWS_SURVIVORS) {
		cli__argp_error(state, "unknown metric %s (there are alloc, live and promoted)",
				arg);
	}
}

static void check(const struct parsing *p, const struct argp_state *state)
{
	if (!p->o->pid)
		cli__argp_error(state, "give -p PID");
	if (p->o->delay_s < DELAY_MIN_S || p->o->delay_s > DELAY_MAX_S)
		cli__argp_error(state, "the delay must be between 50ms and 1h");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct parsing *p = state->input;
	struct top_options *o = p->o;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		state->child_inputs[0] = &p->args;
		return 0;
	case 'p':
		o->pid = cli__argp_pid(state, arg);
		return 0;
	case CLI_OPT_SOCKET:
		o->socket = arg;
		return 0;
	case OPT_DELAY:
		o->delay_s = cli__argp_seconds(state, arg);
		return 0;
	case OPT_DURATION:
		o->duration_s = cli__argp_seconds(state, arg);
		return 0;
	case OPT_BY:
	case OPT_METRIC:
		set_view(o, key, arg, state);
		return 0;
	case OPT_PLAIN:
		o->is_plain = true;
		return 0;
	case 'n':
		if (cli__parse_positive(arg, INT32_MAX, &o->n_refreshes))
			cli__argp_error(state, "not a number of refreshes: %s", arg);
		return 0;
	case OPT_ROWS:
		if (cli__parse_positive(arg, 1000000, &o->n_rows))
			cli__argp_error(state, "not a number of rows: %s", arg);
		return 0;
	case ARGP_KEY_ARG:
		cli__argp_error(state, "unexpected argument: %s", arg);
		return 0;
	case ARGP_KEY_END:
		check(p, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_top(int argc, char **argv)
{
	static const struct argp_child children[] = { { &profile_args__argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = { option_list, parse, "-p PID", doc, children, NULL, NULL };
	struct top_options o = {
		.by = ROWS_BY_SITE, .metric = ROWS_ALLOC, .delay_s = 1, .n_rows = 20
	};
	struct parsing parsing = { .o = &o };
	struct hs_error err;
	int status = 0;

	profile_options__init(&o.profile);
	parsing.args.options = &o.profile;
	if (common_args__parse(&argp, argc, argv, 0, &parsing)) {
		status = CLI_EXIT_USAGE;
	} else {
		o.is_from_daemon = record_daemon__is_wanted(o.socket);
		o.is_rate_auto = !parsing.args.n_rates;
		if (o.is_rate_auto)
			tier_choice__make(RATE_FIRST, &o.profile.attach.tier);
		profile_args__fill_memory(&o.profile.attach);
		if (top__run(&o, &err))
			status = cli__die(&err);
	}
	profile_options__deinit(&o.profile);
	return status;
}
