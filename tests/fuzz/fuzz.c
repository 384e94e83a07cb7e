/* SPDX-License-Identifier: BSD-2-Clause */
/* See fuzz.h. */
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void fuzz__failed(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
	abort();
}

uint64_t fuzz__number(struct fuzz_bytes *b, unsigned int n)
{
	uint64_t number = 0;

	for (unsigned int i = 0; i < n && b->left; i++) {
		number |= (uint64_t)*b->at++ << (8 * i);
		b->left--;
	}
	return number;
}

struct fuzz_bytes fuzz__piece(struct fuzz_bytes *b)
{
	size_t n = fuzz__number(b, 2);
	struct fuzz_bytes piece;

	piece.at = b->at;
	piece.left = n < b->left ? n : b->left;
	b->at += piece.left;
	b->left -= piece.left;
	return piece;
}

char *fuzz__text(struct fuzz_bytes *b)
{
	struct fuzz_bytes piece = fuzz__piece(b);
	char *text = strndup((const char *)piece.at, piece.left);

	CHECK(text);
	return text;
}

static int files[FUZZ_FILES];

static int file_of(unsigned int which)
{
	CHECK(which < FUZZ_FILES);
	if (!files[which]) {
		files[which] = memfd_create("input", MFD_CLOEXEC);
		CHECK(files[which] > 0);
	}
	return files[which];
}

int fuzz__file(unsigned int which, const void *bytes, size_t n_bytes)
{
	int fd = file_of(which);

	CHECK(!ftruncate(fd, 0));
	CHECK(pwrite(fd, bytes, n_bytes, 0) == (ssize_t)n_bytes);
	return fd;
}

const char *fuzz__path(unsigned int which)
{
	static char paths[FUZZ_FILES][32];

	snprintf(paths[which], sizeof(paths[which]), "/proc/self/fd/%d", file_of(which));
	return paths[which];
}

static ssize_t forget(void *cookie, const char *bytes, size_t n)
{
	(void)cookie;
	(void)bytes;
	return (ssize_t)n;
}

FILE *fuzz__null(void)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = forget });

	CHECK(f);
	return f;
}
