/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of `heapsonde record`; see record.h. */
#include <argp.h>
#include <string.h>
#include <unistd.h>

#include "user/cli/cli.h"
#include "user/cli/common_args.h"
#include "user/cli/profile_args.h"
#include "user/cli/record.h"
#include "user/cli/record_daemon.h"

enum { OPT_DURATION = 256, OPT_FORMAT, OPT_TOP };

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "What to attach to:", PROFILE_ARGS_WHAT },
	{ "pid", 'p', "PID", 0, "Attach to this process", PROFILE_ARGS_WHAT },
	{ "socket", CLI_OPT_SOCKET, "PATH", 0, RECORD_DAEMON_SOCKET_HELP, PROFILE_ARGS_WHAT },
	{ "duration", OPT_DURATION, "S", 0, "Stop after so many seconds, or as 500ms, 5m, 2h",
	  PROFILE_ARGS_SAMPLE },
	{ NULL, 0, NULL, 0, "Output:", PROFILE_ARGS_OUTPUT },
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard output (-)",
	  PROFILE_ARGS_OUTPUT },
	{ "force", OUTPUT_OPT_FORCE, NULL, 0, OUTPUT_FORCE_HELP, PROFILE_ARGS_OUTPUT },
	{ "format", OPT_FORMAT, "FORMAT", 0, OUTPUT_FORMAT_HELP, PROFILE_ARGS_OUTPUT },
	{ "top", OPT_TOP, "N", 0, "At the end print the N biggest allocation sites to stderr",
	  PROFILE_ARGS_OUTPUT },
	{ 0 },
};

static const char doc[] =
	"Record what Gc.Memprof would tell a running OCaml program.\v"
	"Writes one JSON object a line: a header, then allocations, promotions and deaths of "
	"sampled blocks with their call stacks, then a summary. Ctrl-C, --duration or the end of "
	"the program end the recording. With a command, the program is started and its exit code "
	"passed on. Root does it all by itself; for others the daemon does it, within the limits "
	"that it sets.";

struct parsing {
	struct record_options *o;
	struct profile_args args;
	const char *format; /* of --format; NULL: not given */
};

static void check(struct parsing *parsing, const struct argp_state *state)
{
	struct record_options *o = parsing->o;

	if (!o->pid == !o->command)
		cli__argp_error(state, "give either -p PID or a command");
	if (o->command && o->profile.attach.n_domains)
		cli__argp_error(state, "--domain needs a running process (-p PID)");
	o->format = output_file__argp_format(state, parsing->format, o->output);
	if (o->format != SINK_JSONL && !o->output && isatty(STDOUT_FILENO))
		cli__argp_error(state, "a capture is not for a terminal: give -o FILE");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct parsing *parsing = state->input;
	struct record_options *o = parsing->o;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		state->child_inputs[0] = &parsing->args;
		return 0;
	case 'p':
		o->pid = cli__argp_pid(state, arg);
		return 0;
	case CLI_OPT_SOCKET:
		o->socket = arg;
		return 0;
	case OPT_DURATION:
		o->duration_s = cli__argp_seconds(state, arg);
		return 0;
	case 'o':
		output_file__argp_check(state, arg);
		o->output = strcmp(arg, "-") ? arg : NULL;
		return 0;
	case OUTPUT_OPT_FORCE:
		o->force = true;
		return 0;
	case OPT_FORMAT:
		parsing->format = arg;
		return 0;
	case OPT_TOP:
		if (cli__parse_positive(arg, 1000000, &o->top))
			cli__argp_error(state, "not a number of sites: %s", arg);
		return 0;
	case ARGP_KEY_ARGS:
		o->command = state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		check(parsing, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int record_options__parse(struct record_options *o, int argc, char **argv)
{
	static const struct argp_child children[] = { { &profile_args__argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = { options, parse,    "-p PID\n-- COMMAND [ARG...]",
					  doc,     children, NULL,
					  NULL };
	struct parsing parsing = { .o = o, .args.options = &o->profile };

	memset(o, 0, sizeof(*o));
	profile_options__init(&o->profile);
	/* In order: what follows the command is the command's. argp exits by itself
	 * after a usage error, with the status that cli__init chose. */
	return common_args__parse(&argp, argc, argv, ARGP_IN_ORDER, &parsing) ? CLI_EXIT_USAGE : 0;
}

void record_options__deinit(struct record_options *o)
{
	profile_options__deinit(&o->profile);
}
