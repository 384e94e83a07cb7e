/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the bytes of a file to the chunks of a capture; see capture.h.
 *
 * In:   bytes, in pieces of any size: plain, or zstd frames.
 * Out:  whole chunks, to capture_chunk.c.
 */
#include "user/collect/capture.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "user/collect/capture_chunk.h"
#include "user/sinks/raw_format.h"

#define READ_BYTES (256u << 10)
#define MAGIC_BYTES 4u /* tell zstd from plain */

static const char zstd_magic[MAGIC_BYTES] = { 0x28, (char)0xb5, 0x2f, (char)0xfd };

struct capture {
	struct capture_reader *reader; /* borrowed */
	/* What kind of file it is. */
	char magic[MAGIC_BYTES];
	size_t n_magic;
	uint64_t n_fed; /* bytes of the file before this feed */
	/* If compressed: */
	ZSTD_DStream *zstd; /* NULL: it is not */
	char *unpacked;     /* ZSTD_DStreamOutSize bytes */
	bool is_in_frame;   /* more of a frame must come */
	/* The stream that is in the file, from the header on. */
	bool has_header;
	uint64_t n_done; /* bytes of whole chunks, the header included */
	char *pending;   /* the beginning of the next one */
	size_t n_pending, room;
};

int capture__new(struct capture **out, struct capture_reader *reader)
{
	struct capture *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->reader = reader;
	reader->is_cut = false;
	*out = c;
	return 0;
}

void capture__free(struct capture *c)
{
	if (!c)
		return;
	ZSTD_freeDStream(c->zstd);
	free(c->unpacked);
	free(c->pending);
	free(c);
}

/* ---- errors ---- */

static int not_a_capture(struct hs_error *err)
{
	return hs_error__set(err, -EBADMSG, "not a capture (record -o FILE.hsd makes one)");
}

static int no_memory(struct hs_error *err)
{
	return hs_error__set(err, -ENOMEM, "out of memory");
}

/* The chunk that begins at n_done. */
static int damaged_chunk(const struct capture *c, struct hs_error *err)
{
	return hs_error__set(err, -EBADMSG, "the capture is damaged at byte %llu%s",
			     (unsigned long long)c->n_done,
			     c->zstd ? " of what it unpacks to" : "");
}

static int damaged_frame(size_t code, uint64_t at, struct hs_error *err)
{
	switch (ZSTD_getErrorCode(code)) {
	case ZSTD_error_memory_allocation:
		return no_memory(err);
	case ZSTD_error_frameParameter_windowTooLarge:
		return hs_error__set(err, -EBADMSG,
				     "compressed with a window of more than %u MiB, which captures "
				     "never are: see docs/capture-format.md",
				     1u << (RAW_WINDOW_LOG_MAX - 20));
	default:
		return hs_error__set(err, -EBADMSG, "the capture is damaged before byte %llu: %s",
				     (unsigned long long)at, ZSTD_getErrorName(code));
	}
}

/* ---- the stream ---- */

static int take_header(struct capture *c, const char *bytes, struct hs_error *err)
{
	struct raw_header h;

	memcpy(&h, bytes, sizeof(h));
	if (memcmp(h.magic, RAW_MAGIC, sizeof(h.magic)))
		return not_a_capture(err);
	/* Each version of the records has one type more than the one before. */
	if (h.version != RAW_VERSION || h.records_version < 1 ||
	    h.records_version > HS_RECORDS_VERSION)
		return hs_error__set(err, -EBADMSG,
				     "a capture of version %u/%u, and this heapsonde reads %u/%u",
				     h.version, h.records_version, RAW_VERSION, HS_RECORDS_VERSION);
	c->has_header = true;
	return 0;
}

/* Bytes of the chunk of which n are at `bytes`, as far as one can say; 0: it is damaged. */
static size_t chunk_bytes(const char *bytes, size_t n)
{
	struct raw_chunk chunk;

	if (n < sizeof(chunk))
		return sizeof(chunk);
	memcpy(&chunk, bytes, sizeof(chunk));
	if (chunk.size_bytes == 0 || chunk.size_bytes > RAW_CHUNK_MAX_BYTES)
		return 0;
	return sizeof(chunk) + (((size_t)chunk.size_bytes + 7) & ~(size_t)7);
}

/* A whole chunk, aligned for records, or the header. */
static int take_piece(struct capture *c, const char *bytes, size_t n, struct hs_error *err)
{
	struct raw_chunk chunk;
	int ret;

	if (!c->has_header) {
		ret = take_header(c, bytes, err);
	} else {
		memcpy(&chunk, bytes, sizeof(chunk));
		ret = capture_chunk__take(c->reader, chunk.kind, bytes + sizeof(chunk),
					  chunk.size_bytes);
		if (ret == -EBADMSG)
			damaged_chunk(c, err);
		if (ret == -ENOMEM)
			no_memory(err);
	}
	if (!ret)
		c->n_done += n;
	return ret;
}

/* Chunks that are whole where they are, which spares copying them. Sets *n_taken. */
static int take_in_place(struct capture *c, const char *bytes, size_t n, size_t *n_taken,
			 struct hs_error *err)
{
	size_t at = 0;
	int ret = 0;

	while (!ret && n - at >= sizeof(struct raw_chunk)) {
		size_t size = chunk_bytes(bytes + at, n - at);

		if (!size)
			return damaged_chunk(c, err);
		if (size > n - at)
			break;
		ret = take_piece(c, bytes + at, size, err);
		at += size;
	}
	*n_taken = at;
	return ret;
}

/* As much memory as has come, not as much as is announced. */
static int reserve(struct capture *c, size_t n)
{
	size_t room = c->room ? c->room : 4096;
	char *grown;

	if (n <= c->room)
		return 0;
	while (room < n)
		room *= 2;
	grown = realloc(c->pending, room);
	if (!grown)
		return -ENOMEM;
	c->pending = grown;
	c->room = room;
	return 0;
}

/* Add to what is pending, and take it when it is whole. Sets *n_taken. */
static int take_pending(struct capture *c, const char *bytes, size_t n, size_t *n_taken,
			struct hs_error *err)
{
	size_t want = sizeof(struct raw_header);

	if (c->has_header)
		want = chunk_bytes(c->pending, c->n_pending);
	if (!want)
		return damaged_chunk(c, err);
	*n_taken = want - c->n_pending < n ? want - c->n_pending : n;
	if (reserve(c, c->n_pending + *n_taken))
		return no_memory(err);
	memcpy(c->pending + c->n_pending, bytes, *n_taken);
	c->n_pending += *n_taken;
	if (c->has_header)
		want = chunk_bytes(c->pending, c->n_pending);
	if (!want)
		return damaged_chunk(c, err);
	if (c->n_pending != want)
		return 0;
	c->n_pending = 0;
	return take_piece(c, c->pending, want, err);
}

static int take_stream(struct capture *c, const char *bytes, size_t n, struct hs_error *err)
{
	int ret = 0;

	while (n && !ret) {
		size_t n_taken = 0;

		if (c->has_header && !c->n_pending && !((uintptr_t)bytes & 7))
			ret = take_in_place(c, bytes, n, &n_taken, err);
		if (!ret && !n_taken)
			ret = take_pending(c, bytes, n, &n_taken, err);
		bytes += n_taken;
		n -= n_taken;
	}
	return ret;
}

/* ---- the file ---- */

static int begin_frames(struct capture *c, struct hs_error *err)
{
	c->zstd = ZSTD_createDStream();
	c->unpacked = malloc(ZSTD_DStreamOutSize());
	if (!c->zstd || !c->unpacked)
		return no_memory(err);
	ZSTD_DCtx_setParameter(c->zstd, ZSTD_d_windowLogMax, RAW_WINDOW_LOG_MAX);
	return 0;
}

static int take_frames(struct capture *c, const char *bytes, size_t n, uint64_t at,
		       struct hs_error *err)
{
	ZSTD_inBuffer in = { bytes, n, 0 };
	ZSTD_outBuffer out;
	int ret = 0;

	do {
		size_t left;

		out = (ZSTD_outBuffer){ c->unpacked, ZSTD_DStreamOutSize(), 0 };
		left = ZSTD_decompressStream(c->zstd, &out, &in);
		if (ZSTD_isError(left))
			return damaged_frame(left, at + in.pos, err);
		c->is_in_frame = left != 0;
		ret = take_stream(c, c->unpacked, out.pos, err);
		/* Once more without input if there may be output that found no room. */
	} while (!ret && (in.pos < in.size || (c->is_in_frame && out.pos == out.size)));
	return ret;
}

static int take_file(struct capture *c, const char *bytes, size_t n, uint64_t at,
		     struct hs_error *err)
{
	return c->zstd ? take_frames(c, bytes, n, at, err) : take_stream(c, bytes, n, err);
}

/* Is what has come the beginning of a capture? */
static bool is_magic(const struct capture *c)
{
	return !memcmp(c->magic, zstd_magic, c->n_magic) ||
	       !memcmp(c->magic, RAW_MAGIC, c->n_magic);
}

/* Collect the first bytes, and begin when they are there. Sets *n_taken. */
static int take_magic(struct capture *c, const char *bytes, size_t n, size_t *n_taken,
		      struct hs_error *err)
{
	int ret = 0;

	*n_taken = MAGIC_BYTES - c->n_magic < n ? MAGIC_BYTES - c->n_magic : n;
	memcpy(c->magic + c->n_magic, bytes, *n_taken);
	c->n_magic += *n_taken;
	if (!is_magic(c))
		return not_a_capture(err);
	if (c->n_magic < MAGIC_BYTES)
		return 0;
	if (!memcmp(c->magic, zstd_magic, MAGIC_BYTES))
		ret = begin_frames(c, err);
	return ret ? ret : take_file(c, c->magic, MAGIC_BYTES, 0, err);
}

int capture__feed(struct capture *c, const void *bytes, size_t n_bytes, struct hs_error *err)
{
	size_t n_taken = 0;
	int ret = 0;

	if (c->n_magic < MAGIC_BYTES && n_bytes)
		ret = take_magic(c, bytes, n_bytes, &n_taken, err);
	if (!ret && n_taken < n_bytes)
		ret = take_file(c, (const char *)bytes + n_taken, n_bytes - n_taken,
				c->n_fed + n_taken, err);
	c->n_fed += n_bytes;
	return ret;
}

int capture__end(struct capture *c, struct hs_error *err)
{
	if (!c->n_fed)
		return hs_error__set(err, -EBADMSG, "empty, not a capture");
	if (!c->has_header && c->n_pending &&
	    memcmp(c->pending, RAW_MAGIC, c->n_pending < 8 ? c->n_pending : 8))
		return not_a_capture(err);
	c->reader->is_cut = !c->has_header || c->n_pending || c->is_in_frame;
	return 0;
}

int capture__read(FILE *f, struct capture_reader *reader, struct hs_error *err)
{
	char *buffer = malloc(READ_BYTES);
	struct capture *c = NULL;
	int ret = capture__new(&c, reader);
	size_t n;

	if (!buffer || ret)
		ret = no_memory(err);
	while (!ret && (n = fread(buffer, 1, READ_BYTES, f)) > 0)
		ret = capture__feed(c, buffer, n, err);
	if (!ret && ferror(f))
		ret = hs_error__set(err, -EIO, "cannot read the capture");
	if (!ret)
		ret = capture__end(c, err);
	capture__free(c);
	free(buffer);
	return ret;
}
