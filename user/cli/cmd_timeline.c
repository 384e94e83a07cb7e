/* SPDX-License-Identifier: BSD-2-Clause */
/* heapsonde timeline: a recorded program's words over time. */
#include "user/cli/cli.h"
#include "user/cli/output_whole.h"
#include "user/cli/report_args.h"
#include "user/export/html.h"

static const struct argp_option options[] = {
	{ "steps", REPORT_STEPS, "N", 0,
	  "At most so many steps (default 24, with --json as many as there are)", 0 },
	REPORT_OPTION_JSON,
	{ "html", REPORT_HTML, NULL, 0, "A page with a picture, as `heapsonde export --to html`",
	  0 },
	{ "output", REPORT_OUTPUT, "FILE", 0,
	  "Write the page to FILE instead of standard output (-)", 0 },
	{ "force", OUTPUT_OPT_FORCE, NULL, 0, OUTPUT_FORCE_HELP, 0 },
	{ 0 },
};

/* The page, from a recording with a timeline. */
static int write_html(const struct report_args *args, const struct recording *rec,
		      struct hs_error *err)
{
	const char *input = args->captures[0];
	struct output_whole output;
	int ret = replay__can_answer(&rec->replay, ROWS_LIVE, err);

	if (ret)
		return ret;
	ret = output_whole__open(&output, args->output, args->force, input, err);
	if (!ret) {
		ret = html__timeline(output.stream, &rec->replay, input, err);
		ret = output_whole__close(&output, ret, err);
	}
	return output_whole__end(&output, ret, err);
}

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
	if (!ret) {
		recording__print_notes(&rec);
		ret = args.is_html ? write_html(&args, &rec, &err)
				   : report__timeline(&rec, &args.options, &err);
	}
	recording__deinit(&rec);
	return ret ? cli__die(&err) : cli__finish(0);
}
