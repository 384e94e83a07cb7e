/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See frametable.h. The format, of OCaml 5.3 and 5.4; all numbers little-endian.
 *
 * A frame descriptor is a return address (8 bytes, or 4 relative to itself), 16 bits
 * of frame size and flags, 16 bits that count the live slots, and 16 bits for each of
 * these. If it belongs to a call of the allocator, a byte counts the allocations, and
 * a byte for each follows. If it has debug information, then, aligned to 32 bits, an
 * offset for each allocation (0: this one has none), otherwise one: the distance from
 * the offset itself to a debuginfo entry.
 *
 * A debuginfo entry is 64 bits. It describes the innermost position; while bit 0 is
 * set, an entry that describes the position it was inlined into follows.
 *
 *	bit 63 clear: | line 12 | more lines 3 | start 6 | end 7 | offset 9 | name 24 | flags 2 |
 *	bit 63 set:   | line 19 | more lines 18 | name 24 | flags 2 |
 *
 * "name", times 4, is the distance from the entry to a record of a 32-bit distance
 * from the record to the file name, in the second form also of 16 bits start, 16 bits
 * end and 32 bits end offset, and then the function name.
 *
 * The end is counted from the start of the line on which the range ends; end plus
 * offset (first form) or end offset (second form) is the same place counted from the
 * start of the first line. Printexc.Slot.location has the latter, and so have we.
 */
#include "user/symbolize/frametable.h"

#include <errno.h>

#define SLOT_IS_DEBUGINFO 2u
#define FLAG_DEBUG 1u
#define FLAG_ALLOC 2u
#define RETURN_TO_C 0xFFFFu
#define MAX_HEAD_BYTES 64u
#define MAX_ALLOCS 255u

uint64_t frametable__address(uint64_t slot)
{
	return slot & ~(uint64_t)3;
}

static bool fits(uint16_t offset, const struct frame_layout *l)
{
	return offset >= l->retaddr_bytes && offset + sizeof(uint16_t) <= MAX_HEAD_BYTES;
}

int frametable__check_layout(const struct frame_layout *l)
{
	if ((l->retaddr_bytes != 4 && l->retaddr_bytes != 8) || !fits(l->frame_data, l) ||
	    !fits(l->num_live, l) || !fits(l->live_ofs, l))
		return -EINVAL;
	return 0;
}

static int read_u16(struct proc_mem *mem, uint64_t addr, uint16_t *v)
{
	return proc_mem__read(mem, addr, v, sizeof(*v));
}

/*
 * The first allocation that has debug information speaks for the frame. Sets *at to
 * the address of its offset and *offset to that; 0: none has.
 */
static int first_offset(struct proc_mem *mem, uint64_t addr, size_t n, uint64_t *at,
			uint32_t *offset)
{
	uint32_t offsets[MAX_ALLOCS];
	int err = proc_mem__read(mem, addr, offsets, n * sizeof(*offsets));

	if (err)
		return err;
	*offset = 0;
	for (size_t i = 0; i < n; i++) {
		if (offsets[i]) {
			*offset = offsets[i];
			*at = addr + i * sizeof(*offsets);
			break;
		}
	}
	return 0;
}

/* From the frame descriptor at addr to its debuginfo entry; *entry 0: it has none. */
static int find_debuginfo(struct proc_mem *mem, const struct frame_layout *layout, uint64_t addr,
			  uint64_t *entry)
{
	uint16_t frame_data, num_live;
	uint64_t p, at = 0;
	uint32_t offset;
	size_t n = 1;
	int err;

	*entry = 0;
	err = read_u16(mem, addr + layout->frame_data, &frame_data);
	if (!err)
		err = read_u16(mem, addr + layout->num_live, &num_live);
	if (err)
		return err;
	if (frame_data == RETURN_TO_C)
		return -EBADMSG;
	if (!(frame_data & FLAG_DEBUG))
		return 0;
	p = addr + layout->live_ofs + (uint64_t)num_live * sizeof(uint16_t);
	if (frame_data & FLAG_ALLOC) {
		uint8_t n_allocs;

		err = proc_mem__read(mem, p, &n_allocs, sizeof(n_allocs));
		if (err)
			return err;
		n = n_allocs;
		p += 1 + n;
	}
	p = (p + 3) & ~(uint64_t)3;
	err = first_offset(mem, p, n, &at, &offset);
	if (err)
		return err;
	if (offset % 4)
		return -EBADMSG;
	*entry = offset ? at + offset : 0;
	return 0;
}

static uint64_t bits(uint64_t word, unsigned int from, unsigned int n)
{
	return word >> from & ((UINT64_C(1) << n) - 1);
}

/* The record that the second form of an entry points to. */
struct long_record {
	int32_t file;
	uint16_t start, end;
	int32_t end_offset;
};

static int decode_entry(struct proc_mem *mem, uint64_t addr, uint64_t word,
			struct frame_position *pos)
{
	uint64_t record = addr + bits(word, 2, 24) * 4;
	struct long_record r;
	int err;

	if (word >> 63) {
		err = proc_mem__read(mem, record, &r, sizeof(r));
		if (err)
			return err;
		pos->line = (uint32_t)bits(word, 44, 19);
		pos->end_line = pos->line + (uint32_t)bits(word, 26, 18);
		pos->start_char = r.start;
		pos->end_char = r.end;
		pos->end_offset = r.end_offset < 0 ? 0 : (uint32_t)r.end_offset;
		pos->function_addr = record + sizeof(r);
	} else {
		err = proc_mem__read(mem, record, &r.file, sizeof(r.file));
		if (err)
			return err;
		pos->line = (uint32_t)bits(word, 51, 12);
		pos->end_line = pos->line + (uint32_t)bits(word, 48, 3);
		pos->start_char = (uint32_t)bits(word, 42, 6);
		pos->end_char = (uint32_t)bits(word, 35, 7);
		pos->end_offset = pos->end_char + (uint32_t)bits(word, 26, 9);
		pos->function_addr = record + sizeof(r.file);
	}
	pos->file_addr = record + (uint64_t)(int64_t)r.file;
	return 0;
}

int frametable__decode(struct proc_mem *mem, const struct frame_layout *layout, uint64_t slot,
		       struct frame_info *info)
{
	uint64_t addr = frametable__address(slot);
	int err;

	info->descriptor = 0;
	info->n_positions = 0;
	if (!addr || slot & 1 || addr > INT64_MAX)
		return -EBADMSG;
	if (!(slot & SLOT_IS_DEBUGINFO)) {
		uint64_t entry;

		err = find_debuginfo(mem, layout, addr, &entry);
		if (err != -EBADMSG)
			info->descriptor = addr;
		if (err || !entry)
			return err;
		addr = entry;
	}
	while (info->n_positions < FRAMETABLE_MAX_INLINED) {
		uint64_t word;

		err = proc_mem__read(mem, addr, &word, sizeof(word));
		if (!err)
			err = decode_entry(mem, addr, word, &info->positions[info->n_positions]);
		if (err)
			return err;
		info->n_positions++;
		if (!(word & 1))
			break;
		addr += sizeof(word);
	}
	return 0;
}
