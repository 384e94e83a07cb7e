/* SPDX-License-Identifier: BSD-2-Clause */
/* What the reports share; see report.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/cli/cli.h"
#include "user/decode/decode.h"
#include "user/report/report.h"
#include "user/report/show.h"
#include "user/sinks/json.h"

#define INDENT 6

static const struct {
	const char *head, *one, *many;
} kinds[] = {
	[ROWS_BY_SITE] = { "ALLOCATION SITE", "site", "sites" },
	[ROWS_BY_STACK] = { "STACK", "stack", "stacks" },
	[ROWS_BY_FUNCTION] = { "FUNCTION", "function", "functions" },
	[ROWS_BY_DOMAIN] = { "DOMAIN", "domain", "domains" },
	[ROWS_BY_SOURCE] = { "SOURCE", "source", "sources" },
	[ROWS_BY_SIZE] = { "SIZE", "size", "sizes" },
};

const char *report__row_head(enum rows_by by)
{
	return kinds[by].head;
}

const char *report__count(char *text, size_t size, enum rows_by by, size_t n, size_t n_shown)
{
	if (n_shown < n)
		snprintf(text, size, "all %zu %s (%zu shown)", n, kinds[by].many, n_shown);
	else if (n > 1)
		snprintf(text, size, "all %zu %s", n, kinds[by].many);
	else if (n)
		snprintf(text, size, "1 %s", kinds[by].one);
	else
		snprintf(text, size, "no %s", kinds[by].many);
	return text;
}

void report__print_filter(const struct rows_filter *filter)
{
	if (filter->domain >= 0)
		printf("; of domain %lld", (long long)filter->domain);
	if (filter->source >= 0)
		printf("; of source %s", decode__source_name((unsigned)filter->source));
	if (filter->function)
		printf("; with \"%s\" on the stack", filter->function);
}

static json_t *text_json(const char *text)
{
	return text ? json_string(text) : json_null();
}

json_t *report__filtered(json_t *document, const struct rows_filter *filter)
{
	const char *source =
		filter->source >= 0 ? decode__source_name((unsigned)filter->source) : NULL;
	/* An argument may be anything, and JSON is UTF-8. */
	json_t *text = filter->function ? json__text(filter->function) : json_null();
	json_t *domain = filter->domain >= 0 ? json_integer(filter->domain) : json_null();

	if (!json_object_set_new(document, "domain", domain) &&
	    !json_object_set_new(document, "source", text_json(source)) &&
	    !json_object_set_new(document, "filter", text))
		return document;
	json_decref(document);
	return NULL;
}

/* Names come from user/symbolize, which has cleaned them. */
static void print_location(const struct hs_location *l)
{
	const char *function = l->function ? l->function : FRAME_UNKNOWN;
	char text[2304];

	if (l->file && l->line)
		snprintf(text, sizeof(text), "%s  %s:%u", function, l->file, l->line);
	else
		snprintf(text, sizeof(text), "%s", function);
	printf("%*s", INDENT, "");
	cli__print_last_column(text, INDENT);
}

void report__print_callers(const struct stack *stack)
{
	for (uint32_t i = 0; stack && i < stack->depth; i++)
		for (size_t j = i ? 0 : 1; j < stack->frames[i].n_locations; j++)
			print_location(&stack->frames[i].locations[j]);
}

static json_t *location_json(const struct hs_location *l)
{
	return json_pack("{s:o, s:o, s:o}", "function", text_json(l->function), "file",
			 text_json(l->file), "line", l->line ? json_integer(l->line) : json_null());
}

json_t *report__frames_json(const struct stack *stack)
{
	json_t *frames = json_array();

	for (uint32_t i = 0; stack && i < stack->depth; i++)
		for (size_t j = 0; j < stack->frames[i].n_locations; j++)
			if (json_array_append_new(frames,
						  location_json(&stack->frames[i].locations[j]))) {
				json_decref(frames);
				return NULL;
			}
	return frames;
}

static json_t *size_json(uint8_t size_class)
{
	uint64_t low, high;

	heap__size_class_range(size_class, &low, &high);
	if (high > INT64_MAX)
		return json_pack("{s:I, s:n}", "size_low", (json_int_t)low, "size_high");
	return json_pack("{s:I, s:I}", "size_low", (json_int_t)low, "size_high", (json_int_t)high);
}

static json_t *site_json(const struct row *row)
{
	return json_pack("{s:o, s:o, s:o, s:b}", "function", text_json(row->function), "file",
			 text_json(row->file), "line",
			 row->line ? json_integer(row->line) : json_null(), "stack_lost",
			 row->is_stack_lost);
}

json_t *report__row_json(const struct row *row, enum rows_by by)
{
	switch (by) {
	case ROWS_BY_DOMAIN:
		return json_pack("{s:o}", "domain",
				 row->domain == HEAP_DOMAIN_OTHERS ? json_null()
								   : json_integer(row->domain));
	case ROWS_BY_SOURCE:
		return json_pack("{s:s}", "source", decode__source_name(row->source));
	case ROWS_BY_SIZE:
		return size_json(row->size_class);
	case ROWS_BY_STACK:
		return json_pack("{s:o, s:b}", "frames", report__frames_json(row->stack),
				 "stack_lost", row->is_stack_lost);
	case ROWS_BY_FUNCTION:
		return json_pack("{s:o, s:b}", "function", text_json(row->function), "stack_lost",
				 row->is_stack_lost);
	default:
		return site_json(row);
	}
}

json_t *report__amount_json(const struct amount *a, const struct amount *missing, double rate)
{
	const struct interval i = amount__interval(a, missing, rate);

	return json_pack("{s:o, s:o, s:o, s:o}", "words", show__json(i.value), "low",
			 show__json(i.low), "high", show__json(i.high), "blocks",
			 show__json(a->blocks));
}

int report__print_json(json_t *document, struct hs_error *err)
{
	int ret;

	if (!document)
		return report__no_memory(err);
	/* What cannot be written is found by cli__finish; memory runs out before. */
	ret = json_dumpf(document, stdout,
			 JSON_INDENT(1) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17));
	json_decref(document);
	putchar('\n');
	return ret && !ferror(stdout) ? report__no_memory(err) : 0;
}

int report__no_memory(struct hs_error *err)
{
	return hs_error__set(err, -ENOMEM, "out of memory");
}
