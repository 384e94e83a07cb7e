/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is in the chunks of a capture; of capture.c only.
 *
 * In:   the payload of a chunk, from anywhere: nothing in it is trusted.
 * Out:  a call of the reader.
 */
#ifndef HEAPSONDE_CAPTURE_CHUNK_H
#define HEAPSONDE_CAPTURE_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#include "user/collect/capture.h"

/*
 * One whole chunk: kind is an enum raw_kind or anything else, payload has n_bytes bytes and
 * is aligned for records. Returns 0, the non-zero return of a callback, -EBADMSG or -ENOMEM.
 */
int capture_chunk__take(const struct capture_reader *r, uint32_t kind, const void *payload,
			size_t n_bytes);

#endif /* HEAPSONDE_CAPTURE_CHUNK_H */
