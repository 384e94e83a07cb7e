/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The runtime's frame tables: one backtrace slot to source positions.
 *
 * In:   a slot, and the target's memory (proc_mem.h).
 * Out:  the positions that the compiler wrote down for it, as numbers and addresses
 *       of strings, for symbolize.c.
 */
#ifndef HEAPSONDE_FRAMETABLE_H
#define HEAPSONDE_FRAMETABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/symbolize/proc_mem.h"
#include "user/symbolize/symbolize.h"

/* Inlined positions of one slot; what is beyond is cut off. */
#define FRAMETABLE_MAX_INLINED 64

/* One position. The strings are in the target's memory and NUL-terminated. */
struct frame_position {
	uint64_t function_addr;
	uint64_t file_addr;
	uint32_t line;
	uint32_t end_line;
	uint32_t start_char; /* from the start of line */
	uint32_t end_char;   /* from the start of end_line */
	uint32_t end_offset; /* the same place, from the start of line */
};

/* What is known about a slot. */
struct frame_info {
	uint64_t descriptor; /* address of the frame descriptor; 0: there is none */
	size_t n_positions;  /* innermost inlined function first */
	struct frame_position positions[FRAMETABLE_MAX_INLINED];
};

/* The address that a slot points at. */
uint64_t frametable__address(uint64_t slot);

/* Can descriptors be laid out like this? 0 or -EINVAL. */
int frametable__check_layout(const struct frame_layout *layout);

/*
 * Decode a slot. 0: no position is fine, then there is no debug information.
 * -EFAULT: it points at memory that cannot be read. -EBADMSG: that is no frame.
 * What was found before an error is in *info.
 */
int frametable__decode(struct proc_mem *mem, const struct frame_layout *layout, uint64_t slot,
		       struct frame_info *info);

#endif /* HEAPSONDE_FRAMETABLE_H */
