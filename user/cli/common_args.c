/* SPDX-License-Identifier: BSD-2-Clause */
/* See common_args.h. */
#include "user/cli/common_args.h"

#include <stdio.h>

#include "user/cli/cli.h"
#include "user/common/say.h"

/* Above what commands and profile_args.c use. */
enum { OPT_USAGE = 0x400 };

/* Behind all other groups: argp sorts negative ones to the end. */
#define GROUP (-1)

static const struct argp_option options[] = {
	{ "quiet", 'q', NULL, 0, "No notes on stderr, only errors", GROUP },
	{ "verbose", 'v', NULL, 0, "More notes on stderr: what is done, and how", GROUP },
	{ "help", 'h', NULL, 0, "Print this help", GROUP },
	{ NULL, '?', NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, GROUP },
	{ "usage", OPT_USAGE, NULL, 0, "Print a short usage message", GROUP },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		state->child_inputs[0] = state->input;
		return 0;
	case 'q':
		say__set_level(SAY_ERRORS);
		return 0;
	case 'v':
		say__set_level(SAY_DETAILS);
		return 0;
	case 'h':
	case '?':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	case OPT_USAGE:
		argp_state_help(state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

error_t common_args__parse(const struct argp *argp, int argc, char **argv, unsigned int flags,
			   void *input)
{
	const struct argp_child children[] = { { argp, 0, NULL, 0 }, { 0 } };
	const struct argp all = { .options = options, .parser = parse, .children = children };

	/* ARGP_NO_HELP: argp's own -? has no -h. */
	return argp_parse(&all, argc, argv, flags | ARGP_NO_HELP, NULL, input);
}
