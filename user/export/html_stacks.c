/* SPDX-License-Identifier: BSD-2-Clause */
/* The tree of callers as JSON; see html_stacks.h. */
#include "user/export/html_stacks.h"

#include <math.h>

#include "user/export/html_json.h"
#include "user/export/html_tree.h"

static int write_strings(FILE *f, const struct html_tree *t)
{
	const char *const *strings = t->strings.items;
	int ret = 0;

	fputs(",\"strings\":[", f);
	for (size_t i = 0; i < t->strings.n && !ret; i++) {
		if (i)
			fputs(",\n", f);
		ret = html_json__text(f, strings[i]);
	}
	putc(']', f);
	return ret;
}

static void put_index(FILE *f, uint32_t index)
{
	if (index == HTML_NO_STRING)
		fputs("-1", f);
	else
		fprintf(f, "%u", index);
}

static void write_frames(FILE *f, const struct html_tree *t)
{
	const struct html_frame *frames = t->frames.items;

	fputs(",\"frames\":[", f);
	for (size_t i = 0; i < t->frames.n; i++) {
		if (i)
			putc(',', f);
		put_index(f, frames[i].function);
		putc(',', f);
		put_index(f, frames[i].file);
		fprintf(f, ",%u", frames[i].line);
	}
	putc(']', f);
}

/* Parents as distances: most are 1. */
static void write_nodes(FILE *f, const struct html_tree *t)
{
	const struct html_node *nodes = t->nodes.items;

	fprintf(f, ",\"nodes\":{\"is_cut\":%s,\"up\":[0", t->is_cut ? "true" : "false");
	for (size_t i = 1; i < t->nodes.n; i++)
		fprintf(f, ",%zu", i - nodes[i].parent);
	fputs("],\"frame\":[-1", f);
	for (size_t i = 1; i < t->nodes.n; i++)
		fprintf(f, ",%u", nodes[i].frame);
	fputs("]}", f);
}

/*
 * variance / words, where it is the same everywhere, as it is when the rate never
 * changed; else NAN. Then the page needs no variances.
 */
static double common_ratio(const struct html_cell *cells, size_t n)
{
	double ratio = NAN;

	for (size_t i = 0; i < n; i++) {
		for (int m = 0; m < HTML_METRICS; m++) {
			const struct amount *a = &cells[i].amounts[m];

			if (a->words <= 0)
				continue;
			if (isnan(ratio))
				ratio = a->variance / a->words;
			if (fabs(a->variance - ratio * a->words) > 1e-6 * ratio * a->words)
				return NAN;
		}
	}
	return isnan(ratio) ? 0 : ratio;
}

static void write_metric(FILE *f, const struct html_cell *cells, size_t n, int m, bool variance)
{
	static const struct html_cell none;
	const struct amount *first = n ? &cells[0].amounts[m] : &none.amounts[m];

	fprintf(f, ",\"%s\":{\"unit\":\"words\"", html_metrics[m].name);
	html_json__column(f, "words", &first->words, sizeof(*cells), n, 9);
	html_json__column(f, "blocks", &first->blocks, sizeof(*cells), n, 4);
	if (variance)
		html_json__column(f, "variance", &first->variance, sizeof(*cells), n, 4);
	putc('}', f);
}

static void write_cells(FILE *f, const struct html_tree *t)
{
	const struct html_cell *cells = t->cells.items;
	size_t n = t->cells.n;
	double ratio = common_ratio(cells, n);

	fputs(",\"cells\":{\"variance_ratio\":", f);
	if (isnan(ratio))
		fputs("null", f);
	else
		html_json__number(f, ratio, 9);
	fputs(",\"node\":[", f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%u", i ? "," : "", cells[i].node);
	fputs("],\"domain\":[", f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%lld", i ? "," : "",
			cells[i].domain == HEAP_DOMAIN_OTHERS ? -1LL : cells[i].domain);
	putc(']', f);
	for (int m = 0; m < HTML_METRICS; m++)
		write_metric(f, cells, n, m, isnan(ratio));
	putc('}', f);
}

int html_stacks__write(FILE *f, const struct heap *heap)
{
	struct html_tree t;
	int ret = html_tree__init(&t, heap);

	if (!ret)
		ret = write_strings(f, &t);
	if (!ret) {
		write_frames(f, &t);
		write_nodes(f, &t);
		write_cells(f, &t);
	}
	html_tree__deinit(&t);
	return ret;
}
