/* SPDX-License-Identifier: BSD-2-Clause */
/* `heapsonde diff`: two recordings, row by row; see report.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/cli/cli.h"
#include "user/common/units.h"
#include "user/report/diff_pairs.h"
#include "user/report/report.h"
#include "user/report/show.h"

/* Terminals narrower than this have no intervals, so that names have room. */
#define WIDE_COLUMNS 120

struct view {
	const struct recording *a, *b;
	const struct report_options *o;
	struct diff_pairs pairs;
	enum report_per per;
	struct diff_exposure exposure;
	double unit; /* amounts are shown as so many words per exposure */
	bool is_wide;
};

static const char *const per_names[] = {
	[PER_RUN] = "run",
	[PER_SECOND] = "second",
	[PER_WORD] = "word",
};

static const char *const per_texts[] = {
	[PER_RUN] = "words, in all",
	[PER_SECOND] = "words per second of recording",
	[PER_WORD] = "words per 1000 words that the program allocated",
};

static int choose_exposure(struct view *v, struct hs_error *err)
{
	bool is_level = v->o->metric == ROWS_LIVE || v->o->metric == ROWS_SURVIVORS;

	v->per = v->o->per;
	if (v->per == PER_AUTO)
		v->per = is_level || (v->a->is_whole && v->b->is_whole) ? PER_RUN : PER_SECOND;
	v->exposure = (struct diff_exposure){ .a = 1,
					      .b = 1,
					      .rate_a = recording__unseen_rate(v->a),
					      .rate_b = recording__unseen_rate(v->b) };
	v->unit = 1;
	if (v->per == PER_SECOND) {
		v->exposure.a = recording__seconds(v->a);
		v->exposure.b = recording__seconds(v->b);
	}
	if (v->per != PER_WORD)
		return 0;
	v->unit = 1000;
	v->exposure.a = v->a->words;
	v->exposure.b = v->b->words;
	if (isnan(v->a->words) || isnan(v->b->words))
		return hs_error__set(
			err, -ENODATA,
			"%s does not tell how many words the program allocated (it has no "
			"summary): --per word cannot be answered",
			isnan(v->a->words) ? v->a->path : v->b->path);
	return 0;
}

/* ---- for people ---- */

static void print_columns(const struct view *v)
{
	show__style(STYLE_STRONG);
	show__cell("A", 9);
	if (v->is_wide)
		show__cell("95%", 11);
	show__cell("B", 9);
	if (v->is_wide)
		show__cell("95%", 11);
	show__cell("B-A", 9);
	show__cell("B/A", 7);
	show__cell("P", 8);
	printf("  %s", report__row_head(v->o->by));
	show__style(STYLE_PLAIN);
	putchar('\n');
}

static int print_side(const struct view *v, const struct amount *amount,
		      const struct amount *missing, double rate, double exposure)
{
	struct interval i = amount__interval(amount, missing, rate);
	double factor = v->unit / exposure;
	char text[SHOW_CHARS];
	int used;

	i = (struct interval){ i.value * factor, i.low * factor, i.high * factor };
	used = show__cell(units__words(i.value, text, sizeof(text)), 9);
	if (v->is_wide)
		used += show__cell(show__interval(&i, text), 11);
	return used;
}

static void print_pair(const struct view *v, const struct diff_pair *p, const char *label)
{
	double ratio = diff_pair__ratio(p, &v->exposure);
	char text[SHOW_CHARS];
	int used;

	show__style(!p->is_significant ? STYLE_PLAIN : p->difference > 0 ? STYLE_UP : STYLE_DOWN);
	used = print_side(v, &p->a, &p->missing_a, recording__unseen_rate(v->a), v->exposure.a);
	used += print_side(v, &p->b, &p->missing_b, recording__unseen_rate(v->b), v->exposure.b);
	used += show__cell(show__signed_words(p->difference * v->unit, text), 9);
	if (isnan(ratio))
		snprintf(text, sizeof(text), "-");
	else if (isinf(ratio))
		snprintf(text, sizeof(text), "new");
	else
		snprintf(text, sizeof(text), ratio > 0 && ratio < 9999 ? "%.2f" : "%.3g", ratio);
	used += show__cell(text, 7);
	used += show__cell(show__p(p->p_adjusted, text), 8);
	used += show__cell(p->is_significant ? "*" : "", 1);
	show__style(STYLE_PLAIN);
	cli__print_last_column(label, used);
}

static void print_people(const struct view *v)
{
	size_t n = v->pairs.n, n_significant = 0;
	char label[2304];

	recording__print_head(v->a, "A: ");
	recording__print_head(v->b, "B: ");
	if (v->a->follows && v->b->follows)
		recording__print_live_note();
	printf("# %s: %s, by %s, with 95 %% intervals", rows__metric_name(v->o->metric),
	       per_texts[v->per], rows__by_name(v->o->by));
	if (v->o->metric == ROWS_SURVIVORS)
		printf("; survived %u major cycle%s or more", v->o->survived,
		       v->o->survived == 1 ? "" : "s");
	report__print_filter(&v->o->filter);
	putchar('\n');
	printf("# P is corrected for the number of rows (Holm); * marks P < %g: more than chance "
	       "in "
	       "the sampling\n\n",
	       v->o->significance);
	print_columns(v);
	if (v->o->n_rows && n > v->o->n_rows)
		n = v->o->n_rows;
	for (size_t i = 0; i < n; i++) {
		const struct diff_pair *p = &v->pairs.pairs[i];

		print_pair(v, p, rows__label(p->row, v->o->by, label, sizeof(label)));
		if (v->o->by == ROWS_BY_STACK)
			report__print_callers(p->row->stack);
	}
	for (size_t i = 0; i < v->pairs.n; i++)
		n_significant += v->pairs.pairs[i].is_significant;
	snprintf(label, sizeof(label),
		 v->pairs.n == 1 ? "%zu row, %zu of them significant"
				 : "all %zu rows, %zu of them significant",
		 v->pairs.n, n_significant);
	print_pair(v, &v->pairs.total, label);
}

/* ---- as JSON ---- */

/* Add the two amounts and what they say to an object. 0 or -1. */
static int add_pair(json_t *to, const struct view *v, const struct diff_pair *p)
{
	int err = 0;

	err |= json_object_set_new(
		to, "a", report__amount_json(&p->a, &p->missing_a, recording__unseen_rate(v->a)));
	err |= json_object_set_new(
		to, "b", report__amount_json(&p->b, &p->missing_b, recording__unseen_rate(v->b)));
	err |= json_object_set_new(to, "difference", show__json(p->difference));
	err |= json_object_set_new(to, "ratio", show__json(diff_pair__ratio(p, &v->exposure)));
	err |= json_object_set_new(to, "p", show__json(p->p));
	err |= json_object_set_new(to, "p_adjusted", show__json(p->p_adjusted));
	err |= json_object_set_new(to, "significant", json_boolean(p->is_significant));
	return err;
}

static json_t *rows_json(const struct view *v)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < v->pairs.n && !(v->o->n_rows && i >= v->o->n_rows); i++) {
		const struct diff_pair *p = &v->pairs.pairs[i];
		json_t *row = report__row_json(p->row, v->o->by);

		if (!row || add_pair(row, v, p) || json_array_append(rows, row)) {
			json_decref(row);
			json_decref(rows);
			return NULL;
		}
		json_decref(row);
	}
	return rows;
}

static json_t *document(const struct view *v)
{
	json_t *total = json_object(), *document;

	if (!total || add_pair(total, v, &v->pairs.total)) {
		json_decref(total);
		return NULL;
	}
	document = json_pack(
		"{s:s, s:i, s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:f, s:I, s:o, s:o}", "type", "diff",
		"version", 1, "a", recording__to_json(v->a), "b", recording__to_json(v->b), "by",
		rows__by_name(v->o->by), "metric", rows__metric_name(v->o->metric), "per",
		per_names[v->per], "exposure_a", show__json(v->exposure.a), "exposure_b",
		show__json(v->exposure.b), "significance", v->o->significance, "survived",
		(json_int_t)v->o->survived, "total", total, "rows", rows_json(v));
	return report__filtered(document, &v->o->filter);
}

int report__diff(const struct recording *a, const struct recording *b,
		 const struct report_options *o, struct hs_error *err)
{
	int columns = show__terminal_columns(),
	    ret = replay__can_answer(&a->replay, o->metric, err);
	struct view v = { .a = a, .b = b, .o = o, .is_wide = !columns || columns >= WIDE_COLUMNS };

	if (!ret)
		ret = replay__can_answer(&b->replay, o->metric, err);
	if (!ret)
		ret = choose_exposure(&v, err);
	if (ret)
		return ret;
	if (diff_pairs__make(&v.pairs, a->replay.heap, b->replay.heap, o, &v.exposure))
		ret = report__no_memory(err);
	else if (o->is_json)
		ret = report__print_json(document(&v), err);
	else
		print_people(&v);
	diff_pairs__deinit(&v.pairs);
	return ret;
}
