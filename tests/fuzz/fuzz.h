/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fuzzers share.
 *
 * In:   the bytes of one input.
 * Out:  numbers and files made of them; the check that a fuzzer makes of what must hold.
 *
 * Each fuzz_NAME.c has LLVMFuzzerTestOneInput, which all kinds of build.mk call; it hands
 * the input to the reader of outside bytes that it is named after, and then uses the result
 * as the program would. Whatever the input is, it returns 0: what is wrong shows as an abort
 * of the sanitizers or of CHECK.
 */
#ifndef HEAPSONDE_FUZZ_H
#define HEAPSONDE_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What must hold whatever the input. Not assert: no build may leave it out. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fuzz__failed(#condition, __FILE__, __LINE__);                              \
	} while (0)

void fuzz__failed(const char *condition, const char *file, int line) __attribute__((noreturn));

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The part of an input that has not been used. */
struct fuzz_bytes {
	const uint8_t *at;
	size_t left;
};

/* n bytes as a number, little-endian; those that are missing are 0. n: 1 to 8. */
uint64_t fuzz__number(struct fuzz_bytes *b, unsigned int n);

/* As many bytes as a 16-bit number says that comes before them; or what there is. */
struct fuzz_bytes fuzz__piece(struct fuzz_bytes *b);

/* The same as a string of the caller's (free()), cut off at its first NUL. */
char *fuzz__text(struct fuzz_bytes *b);

/*
 * A file in memory with this content. There are FUZZ_FILES of them, which are reused: the
 * descriptor is good until the next call for the same one, and must not be closed (dup it).
 */
#define FUZZ_FILES 3
int fuzz__file(unsigned int which, const void *bytes, size_t n_bytes);

/* A path to it, static as the file is. */
const char *fuzz__path(unsigned int which);

/* A stream that forgets what is written to it; opened anew, to be closed. */
FILE *fuzz__null(void);

#endif /* HEAPSONDE_FUZZ_H */
