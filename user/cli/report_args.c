/* SPDX-License-Identifier: BSD-2-Clause */
/* See report_args.h. */
#include "user/cli/report_args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/abi.h"
#include "user/cli/cli.h"
#include "user/cli/common_args.h"
#include "user/cli/output_file.h"
#include "user/cli/progress.h"
#include "user/common/say.h"

#define ROWS_DEFAULT 30
#define STEPS_DEFAULT 24
#define SIGNIFICANCE_DEFAULT 0.01

/* Seconds after the beginning; > 0, for 0 is how options say that none was given. */
static double parse_time(const struct argp_state *state, const char *arg)
{
	double seconds;

	if (cli__parse_seconds(arg, &seconds))
		cli__argp_error(state, "not a time after the beginning (12.5, 90s, 2m, 1h): %s",
				arg);
	return seconds;
}

static int parse_count(const struct argp_state *state, const char *arg, const char *what)
{
	int n;

	if (cli__parse_positive(arg, 1000000000, &n))
		cli__argp_error(state, "not a number of %s: %s", what, arg);
	return n;
}

static int parse_source(const struct argp_state *state, const char *arg)
{
	for (int source = 0; source < SONDE_SRC_COUNT; source++)
		if (!strcmp(decode__source_name((unsigned)source), arg))
			return source;
	cli__argp_error(state, "the source is normal, marshal, custom or map_file, not %s", arg);
}

static int64_t parse_domain(const struct argp_state *state, const char *arg)
{
	char *end;
	unsigned long long id;

	errno = 0;
	id = strtoull(arg, &end, 10);
	if (arg[0] < '0' || arg[0] > '9' || *end || errno || id >= HEAP_DOMAIN_OTHERS)
		cli__argp_error(state, "not the id of a domain: %s", arg);
	return (int64_t)id;
}

static enum report_per parse_per(const struct argp_state *state, const char *arg)
{
	static const char *const names[] = {
		[PER_RUN] = "run", [PER_SECOND] = "second", [PER_WORD] = "word"
	};

	for (int per = PER_RUN; per <= PER_WORD; per++)
		if (!strcmp(names[per], arg))
			return (enum report_per)per;
	cli__argp_error(state, "amounts are per run, second or word, not per %s", arg);
}

static double parse_significance(const struct argp_state *state, const char *arg)
{
	char *end;
	double p = strtod(arg, &end);

	if (end == arg || *end || !(p > 0 && p < 1))
		cli__argp_error(state, "not a probability between 0 and 1: %s", arg);
	return p;
}

/* Options that choose rows. */
static error_t parse_rows(int key, char *arg, struct argp_state *state)
{
	struct report_args *args = state->input;
	struct report_options *o = &args->options;

	switch (key) {
	case REPORT_BY:
		if (rows__parse_by(arg, &o->by))
			cli__argp_error(state,
					"rows are by site, stack, function, domain, source or "
					"size, not by %s",
					arg);
		return 0;
	case REPORT_METRIC:
		if (rows__parse_metric(arg, &o->metric))
			cli__argp_error(state,
					"the metric is alloc, live, promoted or survivors, not %s",
					arg);
		args->has_metric = true;
		return 0;
	case REPORT_FILTER:
		o->filter.function = arg;
		return 0;
	case REPORT_DOMAIN:
		o->filter.domain = parse_domain(state, arg);
		return 0;
	case REPORT_SOURCE:
		o->filter.source = parse_source(state, arg);
		return 0;
	case REPORT_N:
		args->has_rows = true;
		o->n_rows = strcmp(arg, "0") ? (size_t)parse_count(state, arg, "rows") : 0;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void check(struct report_args *args, const struct argp_state *state)
{
	struct report_options *o = &args->options;

	if (args->n_captures < args->n_wanted)
		cli__argp_error(state,
				args->n_wanted == 1 ? "which capture?" : "which two captures?");
	if (o->at_s > 0 && o->until_s > 0)
		cli__argp_error(state, "--at is --until with another metric: give one of them");
	if (o->at_s > 0 && !args->has_metric)
		o->metric = ROWS_LIVE;
	if ((o->at_s > 0 && o->since_s >= o->at_s) || (o->until_s > 0 && o->since_s >= o->until_s))
		cli__argp_error(state, "that time ends before it begins");
	if (args->is_html && (o->is_json || o->n_steps))
		cli__argp_error(state, "--html takes neither --json nor --steps");
	if (args->output && !args->is_html)
		cli__argp_error(state, "-o is for --html");
	if (!args->has_rows)
		o->n_rows = o->is_json ? 0 : ROWS_DEFAULT;
	if (!o->n_steps && !o->is_json)
		o->n_steps = STEPS_DEFAULT;
}

error_t report_args__parse(int key, char *arg, struct argp_state *state)
{
	struct report_args *args = state->input;
	struct report_options *o = &args->options;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		return 0;
	case REPORT_AT:
		o->at_s = parse_time(state, arg);
		return 0;
	case REPORT_SINCE:
		/* All that there is. */
		o->since_s = strcmp(arg, "0") ? parse_time(state, arg) : 0;
		return 0;
	case REPORT_UNTIL:
		o->until_s = parse_time(state, arg);
		return 0;
	case REPORT_SURVIVED:
		o->survived = (uint32_t)parse_count(state, arg, "major cycles");
		return 0;
	case REPORT_PER:
		o->per = parse_per(state, arg);
		return 0;
	case REPORT_PER_WORD:
		o->per = PER_WORD;
		return 0;
	case REPORT_SIGNIFICANCE:
		o->significance = parse_significance(state, arg);
		return 0;
	case REPORT_STEPS:
		o->n_steps = (size_t)parse_count(state, arg, "steps");
		return 0;
	case REPORT_JSON:
		o->is_json = true;
		return 0;
	case REPORT_HTML:
		args->is_html = true;
		return 0;
	case REPORT_OUTPUT:
		args->output = strcmp(arg, "-") ? arg : NULL;
		return 0;
	case OUTPUT_OPT_FORCE:
		args->force = true;
		return 0;
	case ARGP_KEY_ARG:
		if (args->n_captures == args->n_wanted)
			cli__argp_error(state, "one capture too many: %s", arg);
		args->captures[args->n_captures++] = arg;
		return 0;
	case ARGP_KEY_END:
		check(args, state);
		return 0;
	default:
		return parse_rows(key, arg, state);
	}
}

int report_args__run(struct report_args *args, const struct argp *argp, int n_captures, int argc,
		     char **argv)
{
	memset(args, 0, sizeof(*args));
	args->n_wanted = n_captures;
	args->options.filter = ROWS_FILTER_ALL;
	args->options.survived = HEAP_SURVIVED_DEFAULT;
	args->options.significance = SIGNIFICANCE_DEFAULT;
	return common_args__parse(argp, argc, argv, 0, args) ? CLI_EXIT_USAGE : 0;
}

int report_args__read(const struct report_args *args, const char *path, double until_s,
		      bool want_timeline, struct recording *rec, struct hs_error *err)
{
	const struct report_options *o = &args->options;
	const struct heap_options options = {
		.since_ns = (uint64_t)(o->since_s * 1e9),
		.until_ns = (uint64_t)((until_s > 0   ? until_s
					: o->at_s > 0 ? o->at_s
						      : o->until_s) *
				       1e9),
		.survived = o->survived,
		.want_timeline = want_timeline,
		.want_sizes = o->by == ROWS_BY_SIZE,
	};
	struct progress progress;
	int ret;

	progress__begin(&progress, "reading", !say__is_on(SAY_NOTES));
	ret = recording__read(rec, path, &options, progress__step, &progress, err);
	progress__end(&progress);
	return ret;
}
