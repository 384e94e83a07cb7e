/* SPDX-License-Identifier: BSD-2-Clause */
/* See byte_writer.h. */
#include "user/sinks/byte_writer.h"

#include <errno.h>
#include <stdint.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>
#include <zstd_errors.h>

/*
 * Measured on recordings of tests/programs (docs/capture-format.md): 18 to 20 to 1. Level 1 is
 * twice as fast and gives a tenth less, level 9 takes four times as long for a tenth more. A
 * frame is so large that its beginning costs nothing that can be seen.
 */
#define LEVEL 3
#define WINDOW_LOG 20
#define FRAME_BYTES (8u << 20) /* uncompressed */

/* Bytes that are compressed at once: small pieces cost zstd more than copying them does. */
#define STAGE_BYTES (64u << 10)

struct byte_writer {
	FILE *file;
	bool has_failed;
	/* If compressed: */
	ZSTD_CCtx *zstd; /* NULL: it is not */
	char *packed;    /* ZSTD_CStreamOutSize bytes */
	char *stage;
	size_t n_stage;
	size_t n_frame;      /* bytes in the frame that has been begun */
	bool is_held;        /* there are bytes of it that are not in the stream */
	uint64_t flushed_ms; /* when there were none last */
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000u + (uint64_t)ts.tv_nsec / 1000000u;
}

/* errno was 0 before. */
static int fail(struct byte_writer *w)
{
	w->has_failed = true;
	return errno ? -errno : -EIO;
}

static int set_up_zstd(struct byte_writer *w)
{
	w->zstd = ZSTD_createCCtx();
	w->packed = malloc(ZSTD_CStreamOutSize());
	w->stage = malloc(STAGE_BYTES);
	if (!w->zstd || !w->packed || !w->stage)
		return -ENOMEM;
	if (ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_windowLog, WINDOW_LOG)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_checksumFlag, 1)))
		return -ENOTSUP;
	return 0;
}

int byte_writer__new(struct byte_writer **out, FILE *f, bool is_compressed)
{
	struct byte_writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w) {
		fclose(f);
		return -ENOMEM;
	}
	w->file = f;
	err = is_compressed ? set_up_zstd(w) : 0;
	if (err) {
		byte_writer__free(w);
		return err;
	}
	*out = w;
	return 0;
}

/* The count alone does not tell: stdio may have thrown away what was in its buffer. */
static int write_out(struct byte_writer *w, const void *bytes, size_t n)
{
	errno = 0;
	return !n || (fwrite(bytes, 1, n, w->file) == n && !ferror(w->file)) ? 0 : fail(w);
}

static int flush_stream(struct byte_writer *w)
{
	errno = 0;
	return fflush(w->file) || ferror(w->file) ? fail(w) : 0;
}

/* Compress what is staged. how: with e_flush and e_end nothing stays with zstd. */
static int pack(struct byte_writer *w, ZSTD_EndDirective how)
{
	ZSTD_inBuffer in = { w->stage, w->n_stage, 0 };
	size_t left;
	int err;

	do {
		ZSTD_outBuffer out = { w->packed, ZSTD_CStreamOutSize(), 0 };

		left = ZSTD_compressStream2(w->zstd, &out, &in, how);
		if (ZSTD_isError(left)) {
			w->has_failed = true;
			return ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation ? -ENOMEM
										       : -EIO;
		}
		err = write_out(w, w->packed, out.pos);
	} while (!err && (how == ZSTD_e_continue ? in.pos < in.size : left != 0));
	w->n_frame += w->n_stage;
	w->n_stage = 0;
	if (how != ZSTD_e_continue)
		w->is_held = false;
	if (how == ZSTD_e_end)
		w->n_frame = 0;
	return err;
}

static int put_staged(struct byte_writer *w, const char *bytes, size_t n)
{
	int err = 0;

	while (n && !err) {
		size_t take = STAGE_BYTES - w->n_stage;

		if (take > n)
			take = n;
		memcpy(w->stage + w->n_stage, bytes, take);
		w->n_stage += take;
		w->is_held = true;
		bytes += take;
		n -= take;
		if (w->n_stage == STAGE_BYTES)
			err = pack(w, w->n_frame >= FRAME_BYTES ? ZSTD_e_end : ZSTD_e_continue);
	}
	return err;
}

int byte_writer__put(struct byte_writer *w, const void *bytes, size_t n)
{
	return w->zstd ? put_staged(w, bytes, n) : write_out(w, bytes, n);
}

int byte_writer__flush(struct byte_writer *w)
{
	uint64_t now;
	int err;

	if (!w->zstd)
		return flush_stream(w);
	if (!w->is_held)
		return 0;
	now = now_ms();
	/* The first time at once, so that there is a file soon. */
	if (w->flushed_ms && now - w->flushed_ms < BYTE_WRITER_DELAY_MS)
		return 0;
	w->flushed_ms = now;
	err = pack(w, ZSTD_e_flush);
	return err ? err : flush_stream(w);
}

int byte_writer__end(struct byte_writer *w)
{
	int err = 0;

	if (w->zstd && (w->n_stage || w->n_frame))
		err = pack(w, ZSTD_e_end);
	return err ? err : flush_stream(w);
}

void byte_writer__free(struct byte_writer *w)
{
	if (!w)
		return;
	if (w->stage && !w->has_failed)
		byte_writer__end(w);
	ZSTD_freeCCtx(w->zstd);
	free(w->packed);
	free(w->stage);
	if (w->has_failed)
		__fpurge(w->file); /* a piece without what is missing before it */
	fclose(w->file);
	free(w);
}
