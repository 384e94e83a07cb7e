/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON lines: what `record` would have written.
 *
 * In:   a capture, event by event.
 * Out:  docs/records.md.
 */
#include "user/export/export.h"

static int open_jsonl(struct sink **out, FILE *f, const struct export_options *o)
{
	(void)o;
	return jsonl_sink__new_file(out, f);
}

const struct exporter export_jsonl = {
	.name = "jsonl",
	.about = "the records, one JSON object a line",
	.suffix = ".jsonl",
	.open = open_jsonl,
};
