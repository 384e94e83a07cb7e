/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heapsonde export: make what other tools read from a capture, without root and without
 * the target.
 *
 * In:   a capture; the name of a format (user/export).
 * Out:  a file that is whole, or none; or standard output.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "user/cli/cli.h"
#include "user/cli/common_args.h"
#include "user/cli/output_whole.h"
#include "user/cli/progress.h"
#include "user/collect/replay.h"
#include "user/common/say.h"
#include "user/export/export.h"

enum { OPT_CTF_VERSION = 256, OPT_METRIC };

struct options {
	const char *input;
	const char *output;              /* NULL: stdout */
	const struct exporter *exporter; /* NULL while parsing: what the output's name says */
	struct export_options export;
	bool force;
	bool has_metric;
};

static const struct argp_option option_list[] = {
	{ "to", 't', "FORMAT", 0,
	  "The format to make; see below (default: what FILE ends in says, else jsonl)", 0 },
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard output (-)", 0 },
	{ "force", OUTPUT_OPT_FORCE, NULL, 0, OUTPUT_FORCE_HELP, 0 },
	{ "ctf-version", OPT_CTF_VERSION, "N", 0,
	  "Of --to ctf: 2 (default), or 3, which keeps the domains", 0 },
	{ "metric", OPT_METRIC, "METRIC", 0,
	  "What folded has, and html, pprof and speedscope show first: alloc (default), live, "
	  "promoted, survivors; pprof has alloc and live",
	  0 },
	{ 0 },
};

static const struct exporter *find_exporter(const struct argp_state *state, const char *name)
{
	const struct exporter *found = exporter__find(name);
	char names[256] = "";

	for (const struct exporter *const *e = exporters; !found && *e; e++) {
		size_t n = strlen(names);

		snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "", (*e)->name);
	}
	if (!found)
		cli__argp_error(state, "unknown format %s (there are: %s)", name, names);
	return found;
}

/* An option that would have no effect is a mistake. Also sets what was not given. */
static void check(struct options *o, const struct argp_state *state)
{
	if (!o->input)
		cli__argp_error(state, "which capture?");
	if (!o->exporter)
		o->exporter = exporter__for_name(o->output);
	if (o->has_metric && !o->exporter->metrics)
		cli__argp_error(state, "%s has all records, and no --metric", o->exporter->name);
	if (o->has_metric && !(o->exporter->metrics & 1u << o->export.metric))
		cli__argp_error(state, "%s has no metric %s", o->exporter->name,
				rows__metric_name(o->export.metric));
	if (o->export.ctf_version && o->exporter != &export_ctf)
		cli__argp_error(state, "--ctf-version is for --to ctf");
	if (!o->export.ctf_version)
		o->export.ctf_version = 2;
	if (o->exporter->is_binary && !o->output && isatty(STDOUT_FILENO))
		cli__argp_error(state, "%s is not for a terminal: give -o FILE", o->exporter->name);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		return 0;
	case 't':
		o->exporter = find_exporter(state, arg);
		return 0;
	case 'o':
		o->output = strcmp(arg, "-") ? arg : NULL;
		return 0;
	case OUTPUT_OPT_FORCE:
		o->force = true;
		return 0;
	case OPT_CTF_VERSION:
		if (cli__parse_positive(arg, 3, &o->export.ctf_version) ||
		    o->export.ctf_version < 2)
			cli__argp_error(state, "the version of CTF is 2 or 3, not %s", arg);
		return 0;
	case OPT_METRIC:
		if (rows__parse_metric(arg, &o->export.metric))
			cli__argp_error(state,
					"the metric is alloc, live, promoted or survivors, not %s",
					arg);
		o->has_metric = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->input)
			cli__argp_error(state, "one capture at a time");
		o->input = arg;
		return 0;
	case ARGP_KEY_END:
		check(o, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The formats, for --help; the text is argp's to free. */
static char *list_formats(int key, const char *text, void *input)
{
	char *list = NULL;
	size_t size;
	FILE *f;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	f = open_memstream(&list, &size);
	if (!f)
		return (char *)text;
	fputs("Formats:\n", f);
	for (const struct exporter *const *e = exporters; *e; e++)
		fprintf(f, "\n  %-12s %s (%s)", (*e)->name, (*e)->about, (*e)->suffix);
	fclose(f);
	return list;
}

static int run_replay(struct replay *r, const struct options *o, struct hs_error *err)
{
	struct progress progress;
	int ret;

	progress__begin(&progress, o->exporter->name, !say__is_on(SAY_NOTES));
	r->progress = progress__step;
	r->progress_ctx = &progress;
	ret = replay__run(r, err);
	progress__end(&progress);
	return ret;
}

/* Event by event. */
static int stream(struct replay *r, const struct options *o, struct output_whole *output,
		  struct hs_error *err)
{
	/* What some file systems tell at a close only, a sink cannot; but any close of the file
	 * asks. */
	int closing_fd = fcntl(fileno(output->stream), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int ret = closing_fd < 0 ? -errno : 0;

	if (ret)
		fclose(output->stream);
	else
		ret = o->exporter->open(&r->sink, output->stream, &o->export);
	/* The sink's now, which has said at its last flush whether all could be written. */
	output->stream = NULL;
	if (ret)
		hs_error__set(err, ret, "cannot write the output: %s", strerror(-ret));
	else
		ret = run_replay(r, o, err);
	if (closing_fd >= 0 && close(closing_fd) && !ret)
		ret = hs_error__set(err, -errno, "cannot write the output: %s", strerror(errno));
	sink__free(r->sink);
	r->sink = NULL;
	return ret;
}

/* All at once. */
static int write_whole(struct replay *r, const struct options *o, struct output_whole *output,
		       struct hs_error *err)
{
	static const struct heap_options heap_options = { .want_timeline = true };
	int ret;

	r->heap_options = &heap_options;
	ret = run_replay(r, o, err);
	/* The heap begins with the header. */
	if (!ret && !r->heap)
		ret = hs_error__set(err, -ENODATA,
				    "%s was cut off before its header: nothing is in it", o->input);
	if (!ret)
		ret = replay__can_answer(r, o->export.metric, err);
	if (!ret)
		ret = o->exporter->write(output->stream, r, &o->export, err);
	return output_whole__close(output, ret, err);
}

static int export(struct replay *r, const struct options *o, struct hs_error *err)
{
	struct output_whole output;
	int ret = output_whole__open(&output, o->output, o->force, o->input, err);

	if (!ret)
		ret = (o->exporter->open ? stream : write_whole)(r, o, &output, err);
	return output_whole__end(&output, ret, err);
}

static void print_notes(const struct replay *r, const struct options *o)
{
	if (r->is_cut)
		say__note("%s was cut off; everything up to there is exported", o->input);
	/* All others have room to say so themselves. */
	if (o->exporter->is_bare && o->export.metric != ROWS_ALLOC)
		say__note("%s: blocks allocated before the recording began are not known, and not "
			  "in any figure",
			  o->exporter->name);
}

int cmd_export(int argc, char **argv)
{
	static const struct argp argp = { option_list,
					  parse,
					  "CAPTURE",
					  "Make what other tools read from a capture (- is "
					  "standard input).\v",
					  NULL,
					  list_formats,
					  NULL };
	struct options o = { 0 };
	struct replay r = { 0 };
	struct hs_error err;
	int status = 0;

	if (common_args__parse(&argp, argc, argv, 0, &o))
		return CLI_EXIT_USAGE;
	r.path = o.export.input = o.input;
	if (export(&r, &o, &err))
		status = cli__die(&err);
	else
		print_notes(&r, &o);
	replay__deinit(&r);
	return status;
}
