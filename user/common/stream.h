/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Has all that was printed to a stdio stream been written?
 *
 * In:   a stream that was printed to without looking at what each call returned.
 * Out:  the error, if there was one.
 */
#ifndef HEAPSONDE_STREAM_H
#define HEAPSONDE_STREAM_H

#include <stdio.h>

/* Flush f. 0, or the errno, negative, for which something could not be written. */
int stream__flush(FILE *f);

#endif /* HEAPSONDE_STREAM_H */
