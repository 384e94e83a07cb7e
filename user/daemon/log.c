/* SPDX-License-Identifier: BSD-2-Clause */
/* See log.h. */
#include "user/daemon/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/common/say.h"

#define LINE_BYTES 1024

/* JOURNAL_STREAM says which file the journal has given us; stderr may have been
 * redirected since. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       !fstat(STDERR_FILENO, &st) && st.st_dev == dev && st.st_ino == ino;
}

void log__line(enum log_priority priority, const char *fmt, ...)
{
	char text[LINE_BYTES];
	va_list ap;

	if ((priority == LOG_PRIORITY_INFO && !say__is_on(SAY_NOTES)) ||
	    (priority == LOG_PRIORITY_DEBUG && !say__is_on(SAY_DETAILS)))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	if (is_journal())
		fprintf(stderr, "<%d>%s\n", priority, text);
	else
		fprintf(stderr, "heapsonde: %s\n", text);
}
