/* SPDX-License-Identifier: BSD-2-Clause */
/* `heapsonde leaks`: what lives long, and grows; see report.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "user/cli/cli.h"
#include "user/common/units.h"
#include "user/common/say.h"
#include "user/report/report.h"
#include "user/report/show.h"

/* 97.5 % of a normal variable lie below. */
#define Z 1.959963984540054

#define SECONDS_PER_HOUR 3600.0

/* Ages that differ by less than this part of the recording count as equal: of several
 * stacks that leak from the beginning, chance decides whose first block is sampled first. */
#define AGE_CLASSES 10.0

struct leak {
	const struct row *row;
	struct interval live;
	struct interval share;  /* of all that lives */
	struct interval growth; /* words per second; NAN: not known */
	double oldest_s;
	bool is_growing; /* beyond chance */
};

struct view {
	const struct recording *rec;
	const struct report_options *o;
	struct leak *leaks;
	size_t n_leaks;
	struct tally total; /* of all stacks */
	double rate;
	double length_s; /* of the recording */
};

/* ---- growth ---- */

/* Empty stacks, then lost ones, then the others by id: a capture gives the same ids however
 * far it is read. */
static int compare_stacks(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	uint64_t x = a->stack ? 1 + (uint64_t)a->stack->id : a->is_stack_lost;
	uint64_t y = b->stack ? 1 + (uint64_t)b->stack->id : b->is_stack_lost;

	return x < y ? -1 : x > y;
}

struct earlier {
	struct row *rows; /* sorted by compare_stacks */
	size_t n_rows;
	double since_s;     /* how long before the end of the last cycle; 0: not known */
	struct amount lost; /* samples, until then */
};

uint64_t report__middle_ns(const struct recording *rec)
{
	return rec->first_cycle_ns + (rec->last_cycle_ns - rec->first_cycle_ns) / 2;
}

/* 0 or -ENOMEM. */
static int read_earlier(struct earlier *e, const struct view *v, const struct recording *half)
{
	uint64_t middle_ns = report__middle_ns(v->rec);
	long n;

	memset(e, 0, sizeof(*e));
	/* Before, nothing can have been old enough, and all would seem to have grown since. */
	if (!half || !half->replay.heap || heap__cycles(half->replay.heap) <= v->o->survived)
		return 0;
	n = rows__make(&e->rows, half->replay.heap, ROWS_BY_STACK, ROWS_LIVE, &v->o->filter);
	if (n < 0)
		return -ENOMEM;
	e->n_rows = (size_t)n;
	qsort(e->rows, e->n_rows, sizeof(*e->rows), compare_stacks);
	e->lost = *heap__lost_samples(half->replay.heap);
	e->since_s = (double)(v->rec->last_cycle_ns - middle_ns) / 1e9;
	return 0;
}

static void find_growth(struct leak *l, const struct amount *missing, const struct earlier *e)
{
	static const struct amount none;
	struct amount missing_then = e->lost;
	const struct row *then;
	double growth, spread;

	l->growth = (struct interval){ NAN, NAN, NAN };
	if (e->since_s <= 0)
		return;
	then = bsearch(l->row, e->rows, e->n_rows, sizeof(*e->rows), compare_stacks);
	if (then)
		amount__add(&missing_then, &then->tally.unknown);
	growth = l->row->tally.old_live.words - (then ? &then->tally.old_live : &none)->words;
	/* Blocks that lived at both times are in both variances, though they cannot be the
	 * reason of a difference: the interval is wider than it need be, never narrower. */
	spread = Z * sqrt(l->row->tally.old_live.variance +
			  (then ? &then->tally.old_live : &none)->variance);
	l->growth.value = growth / e->since_s;
	/* What is missing of then, or of now, may be all there is to it. */
	l->growth.low = (growth - spread - missing_then.words) / e->since_s;
	l->growth.high = (growth + spread + missing->words) / e->since_s;
	l->is_growing = l->growth.low > 0;
}

/* ---- order ---- */

static int descending(double a, double b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int compare_leaks(const void *left, const void *right, void *ctx)
{
	const struct leak *a = left, *b = right;
	const struct view *v = ctx;
	double unit = v->length_s / AGE_CLASSES;
	int ret = (int)b->is_growing - (int)a->is_growing;

	if (!ret)
		ret = descending(floor(a->oldest_s / unit), floor(b->oldest_s / unit));
	if (!ret && a->is_growing)
		ret = descending(a->growth.value, b->growth.value);
	if (!ret)
		ret = descending(a->live.value, b->live.value);
	return ret ? ret : compare_stacks(a->row, b->row);
}

static void find_leaks(struct view *v, const struct row *rows, size_t n_rows,
		       const struct earlier *earlier)
{
	for (size_t i = 0; i < n_rows; i++)
		tally__add(&v->total, &rows[i].tally);
	for (size_t i = 0; i < n_rows; i++) {
		const struct tally *t = &rows[i].tally;
		struct leak *l = &v->leaks[v->n_leaks];
		const struct amount missing = recording__missing(v->rec, t, ROWS_SURVIVORS);
		const struct amount missing_all =
			recording__missing(v->rec, &v->total, ROWS_SURVIVORS);
		struct amount rest = v->total.live;

		if (t->old_live.words <= 0)
			continue;
		amount__subtract(&rest, &t->old_live);
		*l = (struct leak){ .row = &rows[i],
				    .live = amount__interval(&t->old_live, &missing, v->rate),
				    .share = amount__share(&t->old_live, &rest, &missing_all) };
		if (t->oldest_live_ns && v->rec->end_ns > t->oldest_live_ns)
			l->oldest_s = (double)(v->rec->end_ns - t->oldest_live_ns) / 1e9;
		find_growth(l, &missing, earlier);
		v->n_leaks++;
	}
	qsort_r(v->leaks, v->n_leaks, sizeof(*v->leaks), compare_leaks, v);
}

/* ---- for people ---- */

static void print_leak(const struct leak *l)
{
	char text[SHOW_CHARS], label[2304];
	int used;

	show__style(l->is_growing ? STYLE_UP : STYLE_PLAIN);
	used = show__cell(show__seconds(l->oldest_s, text), 7);
	used += show__cell(units__words(l->live.value, text, sizeof(text)), 8);
	used += show__cell(show__interval(&l->live, text), 11);
	used += show__cell(show__share(l->share.value, text), 6);
	if (isnan(l->growth.value))
		snprintf(text, sizeof(text), "-");
	else
		show__signed_words(l->growth.value * SECONDS_PER_HOUR, text);
	used += show__cell(text, 8);
	used += show__cell(l->is_growing ? "*" : "", 1);
	show__style(STYLE_PLAIN);
	cli__print_last_column(rows__label(l->row, ROWS_BY_STACK, label, sizeof(label)), used);
	report__print_callers(l->row->stack);
}

static void print_people(const struct view *v, bool knows_growth)
{
	unsigned long long n_cycles = heap__cycles(v->rec->replay.heap);
	char text[SHOW_CHARS], count[64];
	size_t n = v->n_leaks;

	recording__print_head(v->rec, "");
	recording__print_live_note();
	printf("# words that live at the end and have survived %u major cycle%s or more, of %llu",
	       v->o->survived, v->o->survived == 1 ? "" : "s", n_cycles);
	report__print_filter(&v->o->filter);
	if (knows_growth)
		puts("\n# growth is since the middle of the time in which cycles ended; * is "
		     "beyond "
		     "chance\n");
	else if (!replay__is_repeatable(v->rec->replay.path))
		puts("\n# growth is not known: for that a capture is read twice, and not from a "
		     "pipe\n");
	else
		puts("\n# growth is not known: too few major cycles had ended by the middle\n");
	if (n_cycles < v->o->survived)
		say__note("%s: only %llu major cycles ended while it was recorded, so no block can "
			  "have survived %u; record for longer",
			  v->rec->path, n_cycles, v->o->survived);
	show__style(STYLE_STRONG);
	show__cell("OLDEST", 7);
	show__cell("LIVE", 8);
	show__cell("95%", 11);
	show__cell("SHARE", 6);
	show__cell("GROWTH/H", 10);
	fputs("STACK", stdout);
	show__style(STYLE_PLAIN);
	putchar('\n');
	if (v->o->n_rows && n > v->o->n_rows)
		n = v->o->n_rows;
	for (size_t i = 0; i < n; i++)
		print_leak(&v->leaks[i]);
	fputs(report__count(count, sizeof(count), ROWS_BY_STACK, v->n_leaks, n), stdout);
	printf(", %s", units__words(v->total.old_live.words, text, sizeof(text)));
	printf(" of %s words that live\n", units__words(v->total.live.words, text, sizeof(text)));
}

/* ---- as JSON ---- */

static json_t *leak_json(const struct view *v, const struct leak *l)
{
	const struct amount missing = recording__missing(v->rec, &l->row->tally, ROWS_SURVIVORS);
	json_t *object = report__row_json(l->row, ROWS_BY_STACK);
	int err = object ? 0 : -1;

	err |= json_object_set_new(object, "oldest_seconds", show__json(l->oldest_s));
	err |= json_object_set_new(object, "live",
				   report__amount_json(&l->row->tally.old_live, &missing, v->rate));
	err |= json_object_set_new(object, "share", show__interval_json(&l->share));
	err |= json_object_set_new(object, "growth_per_second",
				   isnan(l->growth.value) ? json_null()
							  : show__interval_json(&l->growth));
	err |= json_object_set_new(object, "growing",
				   isnan(l->growth.value) ? json_null()
							  : json_boolean(l->is_growing));
	if (err) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *document(const struct view *v)
{
	const struct amount missing = recording__missing(v->rec, &v->total, ROWS_SURVIVORS);
	json_t *leaks = json_array(), *document;

	for (size_t i = 0; i < v->n_leaks && !(v->o->n_rows && i >= v->o->n_rows); i++)
		if (json_array_append_new(leaks, leak_json(v, &v->leaks[i]))) {
			json_decref(leaks);
			return NULL;
		}
	document = json_pack(
		"{s:s, s:i, s:o, s:I, s:o, s:o, s:I, s:o}", "type", "leaks", "version", 1,
		"recording", recording__to_json(v->rec), "survived", (json_int_t)v->o->survived,
		"live", report__amount_json(&v->total.live, &missing, v->rate), "survivors_live",
		report__amount_json(&v->total.old_live, &missing, v->rate), "stacks",
		(json_int_t)v->n_leaks, "rows", leaks);
	return report__filtered(document, &v->o->filter);
}

int report__leaks(const struct recording *rec, const struct recording *half,
		  const struct report_options *o, struct hs_error *err)
{
	int ret = replay__can_answer(&rec->replay, ROWS_LIVE, err);
	struct view v = { .rec = rec, .o = o };
	struct row *rows = NULL;
	struct earlier earlier;
	long n;

	if (!ret)
		ret = replay__can_answer(&rec->replay, ROWS_SURVIVORS, err);
	if (ret)
		return ret;
	v.rate = recording__unseen_rate(rec);
	v.length_s = (double)(rec->end_ns - rec->begin_ns) / 1e9;
	v.length_s = v.length_s > 1e-9 ? v.length_s : 1e-9;
	ret = read_earlier(&earlier, &v, half);
	n = ret ? ret : rows__make(&rows, rec->replay.heap, ROWS_BY_STACK, ROWS_LIVE, &o->filter);
	if (n >= 0)
		v.leaks = calloc((size_t)n + 1, sizeof(*v.leaks));
	if (!v.leaks) {
		ret = report__no_memory(err);
	} else {
		find_leaks(&v, rows, (size_t)n, &earlier);
		if (o->is_json)
			ret = report__print_json(document(&v), err);
		else
			print_people(&v, earlier.since_s > 0);
	}
	free(v.leaks);
	rows__free(rows);
	rows__free(earlier.rows);
	return ret;
}
