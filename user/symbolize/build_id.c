/* SPDX-License-Identifier: BSD-2-Clause */
/* See build_id.h. Every number that comes out of the file is checked where it is used. */
#include "user/symbolize/build_id.h"

#include <elf.h>
#include <string.h>

#define MAX_PHDRS 256u
#define MAX_NOTES 64u
#define NAME "GNU"

static int read_at(const struct elf_image *img, uint64_t offset, void *buf, size_t len)
{
	return page_cache__read(img->pages, &img->source, offset, buf, len);
}

static uint64_t padded(uint64_t n, uint64_t align)
{
	return (n + align - 1) & ~(align - 1);
}

/* Look through the notes of a segment. */
static size_t find_note(const struct elf_image *img, const Elf64_Phdr *ph,
			uint8_t id[BUILD_ID_MAX_BYTES])
{
	uint64_t align = ph->p_align == 8 ? 8 : 4, at = 0;

	for (unsigned int i = 0; i < MAX_NOTES && at < ph->p_filesz; i++) {
		Elf64_Nhdr note;
		char name[sizeof(NAME)];
		uint64_t from;

		if (read_at(img, ph->p_offset + at, &note, sizeof(note)))
			return 0;
		/* 32-bit lengths: no sum comes near 64 bits, and at grows by 12 at least. */
		from = at + sizeof(note) + padded(note.n_namesz, align);
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(NAME) &&
		    !read_at(img, ph->p_offset + at + sizeof(note), name, sizeof(name)) &&
		    !memcmp(name, NAME, sizeof(NAME))) {
			if (!note.n_descsz || note.n_descsz > BUILD_ID_MAX_BYTES ||
			    read_at(img, ph->p_offset + from, id, note.n_descsz))
				return 0;
			return note.n_descsz;
		}
		at = from + padded(note.n_descsz, align);
	}
	return 0;
}

size_t build_id__read(const struct elf_image *img, uint8_t id[BUILD_ID_MAX_BYTES])
{
	Elf64_Ehdr eh;
	size_t n = 0;

	if (!img->is_elf || read_at(img, 0, &eh, sizeof(eh)))
		return 0;
	for (unsigned int i = 0; i < eh.e_phnum && i < MAX_PHDRS && !n; i++) {
		Elf64_Phdr ph;

		if (read_at(img, eh.e_phoff + i * sizeof(ph), &ph, sizeof(ph)))
			break;
		if (ph.p_type == PT_NOTE)
			n = find_note(img, &ph, id);
	}
	return n;
}
