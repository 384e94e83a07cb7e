/* SPDX-License-Identifier: BSD-2-Clause */
/* See page_cache.h. Direct-mapped: a page has one place where it can be. */
#include "user/symbolize/page_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096u
#define N_PAGES 512u /* a power of 2; 2 MiB, touched as needed */

struct cached_page {
	uint64_t number;     /* position / PAGE_BYTES */
	uint64_t generation; /* for volatile sources: valid in this one only */
	uint64_t source;     /* 0: empty */
	uint32_t len;        /* readable bytes; less than a page at the end of a file */
	uint8_t bytes[PAGE_BYTES];
};

struct page_cache {
	uint64_t generation;
	struct cached_page pages[N_PAGES];
};

struct page_cache *page_cache__new(void)
{
	return calloc(1, sizeof(struct page_cache));
}

void page_cache__free(struct page_cache *c)
{
	free(c);
}

void page_cache__drop_volatile(struct page_cache *c)
{
	c->generation++;
}

static uint32_t read_page(const struct page_source *src, uint64_t number, uint8_t *buf)
{
	uint32_t len = 0;

	while (len < PAGE_BYTES) {
		ssize_t n = pread(src->fd, buf + len, PAGE_BYTES - len,
				  (off_t)(number * PAGE_BYTES + len));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (uint32_t)n;
	}
	return len;
}

size_t page_cache__peek(struct page_cache *c, const struct page_source *src, uint64_t pos,
			const uint8_t **bytes)
{
	uint64_t number = pos / PAGE_BYTES;
	uint32_t skip = pos % PAGE_BYTES;
	struct cached_page *p;

	if (pos > INT64_MAX) /* pread's offset is signed */
		return 0;
	p = &c->pages[(number + src->id * 61) % N_PAGES];
	if (p->source != src->id || p->number != number ||
	    (src->is_volatile && p->generation != c->generation)) {
		p->len = read_page(src, number, p->bytes);
		p->number = number;
		p->generation = c->generation;
		/* A failure may pass: do not remember it. */
		p->source = p->len ? src->id : 0;
	}
	if (skip >= p->len)
		return 0;
	*bytes = p->bytes + skip;
	return p->len - skip;
}

int page_cache__read(struct page_cache *c, const struct page_source *src, uint64_t pos, void *buf,
		     size_t len)
{
	uint8_t *to = buf;

	while (len) {
		const uint8_t *from;
		size_t n = page_cache__peek(c, src, pos, &from);

		if (!n)
			return -EFAULT;
		if (n > len)
			n = len;
		memcpy(to, from, n);
		to += n;
		pos += n;
		len -= n;
	}
	return 0;
}
