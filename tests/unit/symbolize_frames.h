/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frame tables made by hand in the test's own memory, for test_symbolize.c.
 *
 * A table is anonymous memory with nothing readable before and after it. Things are put
 * at offsets that the test chooses; slots are addresses in it.
 */
#ifndef SYMBOLIZE_FRAMES_H
#define SYMBOLIZE_FRAMES_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "user/symbolize/symbolize.h"

#define TABLE_BYTES 65536u
/* Distances reach 2 GiB down and 4 GiB up: nothing of ours may be there. */
#define RESERVED_BYTES (UINT64_C(8) << 30)
#define TABLE_AT (UINT64_C(3) << 30)

static const struct frame_layout layout8 = { 8, 8, 10, 12 };
static const struct frame_layout layout4 = { 4, 4, 6, 8 };

/*
 * Around the table is an empty file: /proc/PID/mem reads even what is PROT_NONE, but
 * not beyond the end of a file. NULL: out of memory. bytes: a multiple of the page size.
 */
static uint8_t *table__new(size_t bytes)
{
	int empty = memfd_create("empty", MFD_CLOEXEC);
	uint8_t *r = mmap(NULL, RESERVED_BYTES, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE, empty, 0);

	close(empty);
	if (r == MAP_FAILED || mmap(r + TABLE_AT, bytes, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return NULL;
	return r + TABLE_AT;
}

static void table__free(uint8_t *t)
{
	munmap(t - TABLE_AT, RESERVED_BYTES);
}

static void put(uint8_t *t, size_t at, uint64_t value, size_t bytes)
{
	memcpy(t + at, &value, bytes);
}

/* A descriptor without allocations: returns where its debuginfo offset stands. */
static size_t put_frame(uint8_t *t, size_t at, uint64_t retaddr, uint16_t data, uint16_t n_live)
{
	put(t, at, retaddr, 8);
	put(t, at + 8, data, 2);
	put(t, at + 10, n_live, 2);
	return (at + 12 + 2u * n_live + 3) & ~(size_t)3;
}

static void put_distance(uint8_t *t, size_t at, size_t to)
{
	put(t, at, to - at, 4);
}

/* A debuginfo entry of the short form at `at`, its record at `record`. */
static void put_short(uint8_t *t, size_t at, size_t record, unsigned int flags, uint32_t line,
		      uint32_t start, uint32_t end, uint32_t offset)
{
	put(t, at,
	    (uint64_t)line << 51 | (uint64_t)start << 42 | (uint64_t)end << 35 |
		    (uint64_t)offset << 26 | (record - at) | flags,
	    8);
}

/* A record of the short form: function here, file name at `file`. */
static void put_record(uint8_t *t, size_t at, size_t file, const char *function)
{
	put_distance(t, at, file);
	strcpy((char *)t + at + 4, function);
}

/* The long form, entry and record. */
static void put_long(uint8_t *t, size_t at, size_t record, unsigned int flags, uint32_t line,
		     uint16_t start, int32_t end_offset, size_t file, const char *function)
{
	put(t, at, UINT64_C(1) << 63 | (uint64_t)line << 44 | (record - at) | flags, 8);
	put_distance(t, record, file);
	put(t, record + 4, start, 2);
	put(t, record + 6, 7, 2); /* end on the last line */
	put(t, record + 8, (uint32_t)end_offset, 4);
	strcpy((char *)t + record + 12, function);
}

#endif /* SYMBOLIZE_FRAMES_H */
