/* SPDX-License-Identifier: BSD-2-Clause */
/* See text.h. */
#include "user/symbolize/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Out of memory is reported and not the end of the program. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->was_added = false)
#include <uthash.h>

#define CHUNK_BYTES ((size_t)64 << 10)
#define ALIGNMENT 16u
/* Each byte may turn into a replacement character. */
#define CLEAN_MAX (TEXT_MAX * 3)

struct chunk {
	struct chunk *next;
	_Alignas(ALIGNMENT) char bytes[];
};

struct interned {
	UT_hash_handle hh;
	bool was_added;
	char text[];
};

struct text_pool {
	struct chunk *chunks; /* the newest first, which has room left */
	size_t left;          /* bytes at the end of it */
	size_t chunk_bytes;   /* usable bytes in it */
	size_t total;
	struct interned *strings;
};

struct text_pool *text_pool__new(void)
{
	return calloc(1, sizeof(struct text_pool));
}

void text_pool__free(struct text_pool *p)
{
	struct chunk *next;

	if (!p)
		return;
	HASH_CLEAR(hh, p->strings);
	for (struct chunk *c = p->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	free(p);
}

size_t text_pool__bytes(const struct text_pool *p)
{
	return p->total;
}

void *text_pool__alloc(struct text_pool *p, size_t size)
{
	char *block;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (size > p->left) {
		size_t bytes = size > CHUNK_BYTES ? size : CHUNK_BYTES;
		struct chunk *c = malloc(sizeof(*c) + bytes);

		if (!c)
			return NULL;
		c->next = p->chunks;
		p->chunks = c;
		p->left = p->chunk_bytes = bytes;
		p->total += sizeof(*c) + bytes;
	}
	block = p->chunks->bytes + (p->chunk_bytes - p->left);
	p->left -= size;
	return block;
}

/*
 * The length of the character at s if it may be shown, else 0: no overlong forms, no
 * surrogates, nothing beyond U+10FFFF, no control characters (C0, DEL, C1).
 */
static size_t good_character(const uint8_t *s, size_t len)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t c = s[0];
	size_t n;

	if (c < 0x80)
		return c >= 0x20 && c != 0x7F;
	if (c >= 0xC2 && c <= 0xDF)
		n = 2;
	else if (c >= 0xE0 && c <= 0xEF)
		n = 3;
	else if (c >= 0xF0 && c <= 0xF4)
		n = 4;
	else
		return 0;
	if (n > len)
		return 0;
	c &= 0x7Fu >> n;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xC0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3F);
	}
	if (c < smallest[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF) || c < 0xA0)
		return 0;
	return n;
}

/* out has room for CLEAN_MAX bytes; returns how many were used. */
static size_t clean(const char *bytes, size_t len, char *out)
{
	static const char replacement[] = "\xEF\xBF\xBD";
	size_t used = 0;

	for (size_t i = 0; i < len;) {
		size_t n = good_character((const uint8_t *)bytes + i, len - i);

		memcpy(out + used, n ? bytes + i : replacement, n ? n : 3);
		used += n ? n : 3;
		i += n ? n : 1;
	}
	return used;
}

const char *text_pool__intern(struct text_pool *p, const char *bytes, size_t len)
{
	struct interned *found;
	char text[CLEAN_MAX];

	len = clean(bytes, len < TEXT_MAX ? len : TEXT_MAX, text);
	HASH_FIND(hh, p->strings, text, len, found);
	if (found)
		return found->text;
	found = text_pool__alloc(p, sizeof(*found) + len + 1);
	if (!found)
		return NULL;
	memcpy(found->text, text, len);
	found->text[len] = '\0';
	found->was_added = true;
	HASH_ADD_KEYPTR(hh, p->strings, found->text, len, found);
	return found->was_added ? found->text : NULL;
}
