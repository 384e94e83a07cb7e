/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which file is mapped where in the target.
 *
 * In:   /proc/PID/maps, map_files, exe and root.
 * Out:  for an address, the mapping and the open file behind it, for proc_mem.h
 *       and symbolize.c.
 *
 * Only mappings of files that can hold OCaml code are kept: those with at least
 * one executable mapping, and the executable. What was open once stays open, so
 * that names survive the file and the process. The mappings are always those of the
 * address space that maps_fd is bound to, and only files mapped there are opened: see
 * map_file.h for how that is made certain.
 * Code that is unloaded and replaced by other code at the same address is noticed
 * only at the next refresh; OCaml's Dynlink never unloads.
 */
#ifndef HEAPSONDE_PROC_MAPS_H
#define HEAPSONDE_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/symbolize/elf_image.h"
#include "user/symbolize/map_file.h"

struct proc_maps;

/* Addresses from start up to but not including end show image from offset on. */
struct mapping {
	uint64_t start, end;
	uint64_t offset;
	bool is_exec;
	struct elf_image *image;
	const char *path; /* of the file, as the kernel prints it; NULL: out of memory */
};

/*
 * Read the mappings of a process. files and pages are borrowed: they must stay as long
 * as *out. Errors: -ESRCH the address space has gone, -ENOMEM, other errno of reading.
 */
int proc_maps__new(struct proc_maps **out, const struct proc_files *files,
		   struct page_cache *pages);

/* NULL is fine. Closes the files, after which no image may be used. */
void proc_maps__free(struct proc_maps *m);

/* The mapping that holds addr, valid until the next refresh, or NULL. */
const struct mapping *proc_maps__find(struct proc_maps *m, uint64_t addr);

/*
 * The same; if there is none, read /proc/PID/maps again (the target may have loaded
 * code) and look once more. Reads at most every 100 ms, more rarely the longer
 * reading takes and the more often it was in vain, so that a target that makes up
 * addresses cannot keep us busy.
 */
const struct mapping *proc_maps__find_or_refresh(struct proc_maps *m, uint64_t addr);

/* All of them, by address, valid until the next refresh. Returns their number. */
size_t proc_maps__all(const struct proc_maps *m, const struct mapping **out);

/*
 * The name of the function at the run-time address pc, as elf_image__function gives
 * it. 0, -ENOENT or -ENOMEM.
 */
int proc_maps__function(struct proc_maps *m, uint64_t pc, char *buf, size_t cap);

/* The same for a link-time address in a certain image. */
int proc_maps__image_function(struct proc_maps *m, struct elf_image *img, uint64_t vaddr, char *buf,
			      size_t cap);

#endif /* HEAPSONDE_PROC_MAPS_H */
