/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much memory this process has from malloc, in both builds.
 *
 * In:   nothing.
 * Out:  bytes, large blocks included.
 */
#ifndef TEST_HEAP_BYTES_H
#define TEST_HEAP_BYTES_H

#include <malloc.h>
#include <stddef.h>

#ifdef __SANITIZE_ADDRESS__
/* In clang's headers only, though in both libraries. */
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

static inline size_t heap_bytes(void)
{
#ifdef __SANITIZE_ADDRESS__
	/* malloc is the sanitizer's, of which glibc knows nothing. */
	return __sanitizer_get_current_allocated_bytes();
#else
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
#endif
}

#endif /* TEST_HEAP_BYTES_H */
