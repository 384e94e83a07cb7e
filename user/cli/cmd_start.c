/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heapsonde start: begin a profile in the daemon, and leave it there.
 *
 * In:   a process, what to sample, perhaps a file.
 * Out:  the profile's number on stdout.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/cli/cli.h"
#include "user/cli/common_args.h"
#include "user/cli/output_file.h"
#include "user/cli/profile_args.h"
#include "user/client/start_request.h"
#include "user/client/client.h"
#include "user/wire/wire.h"

enum { OPT_FORMAT = 256, OPT_JSON, OPT_DURATION };

struct options {
	pid_t pid;
	struct profile_options profile;
	struct profile_args args;
	const char *output; /* NULL: none */
	const char *socket;
	double duration_s;       /* 0: until something else ends it */
	const char *format_name; /* of --format; NULL: not given */
	enum sink_format format;
	bool json;
	bool force; /* replace output */
};

static const struct argp_option option_list[] = {
	{ NULL, 0, NULL, 0, "What to attach to:", PROFILE_ARGS_WHAT },
	{ "pid", 'p', "PID", 0, "The process", PROFILE_ARGS_WHAT },
	{ "socket", CLI_OPT_SOCKET, "PATH", 0, CLI_SOCKET_HELP, PROFILE_ARGS_WHAT },
	{ "duration", OPT_DURATION, "S", 0, "Stop after so many seconds, or as 500ms, 5m, 2h",
	  PROFILE_ARGS_SAMPLE },
	{ NULL, 0, NULL, 0, "Output:", PROFILE_ARGS_OUTPUT },
	{ "output", 'o', "FILE", 0, "Write the records to FILE", PROFILE_ARGS_OUTPUT },
	{ "force", OUTPUT_OPT_FORCE, NULL, 0, OUTPUT_FORCE_HELP, PROFILE_ARGS_OUTPUT },
	{ "format", OPT_FORMAT, "FORMAT", 0, "Of FILE: " OUTPUT_FORMAT_HELP, PROFILE_ARGS_OUTPUT },
	{ "json", OPT_JSON, NULL, 0, "Print the number as a JSON object", PROFILE_ARGS_OUTPUT },
	{ 0 },
};

static const char doc[] =
	"Begin a profile in the daemon and print its number.\v"
	"It samples until `heapsonde stop`, `heapsonde discard`, or the end of the program or of "
	"the daemon. Its records go to FILE and to those who `heapsonde follow` it. Kernel memory "
	"is smaller by default than --help says of `record`: 2M, 65536 blocks, 8192 stacks.";

static void check(struct options *o, const struct argp_state *state)
{
	if (!o->pid)
		cli__argp_error(state, "give -p PID");
	o->format = output_file__argp_format(state, o->format_name, o->output);
	if (o->format != SINK_JSONL && !o->output)
		cli__argp_error(state, "a capture needs -o FILE");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		state->child_inputs[0] = &o->args;
		return 0;
	case 'p':
		o->pid = cli__argp_pid(state, arg);
		return 0;
	case 'o':
		if (!strcmp(arg, "-"))
			cli__argp_error(state, "start does not stay to write to standard output: "
					       "use record or follow");
		output_file__argp_check(state, arg);
		o->output = arg;
		return 0;
	case OUTPUT_OPT_FORCE:
		o->force = true;
		return 0;
	case OPT_FORMAT:
		o->format_name = arg;
		return 0;
	case OPT_DURATION:
		o->duration_s = cli__argp_seconds(state, arg);
		return 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	case CLI_OPT_SOCKET:
		o->socket = arg;
		return 0;
	case ARGP_KEY_ARG:
		cli__argp_error(state, "unexpected argument: %s", arg);
		return 0;
	case ARGP_KEY_END:
		check(o, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int open_file(const struct options *o, struct output_file *file, struct hs_error *err)
{
	char *name = NULL;
	int ret = output_file__expand(o->output, o->pid, &name, err);

	if (!ret)
		ret = output_file__open(file, name, o->force ? OUTPUT_FORCE : 0, err);
	free(name);
	return ret;
}

/* Connect first, so that without a daemon no file is touched. */
static int start(const struct options *o, json_t **answer, struct hs_error *err)
{
	const struct start_request request = { .pid = o->pid,
					       .profile = &o->profile,
					       .format = o->format,
					       .duration_s = o->duration_s };
	struct output_file file = { .fd = -1 };
	struct client client;
	json_t *json = NULL;
	int ret = client__connect(&client, o->socket, err);

	if (!ret && o->output)
		ret = open_file(o, &file, err);
	if (!ret) {
		json = start_request__json(&request);
		ret = json ? client__ask(&client, json, file.fd, answer, err)
			   : hs_error__set(err, -ENOMEM, "out of memory");
	}
	json_decref(json);
	if (!ret && o->output)
		ret = output_file__keep(&file, err);
	else
		output_file__drop(&file);
	client__close(&client);
	return ret;
}

static void print(const json_t *answer, bool json)
{
	json_int_t id = json_integer_value(json_object_get(answer, "profile"));

	if (json)
		printf("{\"profile\":%lld}\n", (long long)id);
	else
		printf("%lld\n", (long long)id);
}

int cmd_start(int argc, char **argv)
{
	static const struct argp_child children[] = { { &profile_args__argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = { option_list, parse, "-p PID", doc, children, NULL, NULL };
	struct options o = { 0 };
	json_t *answer = NULL;
	struct hs_error err;
	int status = 0;

	profile_options__init(&o.profile);
	o.args.options = &o.profile;
	if (common_args__parse(&argp, argc, argv, 0, &o)) {
		status = CLI_EXIT_USAGE;
	} else {
		int ret = start(&o, &answer, &err);

		/* The profile is there even if its file could not be renamed. */
		if (answer)
			print(answer, o.json);
		status = cli__finish(ret ? cli__die(&err) : 0);
	}
	json_decref(answer);
	profile_options__deinit(&o.profile);
	return status;
}
