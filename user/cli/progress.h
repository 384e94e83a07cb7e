/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A progress bar, for people who wait for a large capture to be read.
 *
 * In:   bytes read, of how many.
 * Out:  one line on stderr, drawn over and over, and erased at the end. Nothing if stderr
 *       is no terminal, if the input is small, or with -q.
 */
#ifndef HEAPSONDE_PROGRESS_H
#define HEAPSONDE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool is_wanted;
	bool is_drawn;
	uint64_t drawn_ms; /* when */
	uint64_t begin_ms;
	char label[40];
};

/* label: what goes on, cut to 39 bytes; is_quiet: -q. */
void progress__begin(struct progress *p, const char *label, bool is_quiet);

/* Fits struct replay's progress; ctx is the struct progress. total 0: unknown. */
void progress__step(void *ctx, uint64_t done_bytes, uint64_t total_bytes);

/* Erase it. To be called before anything else is written to the terminal. */
void progress__end(struct progress *p);

#endif /* HEAPSONDE_PROGRESS_H */
