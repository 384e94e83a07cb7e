/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bounded reads of files and of process memory, a page at a time.
 *
 * In:   a file descriptor: an ELF file, or /proc/PID/mem.
 * Out:  bytes, for elf_image.h and proc_mem.h.
 *
 * pread and not mmap: a file that its owner truncates would kill us with SIGBUS.
 * The cache has a fixed size and throws out silently.
 */
#ifndef HEAPSONDE_PAGE_CACHE_H
#define HEAPSONDE_PAGE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_cache;

/* Something to read from. The file descriptor stays its owner's. */
struct page_source {
	int fd;
	uint64_t id;      /* unique in one cache, not 0 */
	bool is_volatile; /* forgotten by page_cache__drop_volatile */
};

/* NULL: out of memory. */
struct page_cache *page_cache__new(void);

/* NULL is fine. */
void page_cache__free(struct page_cache *c);

/* Forget the pages of volatile sources: what was read may have changed. */
void page_cache__drop_volatile(struct page_cache *c);

/*
 * Point *bytes at the contents of src at byte pos. Returns how many bytes can be
 * read there, at most to the end of a page; 0: nothing is readable at pos. *bytes
 * is valid until the next call on c.
 */
size_t page_cache__peek(struct page_cache *c, const struct page_source *src, uint64_t pos,
			const uint8_t **bytes);

/* Copy exactly len bytes. 0, or -EFAULT if not all of them are readable. */
int page_cache__read(struct page_cache *c, const struct page_source *src, uint64_t pos, void *buf,
		     size_t len);

#endif /* HEAPSONDE_PAGE_CACHE_H */
