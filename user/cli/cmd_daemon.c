/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heapsonde daemon: profiles for whoever asks, over a socket. user/daemon/daemon.h.
 */
#include <argp.h>
#include <stdint.h>

#include "user/attach/kernel.h"
#include "user/cli/cli.h"
#include "user/cli/common_args.h"
#include "user/daemon/daemon.h"
#include "user/daemon/metrics_listen.h"
#include "user/wire/wire.h"

enum { OPT_SOCKET = 256, OPT_METRICS, OPT_MAX_PROFILES, OPT_MAX_BLOCKS, OPT_MAX_MEMORY };

static const struct argp_option option_list[] = {
	{ "socket", OPT_SOCKET, "PATH", 0,
	  "Listen on this Unix socket (default " WIRE_SOCKET_DEFAULT ")", 0 },
	{ "metrics", OPT_METRICS, "ADDR:PORT", 0, "Serve metrics for Prometheus over HTTP here",
	  0 },
	{ NULL, 0, NULL, 0, "What each user but root may have at once:", 1 },
	{ "max-profiles", OPT_MAX_PROFILES, "N", 0, "Profiles (default 16)", 1 },
	{ "max-blocks", OPT_MAX_BLOCKS, "N", 0, "Blocks followed, in all profiles (4194304)", 1 },
	{ "max-memory", OPT_MAX_MEMORY, "BYTES", 0,
	  "Kernel memory, in all profiles, as 512k or 2G (512M)", 1 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct daemon_options *o = state->input;
	int n;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		return 0;
	case OPT_SOCKET:
		o->socket_path = arg;
		return 0;
	case OPT_METRICS:
		if (metrics_listen__check(arg))
			cli__argp_error(state,
					"not an address for metrics, as 127.0.0.1:9464, [::1]:9464 "
					"or :9464: %s",
					arg);
		o->metrics = arg;
		return 0;
	case OPT_MAX_PROFILES:
		if (cli__parse_positive(arg, INT32_MAX, &n))
			cli__argp_error(state, "not a number of profiles: %s", arg);
		o->max_profiles = (uint32_t)n;
		return 0;
	case OPT_MAX_BLOCKS:
		if (cli__parse_positive(arg, INT32_MAX, &n))
			cli__argp_error(state, "not a number of blocks: %s", arg);
		o->max_blocks = (uint64_t)n;
		return 0;
	case OPT_MAX_MEMORY:
		if (cli__parse_bytes(arg, &o->max_memory_bytes))
			cli__argp_error(state, "not a size in bytes, as 256M: %s", arg);
		return 0;
	case ARGP_KEY_ARG:
		cli__argp_error(state, "unexpected argument: %s", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_daemon(int argc, char **argv)
{
	static const struct argp argp = {
		option_list,
		parse,
		NULL,
		"Hold profiles of any number of processes for other commands and users. Each user "
		"may profile his own processes, root all.\v"
		"Runs until SIGTERM or Ctrl-C, under systemd (Type=notify, also with a socket "
		"unit) or by itself.",
		NULL,
		NULL,
		NULL
	};
	struct daemon_options o = {
		.socket_path = WIRE_SOCKET_DEFAULT,
		.max_profiles = DAEMON_MAX_PROFILES,
		.max_blocks = DAEMON_MAX_BLOCKS,
		.max_memory_bytes = DAEMON_MAX_MEMORY_BYTES,
	};
	struct kernel_features kernel;
	struct hs_error err;

	if (common_args__parse(&argp, argc, argv, 0, &o))
		return CLI_EXIT_USAGE;
	if (kernel_features__probe(&kernel, &err) || kernel_features__require(&kernel, &err) ||
	    daemon__run(&o, &kernel, &err))
		return cli__die(&err);
	return 0;
}
