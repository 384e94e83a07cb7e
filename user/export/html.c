/* SPDX-License-Identifier: BSD-2-Clause */
/* The page; see html.h, and user/export/html/ for what runs in it. */
#include "user/export/html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "page.h" /* made by scripts/page-build: page_html */
#include "user/export/export.h"
#include "user/export/html_json.h"
#include "user/export/html_stacks.h"
#include "user/track/heap.h"
#include "user/track/timeline.h"

/* Where the data goes. It stands in the page once; scripts/page-build sees to that. */
#define DATA_MARK "HEAPSONDE_DATA"

#define NS_PER_S 1e9

/* A member that may be absent from a capture that was cut. */
static int put_member(FILE *f, const char *name, const json_t *object)
{
	fprintf(f, ",\"%s\":", name);
	return html_json__put(f, object);
}

static void put_number(FILE *f, const char *name, double x, int digits)
{
	fprintf(f, ",\"%s\":", name);
	html_json__number(f, x, digits);
}

/* Seconds after the header, which is when everything was attached. */
static double after_header(const struct replay *r, uint64_t time_ns)
{
	double begin = (double)json_integer_value(json_object_get(r->header, "time"));

	if (!time_ns)
		return 0;
	return ((double)time_ns - (begin > 0 ? begin : (double)heap__first_ns(r->heap))) / NS_PER_S;
}

static int put_timeline(FILE *f, const struct replay *r)
{
	const struct timeline *timeline = heap__timeline(r->heap);
	static const struct timeline_step none;
	struct timeline_step *steps = NULL;
	uint64_t begin_ns = 0, step_ns = 0;
	const struct timeline_step *first;
	long n = timeline ? timeline__steps(timeline, &steps, &begin_ns, &step_ns) : 0;

	if (n < 0)
		return (int)n;
	first = n ? steps : &none;
	fputs(",\"timeline\":{\"unit\":\"words\"", f);
	put_number(f, "begin_s", after_header(r, begin_ns), 9);
	put_number(f, "step_s", (double)step_ns / NS_PER_S, 9);
	html_json__column(f, "allocated", &first->allocated_words, sizeof(*first), (size_t)n, 6);
	html_json__column(f, "promoted", &first->promoted_words, sizeof(*first), (size_t)n, 6);
	html_json__column(f, "live", &first->live_words, sizeof(*first), (size_t)n, 6);
	html_json__column(f, "live_variance", &first->live_variance, sizeof(*first), (size_t)n, 4);
	putc('}', f);
	free(steps);
	return 0;
}

/* What the capture says of itself. */
static int put_about(FILE *f, const struct replay *r, const struct html_options *o)
{
	int ret;

	fprintf(f, "{\"version\":1,\"view\":\"%s\",\"metric\":\"%s\",\"input\":",
		o->view == HTML_VIEW_TIMELINE ? "timeline" : "graph", rows__metric_name(o->metric));
	ret = html_json__text(f, o->input);
	if (!ret)
		ret = put_member(f, "header", r->header);
	if (!ret)
		ret = put_member(f, "summary", r->summary);
	if (!ret)
		ret = put_member(f, "lost", r->lost);
	fprintf(f, ",\"is_cut\":%s,\"events\":%llu,\"cycles\":%llu,\"survived\":%u",
		r->is_cut ? "true" : "false", (unsigned long long)r->n_events,
		(unsigned long long)heap__cycles(r->heap), heap__survived(r->heap));
	fprintf(f, ",\"follows\":%s,\"tells_cycles\":%s", replay__follows(r) ? "true" : "false",
		r->tells_cycles ? "true" : "false");
	put_number(f, "rate", r->pipeline.lowest_rate, 17);
	put_number(f, "first_s", after_header(r, heap__first_ns(r->heap)), 9);
	put_number(f, "last_s", after_header(r, heap__last_ns(r->heap)), 9);
	return ret;
}

static int put_data(FILE *f, const struct replay *r, const struct html_options *o)
{
	int ret = put_about(f, r, o);

	if (!ret)
		ret = put_timeline(f, r);
	if (!ret)
		ret = html_stacks__write(f, r->heap);
	putc('}', f);
	return ret;
}

int html__write(FILE *f, const struct replay *r, const struct html_options *o, struct hs_error *err)
{
	const char *page = (const char *)page_html;
	const char *mark = memmem(page, sizeof(page_html), DATA_MARK, strlen(DATA_MARK));
	const char *rest;
	int ret;

	if (!mark || !r->heap)
		return hs_error__set(err, -EINVAL, "this heapsonde cannot make pages");
	rest = mark + strlen(DATA_MARK);
	fwrite(page, 1, (size_t)(mark - page), f);
	ret = put_data(f, r, o);
	if (ret)
		return hs_error__set(err, ret, "out of memory");
	fwrite(rest, 1, sizeof(page_html) - (size_t)(rest - page), f);
	return 0;
}

int html__timeline(FILE *f, const struct replay *r, const char *input, struct hs_error *err)
{
	const struct html_options options = { .input = input,
					      .view = HTML_VIEW_TIMELINE,
					      .metric = ROWS_LIVE };

	return html__write(f, r, &options, err);
}

static int html__export(FILE *f, const struct replay *r, const struct export_options *o,
			struct hs_error *err)
{
	const struct html_options options = { .input = o->input, .metric = o->metric };

	return html__write(f, r, &options, err);
}

const struct exporter export_html = {
	.name = "html",
	.about = "a page for a browser: flame graph, timeline, sites",
	.suffix = ".html",
	.metrics = EXPORT_METRICS_ALL,
	.write = html__export,
};
