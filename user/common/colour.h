/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether to use colour.
 *
 * In:   a stream; $NO_COLOR, $TERM.
 * Out:  yes or no.
 */
#ifndef HEAPSONDE_COLOUR_H
#define HEAPSONDE_COLOUR_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Does the user want colour? $NO_COLOR says no if it is set and not empty, as
 * no-color.org has it; so does a terminal that knows none ($TERM unset, empty or "dumb").
 * For a program that knows that it has a terminal, as a full-screen one does.
 */
bool colour__allowed(void);

/* As colour__allowed, and the stream is a terminal. */
bool colour__wanted(FILE *f);

#endif /* HEAPSONDE_COLOUR_H */
