/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many bytes of its heap a process has in use, told to whoever looks, for the soak test: what
 * the kernel says of its memory is pages, and one small block that stays keeps a page of them.
 *
 * In:   with LD_PRELOAD, a program; HEAP_IN_USE, a folder; HEAP_LEAK=1, and each 32nd small
 *       block that is freed stays, so that the test can be seen to find a leak
 * Out:  a file in there for the process and for each that it forks, with its number as the
 *       name: 8 bytes, an unsigned number in the machine's order, of bytes, as it is now
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEAK_EACH 32
#define LEAK_SMALLEST 64
#define LEAK_LARGEST 512

/* The C library's own, under names that nobody takes for himself. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

static uint64_t untold; /* until there is a file */
static uint64_t *in_use = &untold;
static bool leaks;

static void *counted(void *p)
{
	if (p)
		__atomic_add_fetch(in_use, malloc_usable_size(p), __ATOMIC_RELAXED);
	return p;
}

static void uncount(size_t size)
{
	__atomic_sub_fetch(in_use, size, __ATOMIC_RELAXED);
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library has no names to take */
void *malloc(size_t size)
{
	return counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return counted(__libc_calloc(n, size));
}

void *realloc(void *p, size_t size)
{
	size_t before = malloc_usable_size(p);
	void *grown = __libc_realloc(p, size);

	/* With 0 it has freed p, which is what it returns NULL for then. */
	if (grown || !size)
		uncount(before);
	return counted(grown);
}

void *memalign(size_t alignment, size_t size)
{
	return counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
	void *p = memalign(alignment, size);

	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

void free(void *p)
{
	static unsigned int n;
	size_t size = malloc_usable_size(p);

	if (leaks && size >= LEAK_SMALLEST && size <= LEAK_LARGEST &&
	    __atomic_add_fetch(&n, 1, __ATOMIC_RELAXED) % LEAK_EACH == 0)
		return;
	uncount(size);
	__libc_free(p);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

/* Whoever looks misses the file if it cannot be made, and says so. */
static void tell(void)
{
	const char *folder = getenv("HEAP_IN_USE");
	uint64_t *told = MAP_FAILED;
	char path[4096];
	int fd;

	if (!folder ||
	    (size_t)snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid()) >= sizeof(path))
		return;
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (!ftruncate(fd, sizeof(*told)))
		told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (told == MAP_FAILED)
		return;
	*told = *in_use;
	in_use = told;
}

__attribute__((constructor)) static void begin(void)
{
	const char *leak = getenv("HEAP_LEAK");

	leaks = leak && !strcmp(leak, "1");
	tell();
	/* What a child has is a copy; its number is its own from here on. */
	pthread_atfork(NULL, NULL, tell);
}
