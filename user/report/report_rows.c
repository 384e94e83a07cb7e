/* SPDX-License-Identifier: BSD-2-Clause */
/* `heapsonde report`: rows, biggest first; see report.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "user/cli/cli.h"
#include "user/common/units.h"
#include "user/report/report.h"
#include "user/report/show.h"

/* Terminals narrower than this have the columns that matter, so that names have room. */
#define WIDE_COLUMNS 110

struct view {
	const struct recording *rec;
	const struct report_options *o;
	struct row *rows;
	size_t n_rows;
	struct tally total; /* of all rows */
	double rate;        /* for what was never seen */
	bool is_wide;
};

/* By enum rows_metric. */
static const char *const heads[] = {
	[ROWS_ALLOC] = "ALLOCATED",
	[ROWS_LIVE] = "LIVE",
	[ROWS_PROMOTED] = "PROMOTED",
	[ROWS_SURVIVORS] = "SURVIVORS",
};

static bool is_listed(const struct row *row, const struct view *v)
{
	/* A row that has nothing of the metric says nothing. */
	return rows__amount(&row->tally, v->o->metric)->words > 0 || row->inclusive.words > 0;
}

/* What part of the total the amount is. */
static struct interval share_of(const struct view *v, const struct amount *part)
{
	const struct amount missing = recording__missing(v->rec, &v->total, v->o->metric);
	struct amount rest = *rows__amount(&v->total, v->o->metric);

	amount__subtract(&rest, part);
	return amount__share(part, &rest, &missing);
}

/* Figures of which no fate is part are ROWS_ALLOC's, all others as good as ROWS_LIVE's. */
static struct amount missing(const struct view *v, const struct tally *t, bool is_fate)
{
	return recording__missing(v->rec, t, is_fate ? ROWS_LIVE : ROWS_ALLOC);
}

/* ---- for people ---- */

static bool shows_alloc(const struct view *v)
{
	return v->o->metric != ROWS_ALLOC;
}

static bool shows_live(const struct view *v)
{
	return v->o->metric != ROWS_LIVE && v->rec->follows;
}

static bool shows_lives(const struct view *v)
{
	return v->rec->follows && v->is_wide;
}

static bool shows_ages(const struct view *v)
{
	return shows_lives(v) && v->rec->replay.tells_cycles;
}

static void print_columns(const struct view *v)
{
	show__style(STYLE_STRONG);
	show__cell(heads[v->o->metric], 9);
	show__cell("95%", 11);
	show__cell("SHARE", 6);
	if (v->o->by == ROWS_BY_FUNCTION)
		show__cell("+CALLEES", 9);
	if (shows_alloc(v))
		show__cell("ALLOCATED", 9);
	if (shows_live(v))
		show__cell("LIVE", 8);
	if (shows_lives(v))
		show__cell("PROM", 6);
	if (shows_ages(v))
		show__cell("CYCLES", 6);
	fputs(report__row_head(v->o->by), stdout);
	show__style(STYLE_PLAIN);
	putchar('\n');
}

static int print_words(double words, int width)
{
	char text[SHOW_CHARS];

	return show__cell(units__words(words, text, sizeof(text)), width);
}

static int print_age(const struct view *v, const struct tally *t)
{
	const struct amount lack = missing(v, t, true);
	const struct interval age = ages__mean(&t->ages, heap__cycles(v->rec->replay.heap), &lack);
	char text[SHOW_CHARS] = "-";

	if (v->rec->replay.tells_cycles && !isnan(age.value))
		snprintf(text, sizeof(text), "%.1f", age.value);
	return show__cell(text, 6);
}

/* inclusive: NULL but by function. */
static void print_tally(const struct view *v, const struct tally *t, const struct amount *inclusive,
			const char *label)
{
	const struct amount *amount = rows__amount(t, v->o->metric);
	const struct amount lack = recording__missing(v->rec, t, v->o->metric);
	const struct interval i = amount__interval(amount, &lack, v->rate);
	const struct amount *total = rows__amount(&v->total, v->o->metric);
	char text[SHOW_CHARS];
	int used;

	used = print_words(i.value, 9);
	used += show__cell(show__interval(&i, text), 11);
	used += show__cell(show__share(total->words > 0 ? share_of(v, amount).value : NAN, text),
			   6);
	if (v->o->by == ROWS_BY_FUNCTION)
		used += inclusive ? print_words(inclusive->words, 9) : show__cell("", 9);
	if (shows_alloc(v))
		used += print_words(t->allocated.words, 9);
	if (shows_live(v))
		used += print_words(t->live.words, 8);
	if (shows_lives(v))
		used += show__cell(
			show__share(amount__share(&t->promoted, &t->dead_young, NULL).value, text),
			6);
	if (shows_ages(v))
		used += print_age(v, t);
	cli__print_last_column(label, used);
}

static void print_head(const struct view *v)
{
	const struct report_options *o = v->o;
	char text[SHOW_CHARS];

	recording__print_head(v->rec, "");
	if (v->rec->follows)
		recording__print_live_note();
	printf("# words with headers, estimated, with 95 %% intervals; by %s",
	       rows__by_name(o->by));
	if (o->since_s > 0)
		printf("; allocated since %s", show__seconds(o->since_s, text));
	if (o->until_s > 0)
		printf("; until %s", show__seconds(o->until_s, text));
	if (o->at_s > 0)
		printf("; as of %s", show__seconds(o->at_s, text));
	if (o->metric == ROWS_SURVIVORS)
		printf("; survived %u major cycle%s or more", o->survived,
		       o->survived == 1 ? "" : "s");
	report__print_filter(&o->filter);
	puts("\n");
}

static void print_people(const struct view *v)
{
	char label[2304], text[SHOW_CHARS];
	size_t n_listed = 0, n_shown = 0;

	print_head(v);
	print_columns(v);
	for (size_t i = 0; i < v->n_rows; i++) {
		const struct row *row = &v->rows[i];

		if (!is_listed(row, v))
			continue;
		n_listed++;
		if (v->o->n_rows && n_shown == v->o->n_rows)
			continue;
		n_shown++;
		print_tally(v, &row->tally, &row->inclusive,
			    rows__label(row, v->o->by, label, sizeof(label)));
		if (v->o->by == ROWS_BY_STACK)
			report__print_callers(row->stack);
	}
	print_tally(v, &v->total, NULL,
		    report__count(label, sizeof(label), v->o->by, n_listed, n_shown));
	if (v->rec->follows && v->total.unknown.words > 0)
		printf("%9s words were not followed and count as neither live nor dead\n",
		       units__words(v->total.unknown.words, text, sizeof(text)));
}

/* ---- as JSON ---- */

static int add_amounts(json_t *to, const struct view *v, const struct tally *t)
{
	bool follows = v->rec->follows;
	const struct {
		const char *name;
		const struct amount *amount;
		bool is_known;
		bool is_fate;
	} amounts[] = {
		{ "allocated", &t->allocated, true, false },
		{ "allocated_minor", &t->minor, true, false },
		{ "live", &t->live, follows, true },
		{ "promoted", &t->promoted, follows, true },
		{ "dead_young", &t->dead_young, follows, true },
		{ "dead_old", &t->dead_old, follows, true },
		{ "unknown", &t->unknown, true, false },
		{ "survivors", &t->survivors, follows && v->rec->replay.tells_cycles, true },
		{ "survivors_live", &t->old_live, follows && v->rec->replay.tells_cycles, true },
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
		const struct amount lack = missing(v, t, amounts[i].is_fate);

		err |= json_object_set_new(
			to, amounts[i].name,
			amounts[i].is_known ? report__amount_json(amounts[i].amount, &lack, v->rate)
					    : json_null());
	}
	return err;
}

/* Add all that is known of a tally to an object. 0 or -1. */
static int add_tally(json_t *to, const struct view *v, const struct tally *t)
{
	const struct amount lack = missing(v, t, true);
	const struct interval promoted = amount__share(&t->promoted, &t->dead_young, &lack);
	const struct interval age = ages__mean(&t->ages, heap__cycles(v->rec->replay.heap), &lack);
	const struct interval share = share_of(v, rows__amount(t, v->o->metric));
	bool has_ages = v->rec->follows && v->rec->replay.tells_cycles;
	int err = add_amounts(to, v, t);

	err |= json_object_set_new(to, "share", show__interval_json(&share));
	err |= json_object_set_new(to, "promoted_share",
				   v->rec->follows ? show__interval_json(&promoted) : json_null());
	err |= json_object_set_new(to, "age_cycles",
				   has_ages ? show__interval_json(&age) : json_null());
	err |= json_object_set_new(to, "sampled_blocks", json_integer((json_int_t)t->n_allocs));
	err |= json_object_set_new(to, "sampled_live",
				   v->rec->follows ? json_integer((json_int_t)t->n_live)
						   : json_null());
	return err;
}

static json_t *row_json(const struct view *v, const struct row *row)
{
	/* Of functions that are further out there is no tally of their own. */
	const struct amount lack = recording__missing(v->rec, &v->total, v->o->metric);
	json_t *object = report__row_json(row, v->o->by);

	if (!object || add_tally(object, v, &row->tally) ||
	    (v->o->by == ROWS_BY_FUNCTION &&
	     json_object_set_new(object, "inclusive",
				 report__amount_json(&row->inclusive, &lack, v->rate)))) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *rows_json(const struct view *v)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < v->n_rows; i++) {
		if (v->o->n_rows && json_array_size(rows) == v->o->n_rows)
			break;
		if (!is_listed(&v->rows[i], v))
			continue;
		if (json_array_append_new(rows, row_json(v, &v->rows[i]))) {
			json_decref(rows);
			return NULL;
		}
	}
	return rows;
}

static json_t *seconds_json(double seconds)
{
	return seconds > 0 ? json_real(seconds) : json_null();
}

static json_t *document(const struct view *v)
{
	const struct report_options *o = v->o;
	json_t *total = json_object(), *document;

	if (!total || add_tally(total, v, &v->total)) {
		json_decref(total);
		return NULL;
	}
	document = json_pack("{s:s, s:i, s:o, s:s, s:s, s:o, s:o, s:o, s:I, s:o, s:o}", "type",
			     "report", "version", 1, "recording", recording__to_json(v->rec), "by",
			     rows__by_name(o->by), "metric", rows__metric_name(o->metric), "at",
			     seconds_json(o->at_s), "since", seconds_json(o->since_s), "until",
			     seconds_json(o->until_s), "survived", (json_int_t)o->survived, "total",
			     total, "rows", rows_json(v));
	return report__filtered(document, &o->filter);
}

int report__rows(const struct recording *rec, const struct report_options *o, struct hs_error *err)
{
	int columns = show__terminal_columns(),
	    ret = replay__can_answer(&rec->replay, o->metric, err);
	struct view v = { .rec = rec, .o = o, .is_wide = !columns || columns >= WIDE_COLUMNS };
	long n;

	if (ret)
		return ret;
	n = rows__make(&v.rows, rec->replay.heap, o->by, o->metric, &o->filter);
	if (n < 0)
		return report__no_memory(err);
	v.n_rows = (size_t)n;
	v.rate = recording__unseen_rate(rec);
	for (size_t i = 0; i < v.n_rows; i++)
		tally__add(&v.total, &v.rows[i].tally);
	if (o->is_json)
		ret = report__print_json(document(&v), err);
	else
		print_people(&v);
	rows__free(v.rows);
	return ret;
}
