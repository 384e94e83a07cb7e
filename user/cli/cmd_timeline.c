/* SPDX-License-Identifier: BSD-2-Clause */
/* heapsonde timeline: a recorded program's words over time, as a table or a page. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "user/cli/cli.h"
#include "user/cli/output_file.h"
#include "user/cli/report_args.h"
#include "user/export/html.h"

enum { OPT_HTML = 256 };

struct timeline_args {
	struct report_args report; /* first: report_args__run takes it for the whole */
	bool is_html;
	const char *output; /* of --html; NULL: stdout */
	bool has_output;
	bool force;
};

static const struct argp_option options[] = {
	{ "steps", REPORT_STEPS, "N", 0,
	  "At most so many steps (default 24, with --json as many as there are)", 0 },
	{ "html", OPT_HTML, NULL, 0,
	  "A page for a browser: the timeline, then the call stacks and sites", 0 },
	{ "output", 'o', "FILE", 0, "Write the page to FILE instead of standard output (-)", 0 },
	{ "force", OUTPUT_OPT_FORCE, NULL, 0, OUTPUT_FORCE_HELP, 0 },
	REPORT_OPTIONS_OUTPUT,
	{ 0 },
};

static void check(const struct timeline_args *t, const struct argp_state *state)
{
	if (t->is_html && (t->report.options.is_json || t->report.options.n_steps))
		cli__argp_error(state, "a page has all steps, and is not JSON: --html alone");
	if (t->has_output && !t->is_html)
		cli__argp_error(state, "-o is for a page: add --html");
	if (t->is_html && !t->output && isatty(STDOUT_FILENO))
		cli__argp_error(state, "a page is not for a terminal: give -o FILE");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct timeline_args *t = state->input;

	switch (key) {
	case OPT_HTML:
		t->is_html = true;
		return 0;
	case 'o':
		t->output = strcmp(arg, "-") ? arg : NULL;
		t->has_output = true;
		return 0;
	case OUTPUT_OPT_FORCE:
		t->force = true;
		return 0;
	case ARGP_KEY_END:
		/* Before that fills in defaults. */
		check(t, state);
		return report_args__parse(key, arg, state);
	default:
		return report_args__parse(key, arg, state);
	}
}

static int write_page(const struct timeline_args *t, const struct recording *rec,
		      struct hs_error *err)
{
	struct output_file file;
	FILE *f;
	int ret = output_file__open(&file, t->output, OUTPUT_WHOLE | (t->force ? OUTPUT_FORCE : 0),
				    err);

	if (!ret) {
		f = output_file__take_stream(&file, err);
		ret = f ? html__timeline(f, &rec->replay, t->report.captures[0], err) : -ENOMEM;
		if (f && fclose(f) && !ret)
			ret = hs_error__set(err, -errno, "cannot write the page: %s",
					    strerror(errno));
	}
	if (!ret)
		ret = output_file__keep(&file, err);
	output_file__drop(&file);
	return ret;
}

int cmd_timeline(int argc, char **argv)
{
	static const struct argp argp = {
		options,   parse,
		"CAPTURE", "Words that live, and that are allocated and promoted, over time.",
		NULL,      NULL,
		NULL
	};
	struct timeline_args t = { 0 };
	struct recording rec = { 0 };
	struct hs_error err;
	int ret = report_args__run(&t.report, &argp, 1, argc, argv);

	if (ret)
		return ret;
	ret = report_args__read(&t.report, t.report.captures[0], 0, true, &rec, &err);
	if (!ret)
		ret = t.is_html ? write_page(&t, &rec, &err)
				: report__timeline(&rec, &t.report.options, &err);
	recording__deinit(&rec);
	return ret ? cli__die(&err) : cli__finish(0);
}
