/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of the picture, as text; see screen.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "user/common/units.h"
#include "user/decode/decode.h"
#include "user/top/columns.h"
#include "user/top/screen.h"

#define NUMBER_BYTES 32

const char *screen__lost(const struct facts *f, char *text, size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < f->n_losses && n + 1 < size; i++) {
		const struct facts_loss *l = &f->losses[i];

		if (l->count)
			n += (size_t)snprintf(text + n, size - n, "%s%s %" PRIu64, n ? ", " : "",
					      l->cause, l->count);
	}
	return text;
}

/* ---- the lines ---- */

static void title(const struct screen *s, char *text, size_t size)
{
	const struct facts *f = s->facts;

	snprintf(text, size, "heapsonde top  PID %" PRId64 "  %s", f->pid, f->command);
}

static void state(const struct screen *s, char *text, size_t size)
{
	const struct facts *f = s->facts;
	char rate[NUMBER_BYTES], samples[NUMBER_BYTES];

	snprintf(text, size, "domains %u alive, %u seen  rate %s%s  samples %s  %.0f s", f->n_alive,
		 f->n_seen, units__rate(f->rate, rate), s->is_rate_auto ? " (auto)" : "",
		 units__words((double)f->n_samples, samples, sizeof(samples)), s->seconds);
}

/* Words per second: counted if seconds > 0, else estimated. */
static const char *rate_of(uint64_t words, double seconds, const struct interval *estimate,
			   bool is_utf8, char *text, size_t size)
{
	char value[NUMBER_BYTES], interval[NUMBER_BYTES];

	if (seconds > 0)
		return units__words((double)words / seconds, text, size);
	columns__value(FIGURE_ALLOC, estimate->value, value, sizeof(value));
	columns__interval(FIGURE_ALLOC, estimate, is_utf8, interval, sizeof(interval));
	snprintf(text, size, "%s%s%s", value, interval[0] ? " " : "", interval);
	return text;
}

static void rates(const struct screen *s, bool is_utf8, char *text, size_t size)
{
	const struct figures *all = &s->model->rows.all;
	char alloc[2 * NUMBER_BYTES], promote[2 * NUMBER_BYTES];
	struct facts_counts added = { 0 };
	double seconds = window__counted(&s->model->window, &added);
	char minor[NUMBER_BYTES], major[NUMBER_BYTES];
	size_t n;

	rate_of(added.minor_words + added.direct_words, seconds, &all->at[FIGURE_ALLOC], is_utf8,
		alloc, sizeof(alloc));
	rate_of(added.promoted_words, seconds, &all->at[FIGURE_PROMOTE], is_utf8, promote,
		sizeof(promote));
	n = (size_t)snprintf(text, size, "allocates %s words/s  promotes %s words/s", alloc,
			     promote);
	if (seconds > 0 && n < size)
		snprintf(text + n, size - n, "  GC %s minor/s, %s major/s",
			 units__per_second((double)added.minor_collections / seconds, minor,
					   sizeof(minor)),
			 units__per_second((double)added.major_collections / seconds, major,
					   sizeof(major)));
}

static void live(const struct screen *s, bool is_utf8, char *text, size_t size)
{
	const struct interval *i = &s->model->rows.all.at[FIGURE_LIVE];
	char value[NUMBER_BYTES], interval[NUMBER_BYTES];

	snprintf(text, size, "live %s %s words; blocks allocated before attaching are not seen",
		 columns__value(FIGURE_LIVE, i->value, value, sizeof(value)),
		 columns__interval(FIGURE_LIVE, i, is_utf8, interval, sizeof(interval)));
}

static const char *metric_text(enum rows_metric metric)
{
	return metric == ROWS_LIVE ? "live" : metric == ROWS_PROMOTED ? "promoted" : "allocated";
}

static void view(const struct screen *s, char *text, size_t size)
{
	const struct view *v = s->view;
	size_t n = (size_t)snprintf(
		text, size, "%s, %s; by %s%s%s", v->by == ROWS_BY_SITE ? "sites" : "stacks",
		metric_text(v->metric), columns__title(v->sort), v->is_reversed ? " reversed" : "",
		view__is_filtered(v) ? "; only" : "");

	if (v->function[0] && n < size)
		n += (size_t)snprintf(text + n, size - n, " function *%s*", v->function);
	if (v->domain >= 0 && n < size)
		n += (size_t)snprintf(text + n, size - n, " domain %" PRId64, v->domain);
	if (v->source >= 0 && n < size)
		n += (size_t)snprintf(text + n, size - n, " source %s",
				      decode__source_name((unsigned int)v->source));
	if (v->is_paused && n < size)
		n += (size_t)snprintf(text + n, size - n, "; paused");
	if (s->facts->is_stopped && !s->facts->has_ended && n < size)
		snprintf(text + n, size - n, "; sampling has stopped: %s", s->facts->reason);
}

const char *screen__header(const struct screen *s, int line, bool is_utf8, char *text, size_t size)
{
	text[0] = '\0';
	switch (line) {
	case HEADER_TITLE:
		title(s, text, size);
		break;
	case HEADER_STATE:
		state(s, text, size);
		break;
	case HEADER_RATES:
		rates(s, is_utf8, text, size);
		break;
	case HEADER_LIVE:
		live(s, is_utf8, text, size);
		break;
	case HEADER_VIEW:
		view(s, text, size);
		break;
	default:
		break;
	}
	return text;
}
