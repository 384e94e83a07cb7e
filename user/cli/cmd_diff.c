/* SPDX-License-Identifier: BSD-2-Clause */
/* heapsonde diff: two recordings, and which of their differences are more than chance. */
#include <string.h>

#include "user/cli/cli.h"
#include "user/cli/report_args.h"

static const struct argp_option options[] = {
	REPORT_OPTION_BY,
	REPORT_OPTION_METRIC,
	{ "per", REPORT_PER, "WHAT", 0,
	  "Amounts per run, second or word (default: run for live, survivors and for programs "
	  "recorded whole; else second)",
	  0 },
	{ "per-word", REPORT_PER_WORD, NULL, 0, "As --per word: of all words allocated", 0 },
	{ "significance", REPORT_SIGNIFICANCE, "P", 0,
	  "Mark differences that chance alone would show with less than this probability, in any "
	  "row (default 0.01)",
	  0 },
	REPORT_OPTION_SURVIVED,
	REPORT_OPTIONS_FILTER,
	REPORT_OPTION_N,
	REPORT_OPTION_JSON,
	{ 0 },
};

int cmd_diff(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		report_args__parse,
		"CAPTURE-A CAPTURE-B",
		"Two recordings, row by row, and which differences are more than chance.\v"
		"They may have been made at different rates. Significance is about the sampling: "
		"it "
		"does not know how much the program itself varies from run to run.",
		NULL,
		NULL,
		NULL
	};
	struct recording a = { 0 }, b = { 0 };
	struct report_args args;
	struct hs_error err;
	int ret = report_args__run(&args, &argp, 2, argc, argv);

	if (ret)
		return ret;
	if (!strcmp(args.captures[0], "-") && !strcmp(args.captures[1], "-"))
		return cli__usage_error("only one of the captures can be standard input");
	ret = report_args__read(&args, args.captures[0], 0, false, &a, &err);
	if (!ret)
		ret = report_args__read(&args, args.captures[1], 0, false, &b, &err);
	if (!ret) {
		recording__print_notes(&a);
		recording__print_notes(&b);
		ret = report__diff(&a, &b, &args.options, &err);
	}
	recording__deinit(&a);
	recording__deinit(&b);
	return ret ? cli__die(&err) : cli__finish(0);
}
