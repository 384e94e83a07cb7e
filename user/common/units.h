/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Amounts as people read them.
 *
 * In:   a number.
 * Out:  a short text.
 */
#ifndef HEAPSONDE_UNITS_H
#define HEAPSONDE_UNITS_H

#include <stddef.h>

/* Words, in thousands: "317", "1.2M"; less than none is "0". Returns text. */
const char *units__words(double words, char *text, size_t size);

/* Events per second: "0.25", "8.19", "47.3", then as words: "317", "1.1k". Returns text. */
const char *units__per_second(double events, char *text, size_t size);

/* A rate, samples per word: "2^-20" for a power of two, else six digits. Returns text. */
#define UNITS_RATE_CHARS 32
const char *units__rate(double rate, char text[UNITS_RATE_CHARS]);

#endif /* HEAPSONDE_UNITS_H */
