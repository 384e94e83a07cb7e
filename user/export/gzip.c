/* SPDX-License-Identifier: BSD-2-Clause */
/* See gzip.h. */
#include "user/export/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

/* zlib: a window of 2^15 bytes, and 16 for gzip's header and trailer. */
#define GZIP_WINDOW (15 + 16)
#define GZIP_MEMORY 8 /* zlib's default */

struct gzip {
	z_stream z;
	FILE *f;
	unsigned char out[64 << 10];
};

int gzip__new(struct gzip **out, FILE *f)
{
	struct gzip *g = calloc(1, sizeof(*g));

	if (!g)
		return -ENOMEM;
	if (deflateInit2(&g->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(g);
		return -ENOMEM;
	}
	g->f = f;
	*out = g;
	return 0;
}

/* Compress what is in z.next_in; flush as zlib has it. */
static int compress_all(struct gzip *g, int flush)
{
	do {
		size_t n;

		g->z.next_out = g->out;
		g->z.avail_out = sizeof(g->out);
		if (deflate(&g->z, flush) == Z_STREAM_ERROR)
			return -EIO;
		n = sizeof(g->out) - g->z.avail_out;
		errno = 0;
		if (fwrite(g->out, 1, n, g->f) != n)
			return errno ? -errno : -EIO;
	} while (!g->z.avail_out);
	return 0;
}

int gzip__write(struct gzip *g, const void *bytes, size_t n_bytes)
{
	const unsigned char *at = bytes;

	/* zlib counts in unsigned int. */
	while (n_bytes) {
		size_t n = n_bytes < INT_MAX ? n_bytes : INT_MAX;
		int err;

		g->z.next_in = (unsigned char *)at;
		g->z.avail_in = (unsigned int)n;
		err = compress_all(g, Z_NO_FLUSH);
		if (err)
			return err;
		at += n;
		n_bytes -= n;
	}
	return 0;
}

int gzip__finish(struct gzip *g)
{
	g->z.avail_in = 0;
	return compress_all(g, Z_FINISH);
}

void gzip__free(struct gzip *g)
{
	if (!g)
		return;
	deflateEnd(&g->z);
	free(g);
}
