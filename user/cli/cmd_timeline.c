/* SPDX-License-Identifier: BSD-2-Clause */
/* heapsonde timeline: a recorded program's words over time. */
#include "user/cli/cli.h"
#include "user/cli/report_args.h"

static const struct argp_option options[] = {
	{ "steps", REPORT_STEPS, "N", 0,
	  "At most so many steps (default 24, with --json as many as there are)", 0 },
	REPORT_OPTIONS_OUTPUT,
	{ 0 },
};

int cmd_timeline(int argc, char **argv)
{
	static const struct argp argp = {
		options,   report_args__parse,
		"CAPTURE", "Words that live, and that are allocated and promoted, over time.",
		NULL,      NULL,
		NULL
	};
	struct recording rec = { 0 };
	struct report_args args;
	struct hs_error err;
	int ret = report_args__run(&args, &argp, 1, argc, argv);

	if (ret)
		return ret;
	ret = report_args__read(&args, args.captures[0], 0, true, &rec, &err);
	if (!ret)
		ret = report__timeline(&rec, &args.options, &err);
	recording__deinit(&rec);
	return ret ? cli__die(&err) : cli__finish(0);
}
