/* SPDX-License-Identifier: BSD-2-Clause */
/* What stands at the head of a report; see recording.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "user/cli/cli.h"
#include "user/common/say.h"
#include "user/report/show.h"
#include "user/report/recording.h"
#include "user/common/units.h"

/* The beginning in UTC, "2026-11-30T09:40:12Z"; "" if the capture does not say. */
static const char *format_begin(const struct recording *rec, char *text, size_t size)
{
	int64_t ns;
	struct tm tm;
	time_t s;

	text[0] = '\0';
	if (!rec->wall_offset ||
	    __builtin_add_overflow((int64_t)rec->begin_ns, rec->wall_offset, &ns))
		return text;
	s = (time_t)(ns / 1000000000);
	if (!gmtime_r(&s, &tm) || !strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &tm))
		text[0] = '\0';
	return text;
}

static void format_rates(const struct recording *rec, char *text, size_t size)
{
	char low[UNITS_RATE_CHARS], high[UNITS_RATE_CHARS];

	units__rate(rec->rate_low, low);
	units__rate(rec->rate_high, high);
	if (rec->rate_low == rec->rate_high)
		snprintf(text, size, "%s", low);
	else
		snprintf(text, size, "%s to %s", low, high);
}

/* Causes are keys of a capture's JSON: clean them. */
static void print_losses(FILE *f, const struct recording *rec)
{
	const char *separator = "", *cause;
	json_t *count;

	json_object_foreach (rec->replay.lost, cause, count) {
		const char *clean = text_pool__intern(rec->texts, cause, strlen(cause));

		fprintf(f, "%s%lld %s", separator, (long long)json_integer_value(count),
			clean ? clean : "?");
		separator = ", ";
	}
}

static bool has_losses(const struct recording *rec)
{
	return json_object_size(rec->replay.lost) > 0;
}

/* What losses mean for the figures. */
static const char *meaning(const struct recording *rec)
{
	if (heap__is_unmeasured(rec->replay.heap))
		return "how much is missing is not known, so figures are too small and their "
		       "intervals are not reliable";
	return "figures are too small, and the upper ends of their intervals hold what is missing";
}

void recording__print_notes(const struct recording *rec)
{
	char *losses = NULL;
	size_t size;
	FILE *f;

	if (rec->replay.is_cut)
		say__note("%s was cut off; figures are as of there", rec->path);
	if (!has_losses(rec))
		return;
	f = open_memstream(&losses, &size);
	if (!f)
		return;
	print_losses(f, rec);
	if (!fclose(f))
		say__note("%s has losses: %s; %s", rec->path, losses, meaning(rec));
	free(losses);
}

void recording__print_head(const struct recording *rec, const char *name)
{
	char begin[40], rates[2 * UNITS_RATE_CHARS + 8], seconds[SHOW_CHARS];

	printf("# %s%s", name,
	       rec->command ? rec->command
	       : rec->exe   ? rec->exe
			    : "(unknown program)");
	if (rec->pid)
		printf("  PID %llu", (unsigned long long)rec->pid);
	if (rec->ocaml)
		printf("  OCaml %s", rec->ocaml);
	printf("\n# %s", name);
	if (*format_begin(rec, begin, sizeof(begin)))
		printf("%s, ", begin);
	printf("sampled for %s", show__seconds(recording__seconds(rec), seconds));
	if (rec->reason)
		printf(" (%s)", rec->reason);
	if (rec->replay.is_cut)
		printf(" (cut off)");
	printf("\n# %s%llu blocks, %llu samples", name, (unsigned long long)rec->n_blocks,
	       (unsigned long long)rec->n_samples);
	if (rec->rate_high > 0) {
		format_rates(rec, rates, sizeof(rates));
		printf(" at rate %s", rates);
	}
	if (has_losses(rec)) {
		printf("; lost: ");
		print_losses(stdout, rec);
	} else {
		printf("; %s", rec->replay.is_cut ? "losses not known" : "nothing lost");
	}
	putchar('\n');
	if (rec->has_no_stacks)
		printf("# %sno call stacks were recorded (--stack-depth 0)\n", name);
}

void recording__print_live_note(void)
{
	puts("# " RECORDING_LIVE_NOTE);
}

static json_t *string_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

/* What the samples stood for that are known to be lost. */
static json_t *lost_words_json(const struct recording *rec)
{
	const struct interval i = amount__interval(heap__lost_samples(rec->replay.heap), NULL, 0);

	return show__interval_json(&i);
}

json_t *recording__to_json(const struct recording *rec)
{
	char begin[40];
	json_t *object = json_pack(
		"{s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "file", string_or_null(rec->path),
		"command", string_or_null(rec->command), "exe", string_or_null(rec->exe), "pid",
		(json_int_t)rec->pid, "ocaml", string_or_null(rec->ocaml), "begin",
		string_or_null(*format_begin(rec, begin, sizeof(begin)) ? begin : NULL), "seconds",
		show__json(recording__seconds(rec)), "reason", string_or_null(rec->reason));
	json_t *rest = json_pack(
		"{s:o, s:I, s:o, s:o, s:I, s:I, s:o, s:I, s:b, s:b, s:O, s:o, s:b, s:s}", "track",
		string_or_null(rec->track), "begin_ns", (json_int_t)rec->begin_ns, "rate_low",
		show__json(rec->rate_low), "rate_high", show__json(rec->rate_high), "blocks",
		(json_int_t)rec->n_blocks, "samples", (json_int_t)rec->n_samples, "words",
		show__json(rec->words), "major_cycles", (json_int_t)heap__cycles(rec->replay.heap),
		"whole", rec->is_whole, "cut", rec->replay.is_cut, "lost", rec->replay.lost,
		"lost_words", lost_words_json(rec), "intervals_hold",
		!heap__is_unmeasured(rec->replay.heap), "note", RECORDING_LIVE_NOTE);

	if (!object || !rest || json_object_update(object, rest)) {
		json_decref(object);
		object = NULL;
	}
	json_decref(rest);
	return object;
}
