/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From backtrace slots to names.
 *
 * In:   a slot as the runtime captured it: the address of a frame descriptor, or
 *       of a debuginfo entry with tag 2, in the target's address space; the
 *       target's /proc/PID/maps, memory and the ELF files behind them.
 * Out:  source locations, innermost inlined function first, for user/sinks and
 *       user/track.
 *
 * Frame tables hold relative references only (but for the return address), so
 * they can be read from the ELF file as well as from memory: names survive the
 * target. Files are opened through /proc/PID/map_files when the mapping is first
 * seen, so deleted and replaced binaries work too. All of it is untrusted input:
 * every read is bounded, every string has a maximum length, every chain of
 * inlined entries a maximum number.
 *
 * The addresses are the target's to choose, and what is found there is shown to
 * its owner. So nothing is read but the address space that the target had when it
 * was opened and the files that are mapped there (proc_maps.h): nothing of what the
 * process executes afterwards, nor of a later process with its PID.
 */
#ifndef HEAPSONDE_SYMBOLIZE_H
#define HEAPSONDE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/attach/target.h"
#include "user/common/error.h"

/* Layout of the runtime's frame descriptors; see struct sonde_registry. */
struct frame_layout {
	uint16_t retaddr_bytes;
	uint16_t frame_data;
	uint16_t num_live;
	uint16_t live_ofs;
};

/* One source position. Strings are UTF-8-clean and owned by the symbolizer. */
struct hs_location {
	const char *function; /* as OCaml names it ("Mod.f"), or a symbol, or NULL */
	const char *file;     /* NULL: no debug information */
	uint32_t line;        /* 1-based; 0: unknown */
	uint32_t end_line;
	uint32_t start_char; /* "characters start-end" as Printexc prints them: from the */
	uint32_t end_char;   /* start of line, and from the start of end_line */
	uint32_t end_offset; /* the end counted from the start of line */
	bool is_inlined;     /* was inlined into the next location */
};

struct symbolizer;

/*
 * A symbolizer for a target, which must be TARGET_PROBED. It keeps descriptors of its
 * own: neither the process nor *t need exist later. *out is owned by the caller. Reads
 * the mappings at once and again when an address lies in no known one (Dynlink).
 * Errors: -ESRCH ended or executed something, -EACCES its memory may not be read,
 * -EMFILE, -ENOMEM, -EINVAL the registry's frame layout is unknown.
 */
int symbolizer__new(struct symbolizer **out, const struct target *t, struct hs_error *err);

/* NULL is fine. */
void symbolizer__free(struct symbolizer *s);

/* The one location of a slot of which nothing is known; static. */
const struct hs_location *symbolizer__unknown(void);

/*
 * Resolve one slot. Sets *locs to an array owned by s, valid until s is freed
 * (results are cached by slot), and returns its length, at least 1: a slot about
 * which nothing is known gives one location with all fields NULL or 0.
 * Errors: -ENOMEM.
 */
int symbolizer__resolve(struct symbolizer *s, uint64_t slot, const struct hs_location **locs);

/*
 * Add a result by hand (when replaying a capture): locs is copied. After this,
 * symbolizer__resolve(slot) returns the copy. Errors: -ENOMEM, -EINVAL.
 */
int symbolizer__learn(struct symbolizer *s, uint64_t slot, const struct hs_location *locs,
		      size_t n_locs);

/* A symbolizer that knows only what it is taught. Errors: -ENOMEM. */
int symbolizer__new_empty(struct symbolizer **out);

/* A mapping of an executable file, for those who look at addresses with other tools. */
struct symbolizer_mapping {
	uint64_t start, end, offset; /* bytes; as in /proc/PID/maps */
	const char *file;            /* as the kernel prints it: any bytes. NULL: unknown */
	const uint8_t *build_id;
	size_t n_build_id; /* bytes; 0: it has none */
};

/*
 * Call each(ctx, …) for the executable mappings that are known, by address, at most `max`.
 * What it gets is borrowed for the call. Returns 0 or the first non-zero return of each.
 */
int symbolizer__mappings(const struct symbolizer *s, size_t max,
			 int (*each)(void *ctx, const struct symbolizer_mapping *m), void *ctx);

#endif /* HEAPSONDE_SYMBOLIZE_H */
