/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands in for the push parser until capture.c has it (then delete this file): keeps all
 * bytes until the end.
 *
 * In:   bytes.
 * Out:  what capture__read makes of them.
 */
#include <errno.h>
#include <stdlib.h>

#include "user/collect/capture.h"

struct capture {
	struct capture_reader *reader;
	char *bytes;
	size_t size;
	FILE *file;
};

int capture__new(struct capture **out, struct capture_reader *reader)
{
	struct capture *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->reader = reader;
	c->file = open_memstream(&c->bytes, &c->size);
	*out = c;
	return 0;
}

int capture__feed(struct capture *c, const void *bytes, size_t n_bytes, struct hs_error *err)
{
	(void)err;
	return fwrite(bytes, 1, n_bytes, c->file) == n_bytes ? 0 : -ENOMEM;
}

int capture__end(struct capture *c, struct hs_error *err)
{
	FILE *f;
	int ret;

	fflush(c->file);
	f = fmemopen(c->bytes, c->size, "r");
	ret = capture__read(f, c->reader, err);
	fclose(f);
	return ret;
}

void capture__free(struct capture *c)
{
	if (!c)
		return;
	fclose(c->file);
	free(c->bytes);
	free(c);
}
