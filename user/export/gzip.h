/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gzip file, written piece by piece.
 *
 * In:   bytes.
 * Out:  the compressed file, the same for the same bytes (it holds no time and no name).
 */
#ifndef HEAPSONDE_GZIP_H
#define HEAPSONDE_GZIP_H

#include <stddef.h>
#include <stdio.h>

struct gzip;

/* f is borrowed. Errors: -ENOMEM. */
int gzip__new(struct gzip **out, FILE *f);

/* Errors: those of write(2). After one, only gzip__free may follow. */
int gzip__write(struct gzip *g, const void *bytes, size_t n_bytes);

/* The end of the file. Errors as gzip__write. */
int gzip__finish(struct gzip *g);

/* NULL is fine. */
void gzip__free(struct gzip *g);

#endif /* HEAPSONDE_GZIP_H */
