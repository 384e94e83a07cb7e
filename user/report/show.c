/* SPDX-License-Identifier: BSD-2-Clause */
/* See show.h. */
#include "user/report/show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "user/common/colour.h"
#include "user/common/units.h"

/* Up to here one percentage says as much as two ends do. */
#define SYMMETRIC_MAX 0.5

/* Integers up to here are exact in a double. */
#define EXACT_MAX 9007199254740992.0

const char *show__interval(const struct interval *i, char text[SHOW_CHARS])
{
	double below = i->value - i->low, above = i->high - i->value;
	double side = fmax(below, above);
	char low[SHOW_CHARS], high[SHOW_CHARS];

	text[0] = '\0';
	if (!(side > 0))
		return text;
	if (i->value > 0 && side <= SYMMETRIC_MAX * i->value) {
		side *= 100 / i->value;
		snprintf(text, SHOW_CHARS, side < 9.95 ? "\xc2\xb1%.1f%%" : "\xc2\xb1%.0f%%", side);
		return text;
	}
	snprintf(text, SHOW_CHARS, "%.20s-%.20s", units__words(i->low, low, sizeof(low)),
		 units__words(i->high, high, sizeof(high)));
	return text;
}

const char *show__share(double share, char text[SHOW_CHARS])
{
	double percent = 100 * share;

	if (isnan(share))
		snprintf(text, SHOW_CHARS, "-");
	else if (percent > 0 && percent < 0.05)
		snprintf(text, SHOW_CHARS, "<0.1%%");
	else
		snprintf(text, SHOW_CHARS, "%.1f%%", percent);
	return text;
}

const char *show__signed_words(double words, char text[SHOW_CHARS])
{
	char amount[SHOW_CHARS];

	units__words(fabs(words), amount, sizeof(amount));
	snprintf(text, SHOW_CHARS, "%s%.40s",
		 !strcmp(amount, "0") ? ""
		 : words < 0          ? "-"
				      : "+",
		 amount);
	return text;
}

const char *show__seconds(double seconds, char text[SHOW_CHARS])
{
	static const struct {
		double from, seconds;
		const char *unit;
	} units[] = {
		{ 48 * 3600.0, 24 * 3600.0, "d" },
		{ 2 * 3600.0, 3600, "h" },
		{ 120, 60, "m" },
		{ 0.9995, 1, "s" },
		{ 0, 1e-3, "ms" },
	};
	size_t u = 0;

	if (!(seconds > 0))
		seconds = 0;
	while (seconds < units[u].from)
		u++;
	seconds /= units[u].seconds;
	snprintf(text, SHOW_CHARS, "%.*f%s",
		 seconds < 9.995   ? 2
		 : seconds < 99.95 ? 1
				   : 0,
		 seconds, units[u].unit);
	return text;
}

const char *show__p(double p, char text[SHOW_CHARS])
{
	if (isnan(p))
		snprintf(text, SHOW_CHARS, "-");
	else if (p < 1e-99)
		snprintf(text, SHOW_CHARS, "<1e-99");
	else
		snprintf(text, SHOW_CHARS, p < 0.001 ? "%.0e" : "%.3f", p);
	return text;
}

void show__style(enum style style)
{
	static const char *const codes[] = {
		[STYLE_PLAIN] = "\033[0m",
		[STYLE_STRONG] = "\033[1m",
		[STYLE_UP] = "\033[1;31m",
		[STYLE_DOWN] = "\033[1;32m",
	};

	if (colour__wanted(stdout))
		fputs(codes[style], stdout);
}

int show__cell(const char *text, int width)
{
	int columns = 0;

	for (const char *c = text; *c; c++)
		/* A byte that continues a character takes no column. */
		columns += ((unsigned char)*c & 0xc0) != 0x80;
	if (columns < width)
		printf("%*s", width - columns, "");
	printf("%s ", text);
	return (columns < width ? width : columns) + 1;
}

int show__terminal_columns(void)
{
	struct winsize w;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w))
		return 0;
	return w.ws_col;
}

json_t *show__json(double number)
{
	if (!isfinite(number))
		return json_null();
	if (number == floor(number) && fabs(number) <= EXACT_MAX)
		return json_integer((json_int_t)number);
	return json_real(number);
}

json_t *show__interval_json(const struct interval *i)
{
	return json_pack("{s:o, s:o, s:o}", "value", show__json(i->value), "low",
			 show__json(i->low), "high", show__json(i->high));
}
