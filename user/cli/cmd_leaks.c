/* SPDX-License-Identifier: BSD-2-Clause */
/* heapsonde leaks: what a recorded program holds for long, and ever more of. */
#include <string.h>

#include "user/cli/cli.h"
#include "user/cli/report_args.h"

static const struct argp_option options[] = {
	{ "survived", REPORT_SURVIVED, "N", 0,
	  "Only blocks that have lived through N major cycles (default 2)", 0 },
	REPORT_OPTIONS_FILTER,
	REPORT_OPTION_N,
	REPORT_OPTIONS_OUTPUT,
	{ 0 },
};

/* Read the capture once more, up to the middle; *half stays zeroed where that cannot be. */
static int read_half(const struct report_args *args, const struct recording *rec,
		     struct recording *half, struct hs_error *err)
{
	struct report_args quiet = *args;
	double length_s = (double)(rec->end_ns - rec->begin_ns) / 1e9;

	/* A pipe can be read once. */
	if (!strcmp(args->captures[0], "-") || length_s <= 0)
		return 0;
	quiet.is_quiet = true;
	return report_args__read(&quiet, args->captures[0], length_s / 2, false, half, err);
}

int cmd_leaks(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		report_args__parse,
		"CAPTURE",
		"What a recorded program holds for long, and ever more of.\v"
		"Stacks whose blocks live at the end and have survived N major cycles: those that "
		"grow first, the oldest of them first. CAPTURE is what `heapsonde record` wrote as "
		"a capture; from a pipe (-), growth is not known.",
		NULL,
		NULL,
		NULL
	};
	struct recording rec = { 0 }, half = { 0 };
	struct report_args args;
	struct hs_error err;
	int ret = report_args__run(&args, &argp, 1, argc, argv);

	if (ret)
		return ret;
	ret = report_args__read(&args, args.captures[0], 0, false, &rec, &err);
	if (!ret)
		ret = read_half(&args, &rec, &half, &err);
	if (!ret)
		ret = report__leaks(&rec, half.replay.heap ? &half : NULL, &args.options, &err);
	recording__deinit(&half);
	recording__deinit(&rec);
	return ret ? cli__die(&err) : cli__finish(0);
}
