/* SPDX-License-Identifier: BSD-2-Clause */
/* heapsonde leaks: what a recorded program holds for long, and ever more of. */
#include "user/cli/cli.h"
#include "user/cli/report_args.h"

static const struct argp_option options[] = {
	{ "survived", REPORT_SURVIVED, "N", 0,
	  "Only blocks that have lived through N major cycles (default 2)", 0 },
	REPORT_OPTIONS_FILTER,
	REPORT_OPTION_N,
	REPORT_OPTION_JSON,
	{ 0 },
};

/* Read the capture once more, up to the middle; *half stays zeroed where that cannot be. What
 * survives changes as cycles end, so the middle is that of the time from the first end of a
 * cycle to the last. */
static int read_half(const struct report_args *args, const struct recording *rec,
		     struct recording *half, struct hs_error *err)
{
	uint64_t middle_ns = report__middle_ns(rec);

	/* A pipe can be read once. */
	if (!replay__is_repeatable(args->captures[0]) || middle_ns <= rec->begin_ns)
		return 0;
	return report_args__read(args, args->captures[0], (double)(middle_ns - rec->begin_ns) / 1e9,
				 false, half, err);
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
	if (!ret) {
		recording__print_notes(&rec);
		ret = report__leaks(&rec, half.replay.heap ? &half : NULL, &args.options, &err);
	}
	recording__deinit(&half);
	recording__deinit(&rec);
	return ret ? cli__die(&err) : cli__finish(0);
}
