/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `heapsonde top` without a full screen: the same as text, again and again.
 *
 * In:   what the picture is made of (screen.h).
 * Out:  a block of lines on standard output, flushed.
 */
#ifndef HEAPSONDE_PLAIN_H
#define HEAPSONDE_PLAIN_H

#include "user/common/error.h"
#include "user/top/screen.h"

/*
 * Print the header with the time, and the first n_rows rows. Errors: -EPIPE and others
 * of write(2), -ENOMEM, with a text.
 */
int plain__print(const struct screen *s, int n_rows, bool is_utf8, struct hs_error *err);

#endif /* HEAPSONDE_PLAIN_H */
