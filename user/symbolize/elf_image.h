/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ELF file that the target has mapped, kept open.
 *
 * In:   a file descriptor of any file at all; the contents are not trusted.
 * Out:  file offsets turned into link-time addresses, the values of relocated
 *       pointers, and function names by link-time address, for symbolize.c.
 *
 * Parsed by hand with bounded reads rather than with libelf, which would load
 * whole sections of a file that somebody else made. A file that is not a 64-bit
 * little-endian ELF file has bytes to read and nothing else.
 */
#ifndef HEAPSONDE_ELF_IMAGE_H
#define HEAPSONDE_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/symbolize/page_cache.h"

struct symtab;

#define ELF_IMAGE_MAX_SEGMENTS 64

/* A PT_LOAD program header. */
struct elf_segment {
	uint64_t offset;
	uint64_t vaddr;
	uint64_t filesz;
	bool is_exec;
};

struct elf_image {
	struct page_cache *pages; /* borrowed */
	struct page_source source;
	bool is_elf;
	uint16_t n_segments;
	struct elf_segment segments[ELF_IMAGE_MAX_SEGMENTS];
	/* Relative relocations, sorted by address: where in the file, how many. */
	uint64_t rela_offset;
	uint64_t rela_count;
	uint64_t shoff; /* section headers: where, how many */
	uint64_t shnum;
	struct symtab *symtab; /* loaded on first use */
	bool symtab_tried;
};

/*
 * Take over fd, whether this succeeds or not, and look at what it is. id: unique
 * among the sources of the page cache. Errors: -ENOMEM.
 */
int elf_image__new(struct elf_image **out, int fd, uint64_t id, struct page_cache *pages);

/* NULL is fine. Closes the file. */
void elf_image__free(struct elf_image *img);

/*
 * The link-time address of the code (is_exec) or of anything (!is_exec) at a file
 * offset. 0 or -ENOENT.
 */
int elf_image__vaddr(const struct elf_image *img, uint64_t offset, bool is_exec, uint64_t *vaddr);

/*
 * The link-time value of the 8-byte pointer at a file offset, relocated as for a
 * load bias of 0. 0 or -ENOENT.
 */
int elf_image__pointer(const struct elf_image *img, uint64_t offset, uint64_t *value);

/*
 * The name of the function that contains a link-time address, as it stands in the
 * symbol table, cut off at cap - 1 bytes. *budget is the number of symbols that may
 * still be read, over all images together. 0, -ENOENT or -ENOMEM.
 */
int elf_image__function(struct elf_image *img, uint64_t vaddr, size_t *budget, char *buf,
			size_t cap);

#endif /* HEAPSONDE_ELF_IMAGE_H */
