/* SPDX-License-Identifier: BSD-2-Clause */
/* The highest rate of a capture; see ctf_scan.h. */
#include "user/export/ctf_scan.h"

#include <stdio.h>
#include <string.h>

#include "user/collect/capture.h"
#include "user/collect/replay.h"

struct scan {
	double first; /* of the first profile record; 0: not met */
	double highest;
};

static int on_json(void *ctx, json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));
	double rate = json_number_value(json_object_get(object, "rate"));
	struct scan *s = ctx;

	/* Further profile records tell what was asked for; rate records, what was done. */
	if (type && !strcmp(type, "profile") && s->first <= 0 && rate > 0 && rate <= 1)
		s->first = rate;
	return 0;
}

static int on_event(void *ctx, const struct hs_event *event)
{
	struct scan *s = ctx;
	double rate = event->type == HS_REC_RATE ? decode__rate(event->rate) : 0;

	if (rate > s->highest)
		s->highest = rate;
	return 0;
}

double ctf_scan__highest_rate(const char *path)
{
	struct scan s = { 0 };
	struct capture_reader reader = { .json = on_json, .event = on_event, .ctx = &s };
	/* Not even opened if it is none: whoever writes to a named pipe would take us for gone. */
	FILE *f = replay__is_repeatable(path) ? fopen(path, "re") : NULL;
	struct hs_error err;

	if (!f)
		return 0;
	if (!symbolizer__new_empty(&reader.symbolizer))
		capture__read(f, &reader, &err);
	symbolizer__free(reader.symbolizer);
	fclose(f);
	return s.highest > s.first ? s.highest : s.first;
}
