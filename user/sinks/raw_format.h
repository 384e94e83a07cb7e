/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures: the layout that user/sinks/raw.c writes and user/collect/capture.c
 * reads. In words, and how it is compressed: docs/capture-format.md.
 *
 * All numbers are little-endian. A file is a struct raw_header and then chunks,
 * each a struct raw_chunk, its payload, and zeros up to a multiple of 8 bytes. A
 * chunk is whole or it is the end of the file.
 */
#ifndef HEAPSONDE_RAW_FORMAT_H
#define HEAPSONDE_RAW_FORMAT_H

#include <linux/types.h>

#define RAW_MAGIC "heapsond"
#define RAW_VERSION 1

/* No chunk that the writer makes is longer; the summary of very many domains is
 * the longest. */
#define RAW_CHUNK_MAX_BYTES (64u << 20)

/* Compressed captures: no frame needs a larger window to be read, as a power of two. */
#define RAW_WINDOW_LOG_MAX 23

struct raw_header {
	char magic[8];         /* RAW_MAGIC, no terminator */
	__u32 version;         /* RAW_VERSION */
	__u32 records_version; /* HS_RECORDS_VERSION of the records inside */
};

enum raw_kind {
	RAW_JSON = 1,   /* a header, profile, loss or summary record, as JSON text */
	RAW_RECORD = 2, /* a record of bpf/records.h as the kernel sent it */
	RAW_FRAME = 3,  /* names of a frame, before the first stack that has it */
};

struct raw_chunk {
	__u32 kind;       /* enum raw_kind */
	__u32 size_bytes; /* of the payload, without padding */
};

/* Payload of RAW_FRAME: this, then n_locations times a struct raw_location with
 * its strings (function, then file), without terminators and without padding. */
struct raw_frame {
	__u64 slot;
	__u32 n_locations;
	__u32 reserved;
};

#define RAW_LOCATION_INLINED 1u
#define RAW_LOCATION_FUNCTION 2u /* has a function name */
#define RAW_LOCATION_FILE 4u     /* has a file name */

struct raw_location {
	__u32 line;
	__u32 end_line;
	__u32 start_char;
	__u32 end_char;
	__u32 end_offset;
	__u32 flags;
	__u32 function_bytes;
	__u32 file_bytes;
};

_Static_assert(sizeof(struct raw_header) == 16, "raw header");
_Static_assert(sizeof(struct raw_chunk) == 8, "raw chunk");
_Static_assert(sizeof(struct raw_frame) == 16, "raw frame");
_Static_assert(sizeof(struct raw_location) == 32, "raw location");

#endif /* HEAPSONDE_RAW_FORMAT_H */
