/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What commands tell people on stderr besides errors, and how much of it.
 *
 * In:   the level that -q or -v chose (user/cli/common_args.h), and texts.
 * Out:  "heapsonde: TEXT", one line each, on stderr.
 *
 * Errors are not said here: they come whatever the level.
 */
#ifndef HEAPSONDE_SAY_H
#define HEAPSONDE_SAY_H

#include <stdbool.h>

enum say_level {
	SAY_ERRORS, /* -q: nothing but errors */
	SAY_NOTES,  /* what one should know: losses, why it ended */
	SAY_DETAILS /* -v: also what is done, and how */
};

/* To be called before there are threads; SAY_NOTES until then. */
void say__set_level(enum say_level wanted);

/* Is this level said? For work that is only worth its while then. */
bool say__is_on(enum say_level level);

/*
 * Print a line, printf-style and without its newline, if the level is said. Control
 * characters become '?': names come from elsewhere.
 */
void say__note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say__detail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* HEAPSONDE_SAY_H */
