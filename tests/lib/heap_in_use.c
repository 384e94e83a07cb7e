/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many bytes of its heap a process has in use, told to whoever looks, for the soak test: what
 * the kernel says of its memory is pages, and one small block that stays keeps a page of them.
 *
 * In:   with LD_PRELOAD, programs; HEAP_IN_USE, a file to be made; HEAP_LEAK=1, and each 32nd
 *       small block that is freed stays, so that the test can be seen to find a leak
 * Out:  in the file, for each process and for those that it forks, two numbers of 64 bits in the
 *       machine's order: its PID, and the bytes that it has in use now. The file is mapped at the
 *       start, because the daemon cannot open one later (user/daemon/sandbox.h); who comes when
 *       it is full takes the place of the first
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_PROCESSES 4096
#define LEAK_EACH 32
#define LEAK_SMALLEST 64
#define LEAK_LARGEST 512

/* The C library's own, under names that nobody takes for himself. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

struct process {
	uint64_t pid;
	uint64_t in_use_bytes;
};

static struct process untold; /* until there is a file */
static struct process *told, *this_one = &untold;
static bool leaks;

static void *counted(void *p)
{
	if (p)
		__atomic_add_fetch(&this_one->in_use_bytes, malloc_usable_size(p),
				   __ATOMIC_RELAXED);
	return p;
}

static void uncount(size_t size)
{
	__atomic_sub_fetch(&this_one->in_use_bytes, size, __ATOMIC_RELAXED);
}

/*
 * The C library has no names to take.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
 */
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

/* The first place is nobody's: in its pid is how many have been given away. */
static void take_place(void)
{
	uint64_t n = __atomic_fetch_add(&told[0].pid, 1, __ATOMIC_RELAXED);
	struct process *place = &told[1 + n % (N_PROCESSES - 1)];

	/* What a child has is a copy of what its parent has. */
	place->in_use_bytes = this_one->in_use_bytes;
	place->pid = (uint64_t)getpid();
	this_one = place;
}

/* Whoever looks misses the file if it cannot be made, and says so. */
__attribute__((constructor)) static void begin(void)
{
	const char *leak = getenv("HEAP_LEAK"), *path = getenv("HEAP_IN_USE");
	size_t size = N_PROCESSES * sizeof(*told);
	void *mapped = MAP_FAILED;
	int fd;

	leaks = leak && !strcmp(leak, "1");
	fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd < 0)
		return;
	if (!ftruncate(fd, (off_t)size))
		mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (mapped == MAP_FAILED)
		return;
	told = mapped;
	take_place();
	pthread_atfork(NULL, NULL, take_place);
}
