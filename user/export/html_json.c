/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON within a page; see html_json.h. */
#include "user/export/html_json.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "user/sinks/json.h"

/* In JSON `<` can only be within a string, where its number does as well. */
static int put_without_lt(const char *text, size_t size, void *ctx)
{
	FILE *f = ctx;

	while (size) {
		const char *lt = memchr(text, '<', size);
		size_t n = lt ? (size_t)(lt - text) : size;

		fwrite(text, 1, n, f);
		if (lt) {
			fputs("\\u003c", f);
			n++;
		}
		text += n;
		size -= n;
	}
	return 0;
}

int html_json__put(FILE *f, const json_t *object)
{
	if (!object) {
		fputs("null", f);
		return 0;
	}
	return json_dump_callback(object, put_without_lt, f, JSON_LINE_FLAGS | JSON_ENCODE_ANY)
		       ? -ENOMEM
		       : 0;
}

int html_json__text(FILE *f, const char *text)
{
	json_t *string = json__text(text);
	int ret = string ? html_json__put(f, string) : -ENOMEM;

	json_decref(string);
	return ret;
}

void html_json__number(FILE *f, double x, int digits)
{
	/* Most of a page's numbers are 0. */
	if (x == 0 || !isfinite(x))
		putc('0', f);
	else
		fprintf(f, "%.*g", digits, x);
}

void html_json__column(FILE *f, const char *name, const double *first, size_t size, size_t n,
		       int digits)
{
	const char *at = (const char *)first;

	fprintf(f, ",\"%s\":[", name);
	for (size_t i = 0; i < n; i++) {
		double x;

		memcpy(&x, at + i * size, sizeof(x));
		if (i)
			putc(',', f);
		html_json__number(f, x, digits);
	}
	putc(']', f);
}
