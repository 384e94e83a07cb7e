/* SPDX-License-Identifier: BSD-2-Clause */
/* See daemon_args.h. */
#include "user/cli/daemon_args.h"

#include <stddef.h>

#include "user/cli/cli.h"
#include "user/wire/wire.h"

static const struct argp_option options[] = {
	{ "socket", CLI_OPT_SOCKET, "PATH", 0, CLI_SOCKET_HELP, 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct daemon_args *args = state->input;

	switch (key) {
	case CLI_OPT_SOCKET:
		args->socket = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (args->profile)
			cli__argp_error(state, "one profile at a time: %s", arg);
		args->profile = cli__argp_profile(state, arg);
		return 0;
	case ARGP_KEY_NO_ARGS:
		if (!args->is_optional)
			cli__argp_error(state, "which profile? heapsonde status lists them");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp daemon_args__argp = { options, parse, NULL, NULL, NULL, NULL, NULL };
