/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a row of `heapsonde top` is called.
 *
 * In:   a row of user/track/rows.h.
 * Out:  a line of text, whole or cut so that rows can still be told apart.
 */
#ifndef HEAPSONDE_LABEL_H
#define HEAPSONDE_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "user/track/rows.h"

/* by: ROWS_BY_SITE or ROWS_BY_STACK. "Mod.f  file.ml:12", of a stack also " < Caller.g < …". */
const char *label__whole(const struct row *r, enum rows_by by, char *text, size_t size);

/*
 * The same in so many columns of a screen. Where a site does not fit its middle is left out,
 * and the line stays: "CamlinternalFormat.m…:1693". Of a stack the first file is left out
 * before a caller is: "Mod.f:12 < Caller.g". What is longer even so is cut by the canvas.
 */
const char *label__fitted(const struct row *r, enum rows_by by, int cols, bool is_utf8, char *text,
			  size_t size);

#endif /* HEAPSONDE_LABEL_H */
