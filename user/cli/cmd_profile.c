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
#include "user/cli/daemon_args.h"
#include "user/cli/profile_args.h"
#include "user/client/client.h"

struct options {
	struct daemon_args args;
	struct tier_choice tier; /* of `rate`; rate 0: not given */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	(void)arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	cli__argp_one_line(state);
	state->child_inputs[0] = &o->args;
	return 0;
}

/* The second argument is the rate. */
static error_t parse_rate(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (!o->args.profile)
			return ARGP_ERR_UNKNOWN;
		if (o->tier.rate > 0)
			cli__argp_error(state, "one rate at a time: %s", arg);
		profile_args__rate(state, arg, &o->tier);
		return 0;
	case ARGP_KEY_END:
		if (o->args.profile && !(o->tier.rate > 0))
			cli__argp_error(state, "which rate?");
		return 0;
	default:
		return parse(key, arg, state);
	}
}

static int ask(const char *op, const struct options *o, json_t **answer, struct hs_error *err)
{
	json_t *request = json_pack("{s:s, s:i}", "op", op, "profile", o->args.profile);
	int ret = request ? 0 : -1;

	if (!ret && o->tier.rate > 0)
		ret = json_object_set_new(request, "rate", json_real(o->tier.rate));
	ret = ret ? hs_error__set(err, -ENOMEM, "out of memory")
		  : client__request(o->args.socket, request, answer, err);
	json_decref(request);
	return ret;
}

static const struct argp_child children[] = { { &daemon_args__argp, 0, NULL, 0 }, { 0 } };

static int run(const char *op, const struct argp *argp, int argc, char **argv)
{
	struct options options = { 0 }, *o = &options;
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
		hs_error__set(&err, -EIO, "the output of profile %d is incomplete: %s",
			      o->args.profile, output_error);
		status = cli__die(&err);
	}
	json_decref(answer);
	return status;
}

int cmd_stop(int argc, char **argv)
{
	static const struct argp argp = { NULL,
					  parse,
					  "PROFILE",
					  "End the sampling of a profile.\v"
					  "Its blocks are followed on: promotions and deaths are "
					  "reported until `heapsonde discard`.",
					  children,
					  NULL,
					  NULL };

	return run("stop", &argp, argc, argv);
}

int cmd_discard(int argc, char **argv)
{
	static const struct argp argp = { NULL,
					  parse,
					  "PROFILE",
					  "Forget a profile that is stopped, or whose process has "
					  "ended, and write the summary to its output.",
					  children,
					  NULL,
					  NULL };

	return run("discard", &argp, argc, argv);
}

int cmd_rate(int argc, char **argv)
{
	static const struct argp argp = { NULL,
					  parse_rate,
					  "PROFILE RATE",
					  "Sample at another rate: samples per word, as 2^-13 or "
					  "0.00037.\v"
					  "Each domain goes over at its next minor collection.",
					  children,
					  NULL,
					  NULL };

	return run("rate", &argp, argc, argv);
}
