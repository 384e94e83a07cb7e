/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON that stands within a page's <script>.
 *
 * In:   text of any origin, json_t, numbers.
 * Out:  JSON on a stream, ASCII only and without `<`, so that nothing in it can end the
 *       element. What goes wrong with the stream is left to ferror.
 */
#ifndef HEAPSONDE_HTML_JSON_H
#define HEAPSONDE_HTML_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* object: borrowed; NULL is written as null. Errors: -ENOMEM. */
int html_json__put(FILE *f, const json_t *object);

/* A string; bytes that are not UTF-8 become U+FFFD. NULL: null. Errors: -ENOMEM. */
int html_json__text(FILE *f, const char *text);

/* At most so many significant digits, as few as will do. What is not finite is 0. */
void html_json__number(FILE *f, double x, int digits);

/*
 * ,"name":[…]: one double out of each of n structs of `size` bytes; `first` is that of
 * the first struct.
 */
void html_json__column(FILE *f, const char *name, const double *first, size_t size, size_t n,
		       int digits);

#endif /* HEAPSONDE_HTML_JSON_H */
