/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole capture, read from its beginning to its end.
 *
 * In:   the path of a capture (capture.h).
 * Out:  a sink that has been told all of it, or the sampled heap, or both, and what the
 *       capture says of itself.
 */
#ifndef HEAPSONDE_REPLAY_H
#define HEAPSONDE_REPLAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "user/common/error.h"
#include "user/sinks/sink.h"
#include "user/symbolize/symbolize.h"
#include "user/track/heap.h"
#include "user/track/pipeline.h"
#include "user/track/rows.h"

struct replay {
	/* In: */
	const char *path;                        /* "-": standard input */
	struct sink *sink;                       /* borrowed; NULL: none */
	const struct heap_options *heap_options; /* NULL: no heap is wanted. Times in it count from
						  * the header's `time` */
	/* Called now and then, with the bytes read and the file's size (0: unknown). May be NULL */
	void (*progress)(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
	/* Out; owned until replay__deinit: */
	struct symbolizer *symbolizer;
	struct pipeline pipeline;
	struct heap *heap; /* settled; NULL unless wanted */
	json_t *header;    /* docs/records.md; NULL: the capture was cut before */
	json_t *summary;   /* NULL: it was cut */
	json_t *lost;      /* object: by cause, the sums of the loss records, or the summary's */
	uint64_t n_events;
	bool tells_cycles; /* the ends of major cycles, if there were any */
	bool is_cut;       /* it ended within something, or without a summary */
};

/*
 * Read it all. *r: the fields for input set, all else zeroed; to be deinited in any case.
 * Errors, with a text that names the file: those of open(2), capture__read and the sink.
 */
int replay__run(struct replay *r, struct hs_error *err);

/* Can path be read once more, as it can if it is a regular file? */
bool replay__is_repeatable(const char *path);

/* Are promotions and deaths told? For a replay that has been run. */
bool replay__follows(const struct replay *r);

/* Has it what this metric needs? 0, or -ENODATA with a text that says what is missing. */
int replay__can_answer(const struct replay *r, enum rows_metric metric, struct hs_error *err);

void replay__deinit(struct replay *r);

#endif /* HEAPSONDE_REPLAY_H */
