/* SPDX-License-Identifier: BSD-2-Clause */
/* `heapsonde timeline`: words over time; see report.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "user/common/units.h"
#include "user/report/report.h"
#include "user/report/show.h"

/* Of bars where there is no terminal, and at least. */
#define BAR_COLUMNS 40
#define BAR_COLUMNS_MIN 8

struct point {
	double end_s;                           /* from the beginning of the recording */
	double length_s;                        /* > 0 */
	double sampled_s;                       /* of it */
	double allocated_words, promoted_words; /* in it */
	struct interval live;                   /* at its end */
};

struct view {
	const struct recording *rec;
	const struct report_options *o;
	struct point *points;
	size_t n_points;
};

static double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

/* All that is missing at the end, at any point: when it went missing is not kept. */
static struct amount missing_live(const struct recording *rec)
{
	return recording__missing(rec, heap__total(rec->replay.heap), ROWS_LIVE);
}

/* Nothing was sampled: one point, which says how little that means. 0 or -ENOMEM. */
static int make_empty_point(struct view *v)
{
	const struct amount missing = missing_live(v->rec);
	static const struct amount none;

	v->points = calloc(1, sizeof(*v->points));
	if (!v->points)
		return -ENOMEM;
	v->n_points = 1;
	v->points->end_s = v->points->length_s = v->points->sampled_s = recording__seconds(v->rec);
	v->points->live = amount__interval(&none, &missing, recording__unseen_rate(v->rec));
	return 0;
}

/* Join the steps of the heap into at most n_wanted points (0: as many as there are steps),
 * which reach to the end of the recording. 0 or -ENOMEM. */
static int make_points(struct view *v, size_t n_wanted)
{
	const struct heap *h = v->rec->replay.heap;
	const struct amount missing = missing_live(v->rec);
	uint64_t begin_ns, step_ns, end_ns = v->rec->end_ns;
	uint64_t until_ns = recording__until_ns(v->rec);
	struct timeline_step *steps, last = { 0 };
	long n = timeline__steps(heap__timeline(h), &steps, &begin_ns, &step_ns);
	size_t n_all, group;

	if (n < 0)
		return -ENOMEM;
	if (!n) {
		free(steps);
		return make_empty_point(v);
	}
	/* After the last event nothing changes, until the end. It may be far off if the
	 * capture is damaged. */
	n_all = (size_t)n;
	if (end_ns > begin_ns && (end_ns - begin_ns) / step_ns >= n_all)
		n_all = (end_ns - begin_ns) / step_ns < 4 * TIMELINE_STEPS_MAX
				? (end_ns - begin_ns) / step_ns + 1
				: 4 * TIMELINE_STEPS_MAX;
	if (!n_wanted || n_wanted > n_all)
		n_wanted = n_all;
	group = (n_all + n_wanted - 1) / n_wanted;
	v->points = calloc(n_wanted + 1, sizeof(*v->points));
	for (size_t i = 0; v->points && i < n_all; i++) {
		struct point *p = &v->points[i / group];
		uint64_t from_ns = begin_ns + i * step_ns, at_ns = from_ns + step_ns;

		if (i < (size_t)n)
			last = steps[i];
		else
			last.allocated_words = last.promoted_words = 0;
		at_ns = at_ns < end_ns ? at_ns : end_ns;
		p->end_s = seconds_between(v->rec->begin_ns, at_ns);
		/* The last step is not over when the recording ends. */
		p->length_s += seconds_between(from_ns, at_ns);
		p->sampled_s += seconds_between(from_ns, at_ns < until_ns ? at_ns : until_ns);
		p->allocated_words += last.allocated_words;
		p->promoted_words += last.promoted_words;
		p->live =
			amount__interval(&(struct amount){ last.live_words, last.live_variance, 0 },
					 &missing, recording__unseen_rate(v->rec));
		v->n_points = i / group + 1;
	}
	free(steps);
	return v->points ? 0 : -ENOMEM;
}

/* ---- for people ---- */

static int print_words(double words, int width)
{
	char text[SHOW_CHARS];

	return show__cell(units__words(words, text, sizeof(text)), width);
}

/* What is sampled while all is being detached, or after `stop`, is nothing and says nothing. */
static double per_second(double words, const struct point *p)
{
	return p->sampled_s > 0 ? words / p->sampled_s : 0;
}

static void print_point(const struct point *p, double most)
{
	int columns = show__terminal_columns(), bar;
	char text[SHOW_CHARS];
	int used = show__cell(show__seconds(p->end_s, text), 8);

	used += print_words(per_second(p->allocated_words, p), 9);
	used += print_words(per_second(p->promoted_words, p), 10);
	used += print_words(p->live.value, 9);
	used += show__cell(show__interval(&p->live, text), 11);
	bar = columns ? columns - used - 1 : BAR_COLUMNS;
	bar = bar < BAR_COLUMNS_MIN ? BAR_COLUMNS_MIN : bar;
	bar = most > 0 ? (int)(bar * p->live.value / most + 0.5) : 0;
	while (bar-- > 0)
		putchar('#');
	putchar('\n');
}

static void print_people(const struct view *v)
{
	double most = 0;

	recording__print_head(v->rec, "");
	recording__print_live_note();
	puts("# words with headers, estimated, with 95 % intervals; live: at the end of each "
	     "step\n");
	show__style(STYLE_STRONG);
	show__cell("TIME", 8);
	show__cell("ALLOC/S", 9);
	show__cell("PROMOTED/S", 10);
	show__cell("LIVE", 9);
	show__cell("95%", 11);
	show__style(STYLE_PLAIN);
	putchar('\n');
	for (size_t i = 0; i < v->n_points; i++)
		if (v->points[i].live.value > most)
			most = v->points[i].live.value;
	for (size_t i = 0; i < v->n_points; i++)
		print_point(&v->points[i], most);
}

/* ---- as JSON ---- */

static json_t *document(const struct view *v)
{
	json_t *steps = json_array();

	for (size_t i = 0; i < v->n_points; i++) {
		const struct point *p = &v->points[i];
		json_t *step = json_pack(
			"{s:f, s:f, s:o, s:o, s:o}", "end", p->end_s, "seconds", p->length_s,
			"allocated_words", show__json(p->allocated_words), "promoted_words",
			show__json(p->promoted_words), "live", show__interval_json(&p->live));

		if (json_array_append_new(steps, step)) {
			json_decref(steps);
			return NULL;
		}
	}
	return json_pack("{s:s, s:i, s:o, s:o}", "type", "timeline", "version", 1, "recording",
			 recording__to_json(v->rec), "steps", steps);
}

int report__timeline(const struct recording *rec, const struct report_options *o,
		     struct hs_error *err)
{
	int ret = replay__can_answer(&rec->replay, ROWS_LIVE, err);
	struct view v = { .rec = rec, .o = o };

	if (ret)
		return ret;
	if (make_points(&v, o->n_steps))
		return report__no_memory(err);
	if (o->is_json)
		ret = report__print_json(document(&v), err);
	else
		print_people(&v);
	free(v.points);
	return ret;
}
