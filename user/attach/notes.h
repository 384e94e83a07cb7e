/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The probes of an executable, from its USDT notes.
 *
 * In:   an ELF file, by descriptor. Every byte of it is untrusted.
 * Out:  struct probe_set, in file offsets, for user/attach/exe.h and attach.h.
 *
 * Found by the section .note.stapsdt, which `strip` leaves in place; a file
 * without section headers has no notes as far as this reader is concerned.
 */
#ifndef HEAPSONDE_NOTES_H
#define HEAPSONDE_NOTES_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#include "user/attach/target.h"
#include "user/common/error.h"

/*
 * Read the probes of provider SONDE_PROVIDER from the ELF file open as fd (its
 * file position does not matter and does not change). Names that are not in
 * struct probe_set are passed over: a later runtime may have more. A probe that
 * is there twice is an error, because to attach to one of its sites only would
 * lose samples without a word.
 *
 * On success *out has at least the registry; notes__missing tells whether the
 * rest is complete. Errors: -ENOENT no such notes (or not an ELF file for
 * x86-64), -EBADMSG malformed (text says what), -EIO unreadable.
 */
int notes__read(int fd, struct probe_set *out, struct hs_error *err);

/*
 * Is this an ELF file for x86-64 that libelf may look at? It keeps some 200 bytes for each
 * section and each program header, and a file with holes can say, in a few bytes on the
 * disk, that it has billions of them. 1 yes, 0 no, or a negative errno of reading.
 */
int notes__is_elf(int fd);

/*
 * The name of a probe that set lacks, or NULL if it is complete. The string is
 * in a static buffer, overwritten by the next call.
 */
const char *notes__missing(const struct probe_set *set);

/*
 * The probes of a set one after the other: i = 0 .. and NULL at the end. Their names are
 * those of the notes; name: size bytes for it, 24 are enough.
 */
const struct probe_site *notes__site(const struct probe_set *set, unsigned i, char *name,
				     size_t size);

/*
 * Do the file's bytes at offset (a probe_site's) read `nop` followed by the
 * ten-byte nop that kernels from 7.2 on can optimize, without a page boundary
 * inside it? 1 yes, 0 no, or a negative errno.
 */
int notes__site_has_nop10(int fd, uint64_t offset);

/*
 * Convert a link-time address into a file offset: len bytes from vaddr must lie
 * in the file-backed part of one PT_LOAD segment that has all of flags (PF_X,
 * PF_W). 0, or -ENOENT if there is none.
 */
int notes__file_offset(Elf *elf, uint64_t vaddr, uint64_t len, uint32_t flags, uint64_t *offset);

/*
 * The other way round: the link-time address of len bytes at offset of the file, which must
 * lie in one PT_LOAD segment that has all of flags. 0, or -ENOENT if there is none.
 */
int notes__vaddr(Elf *elf, uint64_t offset, uint64_t len, uint32_t flags, uint64_t *vaddr);

#endif /* HEAPSONDE_NOTES_H */
