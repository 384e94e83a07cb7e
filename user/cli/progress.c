/* SPDX-License-Identifier: BSD-2-Clause */
/* See progress.h. */
#include "user/cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* Whatever is read faster than a person looks needs no bar. */
#define SMALL_BYTES (4u << 20)
#define REDRAW_MS 100
#define BAR_MAX 40

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

static int columns(void)
{
	struct winsize w;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) || !w.ws_col ? 80 : w.ws_col;
}

void progress__begin(struct progress *p, const char *label, bool is_quiet)
{
	memset(p, 0, sizeof(*p));
	p->is_wanted = !is_quiet && isatty(STDERR_FILENO);
	p->begin_ms = now_ms();
	snprintf(p->label, sizeof(p->label), "%s", label);
}

/* "reading [#####     ]  50 %  12 of 24 MiB"; without a total only how much. */
static void draw(const struct progress *p, uint64_t done, uint64_t total)
{
	/* What is there besides the bar, and a column for the cursor. */
	int room = columns() - (int)strlen(p->label) - 36, n;
	char bar[BAR_MAX + 1];

	if (!total) {
		fprintf(stderr, "\r%.*s  %llu MiB\033[K", columns() - 20, p->label,
			(unsigned long long)done >> 20);
		return;
	}
	if (done > total)
		done = total;
	room = room > BAR_MAX ? BAR_MAX : room < 0 ? 0 : room;
	n = (int)((double)done / (double)total * room);
	memset(bar, '#', (size_t)n);
	memset(bar + n, ' ', (size_t)(room - n));
	bar[room] = '\0';
	fprintf(stderr, "\r%s [%s] %3d %%  %llu of %llu MiB\033[K", p->label, bar,
		(int)(100 * ((double)done / (double)total)), (unsigned long long)done >> 20,
		(unsigned long long)total >> 20);
}

void progress__step(void *ctx, uint64_t done_bytes, uint64_t total_bytes)
{
	struct progress *p = ctx;
	uint64_t now;

	if (!p->is_wanted || (total_bytes ? total_bytes : done_bytes) < SMALL_BYTES)
		return;
	now = now_ms();
	if (p->is_drawn && now - p->drawn_ms < REDRAW_MS)
		return;
	p->is_drawn = true;
	p->drawn_ms = now;
	draw(p, done_bytes, total_bytes);
	fflush(stderr);
}

void progress__end(struct progress *p)
{
	if (!p->is_drawn)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	p->is_drawn = false;
}
