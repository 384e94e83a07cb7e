/* SPDX-License-Identifier: BSD-2-Clause */
/* See stream.h. */
#include "user/common/stream.h"

#include <errno.h>

int stream__flush(FILE *f)
{
	errno = 0;
	if (!fflush(f) && !ferror(f))
		return 0;
	if (errno)
		return -errno;
	/* A call before this one has failed, and stdio only remembers that. What is in the file is
	 * not whole anyway, so another byte does no harm, and tells why. */
	clearerr(f);
	putc('\n', f);
	fflush(f);
	return errno ? -errno : -EIO;
}
