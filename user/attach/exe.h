/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an executable file is: probed, native or bytecode OCaml, or none of them.
 *
 * In:   an ELF file, by descriptor. Every byte of it is untrusted.
 * Out:  struct exe_info, for user/attach/target.c, which adds what only the
 *       running process can tell.
 *
 * Many processes run the same file, so `heapsonde list` keeps the answers in a
 * struct exe_cache.
 */
#ifndef HEAPSONDE_EXE_H
#define HEAPSONDE_EXE_H

#include <sys/stat.h>

#include "user/attach/target.h"
#include "user/common/error.h"

struct exe_info {
	enum target_kind kind;
	uint64_t entry; /* link-time address of the entry point, for the load bias */
	/* The rest only if kind is TARGET_PROBED. */
	struct probe_set probes;        /* perhaps incomplete: see notes__missing */
	struct sonde_registry registry; /* as the file has it; zeroes if it has none */
};

/*
 * Look at the ELF file open as fd. A file that is not for x86-64 is
 * TARGET_NOT_OCAML, not an error. Errors: -EIO unreadable, -ENOMEM, -EBADMSG an
 * OCaml program whose probe notes are malformed.
 */
int exe__inspect(int fd, struct exe_info *out, struct hs_error *err);

struct exe_cache;

/* *out is owned by the caller. Errors: -ENOMEM. */
int exe_cache__new(struct exe_cache **out);

/* NULL is fine. */
void exe_cache__free(struct exe_cache *cache);

/*
 * As exe__inspect, but each file (by device and inode, from st) only once;
 * errors are remembered like answers. cache NULL: plain exe__inspect.
 */
int exe_cache__inspect(struct exe_cache *cache, int fd, const struct stat *st, struct exe_info *out,
		       struct hs_error *err);

#endif /* HEAPSONDE_EXE_H */
