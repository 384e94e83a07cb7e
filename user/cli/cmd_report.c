/* SPDX-License-Identifier: BSD-2-Clause */
/* heapsonde report: where a recorded program's words come from, and what becomes of them. */
#include <math.h>

#include "user/cli/cli.h"
#include "user/cli/report_args.h"
#include "user/common/say.h"
#include "user/report/show.h"

static const struct argp_option options[] = {
	REPORT_OPTION_BY,
	REPORT_OPTION_METRIC,
	{ "at", REPORT_AT, "TIME", 0, "As of TIME after the beginning; the metric is then live",
	  0 },
	{ "since", REPORT_SINCE, "TIME", 0, "Only blocks allocated from then on", 0 },
	{ "until", REPORT_UNTIL, "TIME", 0, "Nothing that happened later", 0 },
	REPORT_OPTION_SURVIVED,
	REPORT_OPTIONS_FILTER,
	REPORT_OPTION_N,
	REPORT_OPTION_JSON,
	{ 0 },
};

/* A time after the end is no error, but probably not what was meant. */
static void note_times(const struct recording *rec, const struct report_options *o)
{
	double latest_s = fmax(o->since_s, fmax(o->at_s, o->until_s));
	double length_s = (double)(rec->end_ns - rec->begin_ns) / 1e9;
	char text[SHOW_CHARS];

	if (latest_s > length_s)
		say__note("%s ends %s after its beginning, before the time that is asked for",
			  rec->path, show__seconds(length_s, text));
}

int cmd_report(int argc, char **argv)
{
	static const struct argp argp = {
		options,
		report_args__parse,
		"CAPTURE",
		"Where the words of a recorded program come from, and what becomes of them.\v"
		"CAPTURE is what `heapsonde record` wrote as a capture; - is standard input. TIME "
		"counts from the beginning of the recording: 12.5, 90s, 2m, 1h.",
		NULL,
		NULL,
		NULL
	};
	struct recording rec = { 0 };
	struct report_args args;
	struct hs_error err;
	int ret = report_args__run(&args, &argp, 1, argc, argv);

	if (ret)
		return ret;
	ret = report_args__read(&args, args.captures[0], 0, false, &rec, &err);
	if (!ret) {
		recording__print_notes(&rec);
		note_times(&rec, &args.options);
		ret = report__rows(&rec, &args.options, &err);
	}
	recording__deinit(&rec);
	return ret ? cli__die(&err) : cli__finish(0);
}
