/* SPDX-License-Identifier: BSD-2-Clause */
/* See say.h. */
#include "user/common/say.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES 4096

static enum say_level level = SAY_NOTES;

void say__set_level(enum say_level wanted)
{
	level = wanted;
}

bool say__is_on(enum say_level which)
{
	return which <= level;
}

__attribute__((format(printf, 1, 0))) static void print(const char *fmt, va_list ap)
{
	char text[LINE_BYTES];

	vsnprintf(text, sizeof(text), fmt, ap);
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	fprintf(stderr, "heapsonde: %s\n", text);
}

void say__note(const char *fmt, ...)
{
	va_list ap;

	if (!say__is_on(SAY_NOTES))
		return;
	va_start(ap, fmt);
	print(fmt, ap);
	va_end(ap);
}

void say__detail(const char *fmt, ...)
{
	va_list ap;

	if (!say__is_on(SAY_DETAILS))
		return;
	va_start(ap, fmt);
	print(fmt, ap);
	va_end(ap);
}
