/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uthash for the tables that are asked for every record: a quick hash of short keys, and
 * short chains.
 *
 * In:   keys of 4, 8 or 16 bytes; others get uthash's own hash.
 * Out:  <uthash.h>, set up; include this instead, and in .c files only. What finds no memory
 *       is left out, with hh.tbl NULL.
 *
 * Each element of a chain is a miss of the cache, and uthash lets chains grow to ten of them.
 * Whoever makes up a capture can make up keys that collide, with this hash or uthash's own.
 */
#ifndef HEAPSONDE_HASH_H
#define HEAPSONDE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Odd and without a pattern: 2^64 over the golden ratio, and one of wyhash's. */
#define HASH_SHORT_A 0x9e3779b97f4a7c15ull
#define HASH_SHORT_B 0xa0761d6478bd642full

/* Of n_bytes, 4, 8 or 16: 64 times 64 bits, and both halves of the product. */
static inline unsigned int hash__short(const void *key, size_t n_bytes)
{
	uint64_t a = 0, b = 0;
	unsigned __int128 product;

	memcpy(&a, key, n_bytes < sizeof(a) ? n_bytes : sizeof(a));
	if (n_bytes > sizeof(a))
		memcpy(&b, (const char *)key + sizeof(a), sizeof(b));
	product = (unsigned __int128)(a ^ HASH_SHORT_A) * (b ^ HASH_SHORT_B);
	a = (uint64_t)product ^ (uint64_t)(product >> 64);
	return (unsigned int)(a ^ a >> 32);
}

#define HASH_FUNCTION(keyptr, keylen, hashv)                                                       \
	do {                                                                                       \
		if ((keylen) == 4 || (keylen) == 8 || (keylen) == 16)                              \
			(hashv) = hash__short((keyptr), (keylen));                                 \
		else                                                                               \
			HASH_JEN((keyptr), (keylen), (hashv));                                     \
	} while (0)

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Elements of a chain that make the table double: buckets are then some three times as many
 * as elements, 16 bytes each. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 4U

#endif /* HEAPSONDE_HASH_H */
