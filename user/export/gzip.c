/* SPDX-License-Identifier: BSD-2-Clause */
/* See gzip.h. */
#include "user/export/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* zlib: a window of 2^15 bytes, and 16 for gzip's header and trailer. */
#define GZIP_WINDOW (15 + 16)
#define GZIP_MEMORY 8 /* zlib's default */

struct gzip {
	z_stream z;
	FILE *f;
	size_t n_in; /* bytes in `in` */
	unsigned char in[64 << 10];
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

/* Compress what is in `in`; flush as zlib has it. */
static int compress_all(struct gzip *g, int flush)
{
	g->z.next_in = g->in;
	g->z.avail_in = (uInt)g->n_in;
	g->n_in = 0;
	do {
		size_t n;

		g->z.next_out = g->out;
		g->z.avail_out = sizeof(g->out);
		if (deflate(&g->z, flush) == Z_STREAM_ERROR)
			return -EIO;
		n = sizeof(g->out) - g->z.avail_out;
		errno = 0;
		if (fwrite(g->out, 1, n, g->f) != n || ferror(g->f))
			return errno ? -errno : -EIO;
	} while (!g->z.avail_out);
	return 0;
}

int gzip__write(struct gzip *g, const void *bytes, size_t n_bytes)
{
	const unsigned char *at = bytes;

	/* The pieces are small, and zlib wants large ones. */
	while (n_bytes) {
		size_t room = sizeof(g->in) - g->n_in;
		size_t n = n_bytes < room ? n_bytes : room;
		int err;

		memcpy(g->in + g->n_in, at, n);
		g->n_in += n;
		at += n;
		n_bytes -= n;
		if (g->n_in < sizeof(g->in))
			break;
		err = compress_all(g, Z_NO_FLUSH);
		if (err)
			return err;
	}
	return 0;
}

int gzip__finish(struct gzip *g)
{
	return compress_all(g, Z_FINISH);
}

void gzip__free(struct gzip *g)
{
	if (!g)
		return;
	deflateEnd(&g->z);
	free(g);
}
