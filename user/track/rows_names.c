/* SPDX-License-Identifier: BSD-2-Clause */
/* What rows and their kinds are called; see rows.h. */
#include "user/track/rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "user/decode/decode.h"

#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

static const char *const metric_names[] = {
	[ROWS_ALLOC] = "alloc",
	[ROWS_LIVE] = "live",
	[ROWS_PROMOTED] = "promoted",
	[ROWS_SURVIVORS] = "survivors",
};

static const char *const by_names[] = {
	[ROWS_BY_SITE] = "site",     [ROWS_BY_STACK] = "stack",   [ROWS_BY_FUNCTION] = "function",
	[ROWS_BY_DOMAIN] = "domain", [ROWS_BY_SOURCE] = "source", [ROWS_BY_SIZE] = "size",
};

/* Returns the index of name, or -EINVAL. */
static int find_name(const char *const *names, size_t n_names, const char *name)
{
	for (size_t i = 0; i < n_names; i++)
		if (!strcmp(names[i], name))
			return (int)i;
	return -EINVAL;
}

const char *rows__metric_name(enum rows_metric metric)
{
	return metric_names[metric];
}

const char *rows__by_name(enum rows_by by)
{
	return by_names[by];
}

int rows__parse_metric(const char *name, enum rows_metric *out)
{
	int i = find_name(metric_names, N_ELEMENTS(metric_names), name);

	if (i < 0)
		return i;
	*out = (enum rows_metric)i;
	return 0;
}

int rows__parse_by(const char *name, enum rows_by *out)
{
	int i = find_name(by_names, N_ELEMENTS(by_names), name);

	if (i < 0)
		return i;
	*out = (enum rows_by)i;
	return 0;
}

/* The name of a function that is told as NULL. */
static const char *name_unknown(const struct row *r)
{
	return r->is_stack_lost ? FRAME_LOST : r->stack ? FRAME_UNKNOWN : FRAME_NONE;
}

static const char *label_size(uint8_t size_class, char *text, size_t size)
{
	uint64_t low, high;

	heap__size_class_range(size_class, &low, &high);
	if (low == high)
		snprintf(text, size, "%llu word%s", (unsigned long long)low, low == 1 ? "" : "s");
	else if (high == UINT64_MAX)
		snprintf(text, size, "%llu words and more", (unsigned long long)low);
	else
		snprintf(text, size, "%llu-%llu words", (unsigned long long)low,
			 (unsigned long long)high);
	return text;
}

const char *rows__label(const struct row *r, enum rows_by by, char *text, size_t size)
{
	const char *function = r->function ? r->function : name_unknown(r);

	switch (by) {
	case ROWS_BY_DOMAIN:
		if (r->domain == HEAP_DOMAIN_OTHERS)
			snprintf(text, size, "other domains");
		else
			snprintf(text, size, "domain %u", r->domain);
		return text;
	case ROWS_BY_SOURCE:
		snprintf(text, size, "%s", decode__source_name(r->source));
		return text;
	case ROWS_BY_SIZE:
		return label_size(r->size_class, text, size);
	case ROWS_BY_FUNCTION:
		snprintf(text, size, "%s", function);
		return text;
	default:
		if (r->file && r->line)
			snprintf(text, size, "%s  %s:%u", function, r->file, r->line);
		else if (r->file)
			snprintf(text, size, "%s  %s", function, r->file);
		else
			snprintf(text, size, "%s", function);
		return text;
	}
}
