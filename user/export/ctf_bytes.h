/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a memtrace packet, as they are put together.
 *
 * In:   numbers and strings.
 * Out:  little-endian bytes, one after the other, without padding.
 *
 * Whoever puts something has made sure that there is room.
 */
#ifndef HEAPSONDE_CTF_BYTES_H
#define HEAPSONDE_CTF_BYTES_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Readers have a buffer of this size. */
#define CTF_PACKET_BYTES 32768

/* The readers' integers have 63 bits, of which one is the sign. */
#define CTF_INT_MAX ((UINT64_C(1) << 62) - 1)

struct ctf_bytes {
	uint8_t at[CTF_PACKET_BYTES];
	size_t n;
};

static inline size_t ctf_bytes__room(const struct ctf_bytes *b)
{
	return sizeof(b->at) - b->n;
}

static inline void ctf_put(struct ctf_bytes *b, const void *from, size_t n_bytes)
{
	memcpy(b->at + b->n, from, n_bytes);
	b->n += n_bytes;
}

static inline void ctf_put_8(struct ctf_bytes *b, uint8_t v)
{
	b->at[b->n++] = v;
}

static inline void ctf_put_16(struct ctf_bytes *b, uint16_t v)
{
	v = htole16(v);
	ctf_put(b, &v, sizeof(v));
}

static inline void ctf_put_32(struct ctf_bytes *b, uint32_t v)
{
	v = htole32(v);
	ctf_put(b, &v, sizeof(v));
}

static inline void ctf_put_64(struct ctf_bytes *b, uint64_t v)
{
	v = htole64(v);
	ctf_put(b, &v, sizeof(v));
}

static inline void ctf_put_double(struct ctf_bytes *b, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	ctf_put_64(b, bits);
}

/* A number of variable length, at most CTF_VINT_BYTES. v is at most CTF_INT_MAX. */
#define CTF_VINT_BYTES 9

static inline void ctf_put_vint(struct ctf_bytes *b, uint64_t v)
{
	if (v <= 252) {
		ctf_put_8(b, (uint8_t)v);
	} else if (v <= UINT16_MAX) {
		ctf_put_8(b, 253);
		ctf_put_16(b, (uint16_t)v);
	} else if (v <= INT32_MAX) { /* readers extend the sign */
		ctf_put_8(b, 254);
		ctf_put_32(b, (uint32_t)v);
	} else {
		ctf_put_8(b, 255);
		ctf_put_64(b, v);
	}
}

/* n_bytes of text without a NUL, and one. */
static inline void ctf_put_text(struct ctf_bytes *b, const char *text, size_t n_bytes)
{
	ctf_put(b, text, n_bytes);
	ctf_put_8(b, 0);
}

/* As many bytes of text, at most max_bytes, as can be kept without splitting a character. */
static inline size_t ctf_text_bytes(const char *text, size_t max_bytes)
{
	size_t n = strnlen(text, max_bytes + 1);

	if (n <= max_bytes)
		return n;
	n = max_bytes;
	while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

#endif /* HEAPSONDE_CTF_BYTES_H */
