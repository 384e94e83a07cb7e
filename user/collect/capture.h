/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a raw capture back.
 *
 * In:   a file in the layout of user/sinks/raw_format.h, from anywhere: nothing
 *       in it is trusted.
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
	/* A header, profile, loss or summary record; object is borrowed. */
	int (*json)(void *ctx, json_t *object);
	int (*event)(void *ctx, const struct hs_event *event);
	void *ctx;
	struct symbolizer *symbolizer; /* is taught the frames' names */
	bool is_cut;                   /* out: the file ended within a chunk */
};

/*
 * Read f to its end, or to where it was cut. Returns 0, the first non-zero return
 * of a callback, or -EBADMSG (not a capture, another version, damaged: see err),
 * -EIO, -ENOMEM.
 */
int capture__read(FILE *f, struct capture_reader *reader, struct hs_error *err);

#endif /* HEAPSONDE_CAPTURE_H */
