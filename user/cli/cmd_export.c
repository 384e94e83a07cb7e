/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heapsonde export: make other formats from a raw capture, without root and
 * without the target.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/cli/cli.h"
#include "user/cli/output_file.h"
#include "user/collect/capture.h"
#include "user/track/pipeline.h"

struct options {
	const char *input;
	const char *output; /* NULL: stdout */
	bool force;
};

static const struct argp_option option_list[] = {
	{ "to", 't', "FORMAT", 0, "The format to make: jsonl (default)", 0 },
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard output (-)", 0 },
	{ "force", OUTPUT_OPT_FORCE, NULL, 0, OUTPUT_FORCE_HELP, 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		return 0;
	case 't':
		if (strcmp(arg, "jsonl"))
			cli__argp_error(state, "unknown format %s (there is jsonl)", arg);
		return 0;
	case 'o':
		o->output = strcmp(arg, "-") ? arg : NULL;
		return 0;
	case OUTPUT_OPT_FORCE:
		o->force = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->input)
			cli__argp_error(state, "one capture at a time");
		o->input = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		cli__argp_error(state, "which capture?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* From an open capture to an open sink. */
static int convert(FILE *in, const char *name, struct sink *sink, struct symbolizer *symbolizer,
		   bool *is_cut, struct hs_error *err)
{
	struct capture_reader reader = { .json = pipeline__json,
					 .event = pipeline__event,
					 .symbolizer = symbolizer };
	struct hs_error read_err = { "" };
	struct pipeline pipeline;
	int ret = pipeline__init(&pipeline, symbolizer, sink, 0, false);

	if (ret)
		return hs_error__set(err, ret, "out of memory");
	reader.ctx = &pipeline;
	ret = capture__read(in, &reader, &read_err);
	if (ret && read_err.text[0])
		hs_error__set(err, ret, "%s: %s", name, read_err.text);
	if (!ret)
		ret = sink->ops->flush(sink);
	if (ret && !read_err.text[0])
		hs_error__set(err, ret, "cannot write the output: %s", strerror(-ret));
	*is_cut = reader.is_cut;
	pipeline__deinit(&pipeline);
	return ret;
}

static int open_sink(const struct options *o, struct output_file *file, struct sink **sink,
		     struct hs_error *err)
{
	int ret = output_file__open(file, o->output, OUTPUT_WHOLE | (o->force ? OUTPUT_FORCE : 0),
				    err);

	if (ret)
		return ret;
	ret = jsonl_sink__new(sink, output_file__take(file));
	return ret ? hs_error__set(err, ret, "cannot write: %s", strerror(-ret)) : 0;
}

int cmd_export(int argc, char **argv)
{
	static const struct argp argp = { option_list, parse,
					  "CAPTURE",   "Make other formats from a raw capture.",
					  NULL,        NULL,
					  NULL };
	struct symbolizer *symbolizer = NULL;
	struct options o = { 0 };
	struct output_file file = { .fd = -1 };
	struct sink *sink = NULL;
	bool is_cut = false;
	struct hs_error err;
	FILE *in;
	int ret;

	if (argp_parse(&argp, argc, argv, 0, NULL, &o))
		return CLI_EXIT_USAGE;
	in = fopen(o.input, "re");
	if (!in) {
		hs_error__set(&err, -errno, "cannot open %s: %s", o.input, strerror(errno));
		return cli__die(&err);
	}
	ret = open_sink(&o, &file, &sink, &err);
	if (!ret && symbolizer__new_empty(&symbolizer))
		ret = hs_error__set(&err, -ENOMEM, "out of memory");
	if (!ret)
		ret = convert(in, o.input, sink, symbolizer, &is_cut, &err);
	sink__free(sink);
	if (!ret)
		ret = output_file__keep(&file, &err);
	output_file__drop(&file);
	symbolizer__free(symbolizer);
	fclose(in);
	if (ret)
		return cli__die(&err);
	if (is_cut)
		fprintf(stderr, "heapsonde: %s was cut off; everything up to there is exported\n",
			o.input);
	return 0;
}
