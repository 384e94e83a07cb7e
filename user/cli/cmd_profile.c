/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heapsonde stop, discard, rate: change a profile of the daemon.
 *
 * In:   the number of the profile.
 * Out:  nothing if all went well.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>

#include "user/cli/cli.h"
#include "user/cli/common_args.h"
#include "user/cli/profile_args.h"
#include "user/client/client.h"
#include "user/wire/wire.h"

struct options {
	int profile;
	const char *socket;
	struct tier_choice tier; /* rate 0: not given */
	bool wants_rate;
};

static const struct argp_option option_list[] = {
	{ "socket", CLI_OPT_SOCKET, "PATH", 0, CLI_SOCKET_HELP, 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		return 0;
	case CLI_OPT_SOCKET:
		o->socket = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			o->profile = cli__argp_profile(state, arg);
		else if (state->arg_num == 1 && o->wants_rate)
			profile_args__rate(state, arg, &o->tier);
		else
			cli__argp_error(state, "unexpected argument: %s", arg);
		return 0;
	case ARGP_KEY_END:
		if (!o->profile)
			cli__argp_error(state, "which profile?");
		if (o->wants_rate && !(o->tier.rate > 0))
			cli__argp_error(state, "which rate?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int ask(const char *op, const struct options *o, json_t **answer, struct hs_error *err)
{
	json_t *request = json_pack("{s:s, s:i}", "op", op, "profile", o->profile);
	int ret = request ? 0 : -1;

	if (!ret && o->wants_rate)
		ret = json_object_set_new(request, "rate", json_real(o->tier.rate));
	ret = ret ? hs_error__set(err, -ENOMEM, "out of memory")
		  : client__request(o->socket, request, answer, err);
	json_decref(request);
	return ret;
}

static int run(const char *op, struct options *o, const struct argp *argp, int argc, char **argv)
{
	const char *output_error;
	json_t *answer = NULL;
	struct hs_error err;
	int status = 0;

	if (common_args__parse(argp, argc, argv, 0, o))
		return CLI_EXIT_USAGE;
	if (ask(op, o, &answer, &err))
		return cli__die(&err);
	/* Of discard's answer: it is discarded all the same. */
	output_error = json_string_value(json_object_get(answer, "output_error"));
	if (output_error) {
		hs_error__set(&err, -EIO, "the output of profile %d is incomplete: %s", o->profile,
			      output_error);
		status = cli__die(&err);
	}
	json_decref(answer);
	return status;
}

int cmd_stop(int argc, char **argv)
{
	static const struct argp argp = { option_list,
					  parse,
					  "PROFILE",
					  "End the sampling of a profile.\v"
					  "Its blocks are followed on: promotions and deaths are "
					  "reported until `heapsonde discard`.",
					  NULL,
					  NULL,
					  NULL };
	struct options o = { 0 };

	return run("stop", &o, &argp, argc, argv);
}

int cmd_discard(int argc, char **argv)
{
	static const struct argp argp = { option_list,
					  parse,
					  "PROFILE",
					  "Forget a profile that is stopped, or whose process has "
					  "ended, and write the summary to its output.",
					  NULL,
					  NULL,
					  NULL };
	struct options o = { 0 };

	return run("discard", &o, &argp, argc, argv);
}

int cmd_rate(int argc, char **argv)
{
	static const struct argp argp = { option_list,
					  parse,
					  "PROFILE RATE",
					  "Sample at another rate: samples per word, as 2^-13 or "
					  "0.00037.\v"
					  "Each domain goes over at its next minor collection.",
					  NULL,
					  NULL,
					  NULL };
	struct options o = { .wants_rate = true };

	return run("rate", &o, &argp, argc, argv);
}
