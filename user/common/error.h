/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How library code reports a failure: a negative errno as the return value and,
 * in a struct hs_error of the caller's, one line for a person that says what is
 * wrong and what to do. Only the command prints it, once.
 */
#ifndef HEAPSONDE_ERROR_H
#define HEAPSONDE_ERROR_H

#include <stdbool.h>

struct hs_error {
	char text[512]; /* one line, without "heapsonde:" and without newline */
};

/*
 * Fill in *err (may be NULL) as printf does and return code, a negative errno,
 * so that a failing function can end in `return hs_error__set(err, -EINVAL, …)`.
 */
int hs_error__set(struct hs_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Is code, a negative errno, about what we lack ourselves (memory, descriptors), so that it says
 * nothing of what was asked for?
 */
bool hs_error__is_shortage(int code);

#endif /* HEAPSONDE_ERROR_H */
