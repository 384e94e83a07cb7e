/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A leak for a program that has none: with LD_PRELOAD each 32nd small block that is freed
 * stays. So the soak test can be seen to find one (SOAK_LEAK=1 scripts/soak must fail).
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stddef.h>

#define EACH 32
#define SMALLEST 64
#define LARGEST 512

void __libc_free(void *p);

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library has no names to take */
void free(void *p)
{
	static unsigned int n;
	size_t size = p ? malloc_usable_size(p) : 0;

	if (size >= SMALLEST && size <= LARGEST && __sync_add_and_fetch(&n, 1) % EACH == 0)
		return;
	__libc_free(p);
}
