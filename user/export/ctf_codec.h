/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a memtrace stream makes locations and call stacks short.
 *
 * In:   locations with their codes, and stacks of codes (ctf_stacks.h).
 * Out:  the bytes of the format: names as places in tables of the 31 last used, frames as
 *       places in a table of 2^14 with a guess of which frame follows which.
 *
 * A reader keeps the same tables, from the bytes that it reads. All that the writer must be
 * sure of is that what it refers to stands there; which place it takes for what is its own
 * affair. So the tables may be forgotten at any time (ctf_*__forget), as long as nothing is
 * referred to that was put before.
 */
#ifndef HEAPSONDE_CTF_CODEC_H
#define HEAPSONDE_CTF_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "user/export/ctf_bytes.h"
#include "user/export/ctf_stacks.h"

/* ---- locations ---- */

#define CTF_NAMES 31

struct ctf_name {
	const char *text; /* not terminated where it was cut; borrowed */
	size_t n_bytes;
};

struct ctf_file {
	struct ctf_name name;
	uint8_t functions; /* which of the tables of functions */
};

/* The names used last; zeroed is empty. */
struct ctf_names {
	uint8_t n_files;
	struct ctf_file files[CTF_NAMES];
	struct {
		uint8_t n;
		struct ctf_name names[CTF_NAMES];
	} functions[CTF_NAMES];
};

/* The most that ctf_names__put puts. */
#define CTF_LOCATION_BYTES 16384

/*
 * Put the body of a location event: the code and n (1 to 255) positions, given innermost
 * first. Names that would make it longer than CTF_LOCATION_BYTES are cut.
 */
void ctf_names__put(struct ctf_names *t, struct ctf_bytes *b, uint64_t code,
		    const struct hs_location *locations, size_t n);

/* ---- call stacks ---- */

#define CTF_CACHE 16384
#define CTF_UNKNOWN UINT16_MAX

struct ctf_frames {
	uint32_t code[CTF_CACHE]; /* 0: none that we know of */
	uint32_t date[CTF_CACHE]; /* of its last use, in stacks */
	uint16_t next[CTF_CACHE]; /* the place of what came after it; CTF_UNKNOWN */
	uint32_t clock;
	uint16_t verify; /* the place that the next packet's header lets readers check */
	bool is_partial; /* forgotten since: readers know more than we */
	const struct ctf_stack *last;
};

void ctf_frames__init(struct ctf_frames *f);
void ctf_frames__forget(struct ctf_frames *f);

/* How many of a stack's outer frames need not be put again. */
uint32_t ctf_frames__common(const struct ctf_frames *f, const struct ctf_stack *stack);

/* The most that a frame takes. */
#define CTF_FRAME_BYTES 10

/*
 * Put the codewords of the frames from `common` on. Returns how many codewords.
 */
uint32_t ctf_frames__put(struct ctf_frames *f, struct ctf_bytes *b, const struct ctf_stack *stack,
			 uint32_t common);

/* Put the 12 bytes of a packet's header that let readers check their table. */
void ctf_frames__put_verifier(struct ctf_frames *f, struct ctf_bytes *b);

#endif /* HEAPSONDE_CTF_CODEC_H */
