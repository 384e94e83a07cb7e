/* SPDX-License-Identifier: BSD-2-Clause */
/* See error.h. */
#include "user/common/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int hs_error__set(struct hs_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	/* A name out of /proc may hold a newline; a message is one line. */
	for (char *p = err->text; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = '?';
	return code;
}

bool hs_error__is_shortage(int code)
{
	return code == -ENOMEM || code == -EMFILE || code == -ENFILE || code == -EAGAIN;
}
