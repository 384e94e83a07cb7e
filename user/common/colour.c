/* SPDX-License-Identifier: BSD-2-Clause */
/* See colour.h. */
#include "user/common/colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool colour__allowed(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (no_color && *no_color)
		return false;
	return term && *term && strcmp(term, "dumb") != 0;
}

bool colour__wanted(FILE *f)
{
	return colour__allowed() && isatty(fileno(f)) == 1;
}
