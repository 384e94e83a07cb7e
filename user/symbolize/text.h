/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for what the symbolizer remembers, and strings fit to be shown.
 *
 * In:   bytes from the target or from a capture.
 * Out:  UTF-8 strings without control characters, each stored once, and blocks that
 *       live as long as the pool, for symbolize.c.
 */
#ifndef HEAPSONDE_TEXT_H
#define HEAPSONDE_TEXT_H

#include <stddef.h>

/* Longer strings are cut off, in bytes as they come in. */
#define TEXT_MAX 1024

struct text_pool;

/* NULL: out of memory. */
struct text_pool *text_pool__new(void);

/* NULL is fine. Frees everything that came from the pool. */
void text_pool__free(struct text_pool *p);

/* Bytes taken from the system so far. */
size_t text_pool__bytes(const struct text_pool *p);

/* A block of size bytes, aligned for any object; NULL: out of memory. */
void *text_pool__alloc(struct text_pool *p, size_t size);

/*
 * The string for these bytes (at most TEXT_MAX of them are looked at): what is not
 * UTF-8 and every control character is replaced by U+FFFD. Equal strings have equal
 * addresses. Owned by the pool. NULL: out of memory.
 */
const char *text_pool__intern(struct text_pool *p, const char *bytes, size_t len);

#endif /* HEAPSONDE_TEXT_H */
