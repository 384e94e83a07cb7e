/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heapsonde status: the profiles of the daemon.
 *
 * In:   perhaps the number of one.
 * Out:  a table, or one profile in detail (status_detail.c); with --json one object a
 *       line, as in docs/protocol.md.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/cli/cli.h"
#include "user/cli/common_args.h"
#include "user/cli/daemon_args.h"
#include "user/cli/status.h"
#include "user/client/client.h"
#include "user/common/units.h"
#include "user/sinks/json.h"

struct options {
	struct daemon_args args;
	bool json;
};

static const struct argp_option option_list[] = {
	{ "json", 'j', NULL, 0, "One JSON object a line", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		state->child_inputs[0] = &o->args;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- the table ---- */

#define COLUMNS 8 /* and the command, which comes last and may be long */

struct line {
	char cell[COLUMNS][40];
	const char *command;
};

static const char *const headings[COLUMNS] = { "ID",   "PID",     "USER",       "STATE",
					       "RATE", "RECORDS", "LIVE-WORDS", "LOST" };

static struct line heading_line(void)
{
	struct line line = { .command = "COMMAND" };

	for (size_t c = 0; c < COLUMNS; c++)
		snprintf(line.cell[c], sizeof(line.cell[c]), "%s", headings[c]);
	return line;
}

static struct line profile_line(const json_t *p)
{
	struct line line = { .command = status__string(p, "command") };
	const size_t size = sizeof(line.cell[0]);

	snprintf(line.cell[0], size, "%lld", status__integer(p, "profile"));
	snprintf(line.cell[1], size, "%lld", status__integer(p, "pid"));
	status__user(p, line.cell[2], size);
	snprintf(line.cell[3], size, "%s", status__string(p, "state"));
	status__rate(p, line.cell[4], size);
	snprintf(line.cell[5], size, "%lld", status__integer(p, "records"));
	units__words(json_number_value(json_object_get(p, "live_words")), line.cell[6], size);
	snprintf(line.cell[7], size, "%lld", status__lost(p));
	return line;
}

static void print_line(const struct line *line, const int *width)
{
	int used = 0;

	for (size_t c = 0; c < COLUMNS; c++) {
		/* Words to the left: the user, the state, the rate. */
		printf(c >= 2 && c <= 4 ? "%-*s  " : "%*s  ", width[c], line->cell[c]);
		used += width[c] + 2;
	}
	cli__print_last_column(line->command, used);
}

static void print_table(const json_t *profiles)
{
	struct line heading = heading_line();
	size_t n = json_array_size(profiles);
	int width[COLUMNS] = { 0 };

	if (!n) {
		puts("no profiles");
		return;
	}
	/* Twice over the same lines: to measure and to print. */
	for (int print = 0; print <= 1; print++) {
		for (size_t i = 0; i <= n; i++) {
			struct line line =
				i ? profile_line(json_array_get(profiles, i - 1)) : heading;

			for (size_t c = 0; c < COLUMNS; c++)
				if ((int)strlen(line.cell[c]) > width[c])
					width[c] = (int)strlen(line.cell[c]);
			if (print)
				print_line(&line, width);
		}
	}
}

/* ---- the command ---- */

int status__ask(const char *socket, int profile, json_t **answer, struct hs_error *err)
{
	json_t *request = json_pack("{s:s}", "op", "status"), *profiles;
	int ret = request ? 0 : -1;

	if (!ret && profile)
		ret = json_object_set_new(request, "profile", json_integer(profile));
	ret = ret ? hs_error__set(err, -ENOMEM, "out of memory")
		  : client__request(socket, request, answer, err);
	json_decref(request);
	if (ret)
		return ret;
	profiles = json_object_get(*answer, "profiles");
	if (!json_is_array(profiles))
		ret = hs_error__set(err, -EPROTO, "the daemon's answer has no profiles");
	else if (profile && !json_array_size(profiles))
		ret = hs_error__set(err, -ENOENT, "no profile %d", profile);
	if (ret)
		json_decref(*answer);
	return ret;
}

static int print_json(const json_t *profile)
{
	int ret = json_dumpf(profile, stdout, JSON_LINE_FLAGS);

	putchar('\n');
	return ret;
}

int cmd_status(int argc, char **argv)
{
	static const struct argp_child children[] = { { &daemon_args__argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = {
		option_list,
		parse,
		"[PROFILE]",
		"Show the profiles of the daemon: one's own, or all for root; or one of them in "
		"detail.\v"
		"LIVE-WORDS are the words that live of those allocated since the start, "
		"estimated: older blocks are not known. LOST is how much is missing from the "
		"records, over all causes.",
		children,
		NULL,
		NULL
	};
	struct options o = { .args.is_optional = true };
	const json_t *profiles;
	json_t *answer;
	struct hs_error err;
	int ret = 0;

	if (common_args__parse(&argp, argc, argv, 0, &o))
		return CLI_EXIT_USAGE;
	if (status__ask(o.args.socket, o.args.profile, &answer, &err))
		return cli__die(&err);
	profiles = json_object_get(answer, "profiles");
	for (size_t i = 0; o.json && !ret && i < json_array_size(profiles); i++)
		ret = print_json(json_array_get(profiles, i));
	if (!o.json && o.args.profile)
		status_detail__print(json_array_get(profiles, 0));
	else if (!o.json)
		print_table(profiles);
	json_decref(answer);
	return cli__finish(ret ? CLI_EXIT_ERROR : 0);
}
