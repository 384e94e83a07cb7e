/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the bytes of a capture go: straight into a stream, or compressed; of raw.c only.
 *
 * In:   bytes.
 * Out:  the same, or zstd frames of them (docs/capture-format.md), in a stdio stream.
 *
 * Compressed, bytes are held back until they are worth writing. What has been put is in the
 * stream at the latest at the first flush BYTE_WRITER_DELAY_MS after it: so much is lost when
 * we are killed. After an error only byte_writer__free may follow; what has been written can
 * be read.
 */
#ifndef HEAPSONDE_BYTE_WRITER_H
#define HEAPSONDE_BYTE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define BYTE_WRITER_DELAY_MS 500

struct byte_writer;

/* f is the writer's from now on, errors included. Errors: -ENOMEM. */
int byte_writer__new(struct byte_writer **out, FILE *f, bool is_compressed);

/* Errors, also of the following two: those of write(2), -ENOMEM. n may be 0, with any bytes. */
int byte_writer__put(struct byte_writer *w, const void *bytes, size_t n);

/* Write what has been put; compressed, only if that is due. */
int byte_writer__flush(struct byte_writer *w);

/* Write all of it: the file is complete, unless more is put. */
int byte_writer__end(struct byte_writer *w);

/* NULL is fine. Closes the stream; ends it before, unless there was an error. */
void byte_writer__free(struct byte_writer *w);

#endif /* HEAPSONDE_BYTE_WRITER_H */
