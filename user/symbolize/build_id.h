/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The build id of an ELF file (the note NT_GNU_BUILD_ID), by which other tools find the same
 * file again.
 *
 * In:   an open file; its contents are not trusted.
 * Out:  the bytes of the id, for symbolize.c.
 */
#ifndef HEAPSONDE_BUILD_ID_H
#define HEAPSONDE_BUILD_ID_H

#include "user/symbolize/elf_image.h"

/* Longer ones are passed over; linkers make 8 to 20 bytes. */
#define BUILD_ID_MAX_BYTES 64

/* Returns the length, 0 if the file has none. */
size_t build_id__read(const struct elf_image *img, uint8_t id[BUILD_ID_MAX_BYTES]);

#endif /* HEAPSONDE_BUILD_ID_H */
