/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes to the terminal, without ever waiting for it.
 *
 * In:   what a library writes to a file in memory (memory_fd, or a duplicate of it).
 * Out:  the same bytes on the terminal, as fast as it takes them.
 *
 * A terminal that nobody reads (a link that hangs, a multiplexer that is stopped) takes a few
 * pages and then blocks whoever writes. ncurses can only write and wait.
 */
#ifndef HEAPSONDE_OUTLET_H
#define HEAPSONDE_OUTLET_H

#include <stdbool.h>
#include <stddef.h>

struct outlet {
	int memory_fd;    /* what the library has written */
	int terminal_fd;  /* where it goes */
	bool is_own;      /* the terminal was opened anew, so that writing does not block */
	char *bytes;      /* on their way */
	size_t n, n_sent; /* so many, of which so many are there */
	bool has_dropped; /* memory was short: some are missing. Taken back by who reads it */
};

/* An outlet that is not open. */
#define OUTLET_NONE ((struct outlet){ .memory_fd = -1, .terminal_fd = -1 })

/*
 * fd: the terminal; stays the caller's, and must stay open. Where it cannot be opened anew (it
 * belongs to another user) writing may block for a moment after all: see outlet.c. Errors:
 * a negative errno; then *o is OUTLET_NONE.
 */
int outlet__open(struct outlet *o, int fd);

/* What is still on its way is dropped. One that is not open is fine. */
void outlet__close(struct outlet *o);

/* Bytes after all that has been written so far. */
void outlet__add(struct outlet *o, const char *bytes, size_t n);

/* Send what the terminal takes now. Is everything there? Also if the terminal is gone. */
bool outlet__send(struct outlet *o);

/* The same, waiting at most so long. */
bool outlet__send_within(struct outlet *o, int ms);

#endif /* HEAPSONDE_OUTLET_H */
