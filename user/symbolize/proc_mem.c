/* SPDX-License-Identifier: BSD-2-Clause */
/* See proc_mem.h. */
#include "user/symbolize/proc_mem.h"

#include <errno.h>
#include <string.h>

void proc_mem__init(struct proc_mem *m, int mem_fd, struct proc_maps *maps,
		    struct page_cache *pages)
{
	m->pages = pages;
	m->maps = maps;
	m->live = (struct page_source){ .fd = mem_fd, .id = 1, .is_volatile = true };
}

void proc_mem__renew(struct proc_mem *m)
{
	page_cache__drop_volatile(m->pages);
}

/* As page_cache__peek. */
static size_t peek(struct proc_mem *m, uint64_t addr, const uint8_t **bytes)
{
	const struct mapping *map = proc_maps__find(m->maps, addr);

	if (map) {
		uint64_t left = map->end - addr;
		size_t n = page_cache__peek(m->pages, &map->image->source,
					    addr - map->start + map->offset, bytes);
		if (n)
			return n < left ? n : left;
	}
	return page_cache__peek(m->pages, &m->live, addr, bytes);
}

int proc_mem__read(struct proc_mem *m, uint64_t addr, void *buf, size_t len)
{
	uint8_t *to = buf;

	while (len) {
		const uint8_t *from;
		size_t n = peek(m, addr, &from);

		if (!n)
			return -EFAULT;
		if (n > len)
			n = len;
		memcpy(to, from, n);
		to += n;
		addr += n;
		len -= n;
	}
	return 0;
}

int proc_mem__read_live(struct proc_mem *m, uint64_t addr, void *buf, size_t len)
{
	return page_cache__read(m->pages, &m->live, addr, buf, len);
}

ssize_t proc_mem__read_text(struct proc_mem *m, uint64_t addr, char *buf, size_t cap)
{
	size_t len = 0;

	while (len < cap) {
		const uint8_t *from, *nul;
		size_t n = peek(m, addr + len, &from);

		if (!n)
			return -EFAULT;
		if (n > cap - len)
			n = cap - len;
		nul = memchr(from, 0, n);
		if (nul)
			n = (size_t)(nul - from);
		memcpy(buf + len, from, n);
		len += n;
		if (nul)
			break;
	}
	return (ssize_t)len;
}
