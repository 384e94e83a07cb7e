/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a capture back.
 *
 * In:   a file in the layout of user/sinks/raw_format.h, plain or compressed, from
 *       anywhere: nothing in it is trusted.
 * Out:  the same events as when it was recorded, to user/track/pipeline.h.
 */
#ifndef HEAPSONDE_CAPTURE_H
#define HEAPSONDE_CAPTURE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "user/common/error.h"
#include "user/decode/decode.h"
#include "user/symbolize/symbolize.h"

struct capture_reader {
	/* A header, profile, loss, counters or summary record; object is borrowed. */
	int (*json)(void *ctx, json_t *object);
	int (*event)(void *ctx, const struct hs_event *event);
	void *ctx;
	struct symbolizer *symbolizer; /* is taught the frames' names; NULL: not wanted */
	bool is_cut; /* out: the file ended within its header, a chunk or a zstd frame */
};

/*
 * A capture piece by piece, as it comes through a pipe: feed it whatever bytes there are,
 * then end it. reader is borrowed. Errors as capture__read; after one only capture__free
 * may follow.
 */
struct capture;

int capture__new(struct capture **out, struct capture_reader *reader);
int capture__feed(struct capture *c, const void *bytes, size_t n_bytes, struct hs_error *err);

/* No more will come. Sets reader->is_cut. */
int capture__end(struct capture *c, struct hs_error *err);

/* NULL is fine. */
void capture__free(struct capture *c);

/*
 * Read f to its end, or to where it was cut. Memory: that of the longest chunk that is in
 * the file, and some MiB. Returns 0, the first non-zero return
 * of a callback, or -EBADMSG (not a capture, another version, damaged: see err),
 * -EIO, -ENOMEM.
 */
int capture__read(FILE *f, struct capture_reader *reader, struct hs_error *err);

#endif /* HEAPSONDE_CAPTURE_H */
