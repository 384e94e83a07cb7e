/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See ocaml_name.h. The forms:
 *
 *	camlModule.function_123       5.1 and later
 *	camlModule__function_123      earlier, and systems without '.' in symbols
 *
 * Other than letters, digits and '_', a byte is written as '$' and two hex digits.
 * The module is the compilation unit; "Lib__Unit" stays so, as in Printexc's names.
 */
#include "user/symbolize/ocaml_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The length of body[0..len) without the stamp, "_123" or "_123_code". */
static size_t without_stamp(const char *body, size_t len)
{
	size_t n = len;

	if (n > 5 && memcmp(body + n - 5, "_code", 5) == 0)
		n -= 5;
	size_t digits = n;
	while (digits > 0 && is_digit(body[digits - 1]))
		digits--;
	if (digits < n && digits > 1 && body[digits - 1] == '_' && body[digits - 2] != '.')
		return digits - 1;
	return len;
}

/* Where the old separator is: the first "__" that no module name follows. */
static const char *old_separator(const char *body)
{
	for (const char *p = body; (p = strstr(p, "__")); p++)
		if (p > body && p[2] && !is_upper(p[2]) && p[2] != '_')
			return p;
	return NULL;
}

void ocaml_name__demangle(const char *symbol, char *out, size_t cap)
{
	const char *body = strncmp(symbol, "caml", 4) == 0 ? symbol + 4 : "";
	const char *sep = NULL; /* NULL: '.' separates already */
	size_t len, n = 0;

	if ((!is_upper(*body) && *body != '$') ||
	    (!strchr(body, '.') && !(sep = old_separator(body)))) {
		snprintf(out, cap, "%s", symbol);
		return;
	}
	len = without_stamp(body, strlen(body));
	for (size_t i = 0; i < len && n < cap - 1; i++) {
		char c = body[i];

		if (body + i == sep) {
			c = '.';
			i++;
		} else if (c == '$' && i + 2 < len) {
			int hi = hex_value(body[i + 1]), lo = hex_value(body[i + 2]);

			if (hi >= 0 && lo >= 0 && (hi || lo)) {
				c = (char)(hi * 16 + lo);
				i += 2;
			}
		}
		out[n++] = c;
	}
	out[n] = '\0';
}
