/* SPDX-License-Identifier: BSD-2-Clause */
/* See elf_image.h. Every number that comes out of the file is checked where it is used. */
#include "user/symbolize/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/symbolize/symtab.h"

#define MAX_PHDRS 256u
#define MAX_DYNAMIC 1024u

static int read_at(const struct elf_image *img, uint64_t offset, void *buf, size_t len)
{
	return page_cache__read(img->pages, &img->source, offset, buf, len);
}

/* Where in the file the link-time address vaddr is. */
static int file_offset(const struct elf_image *img, uint64_t vaddr, uint64_t *offset)
{
	for (unsigned i = 0; i < img->n_segments; i++) {
		const struct elf_segment *s = &img->segments[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz) {
			*offset = s->offset + (vaddr - s->vaddr);
			return 0;
		}
	}
	return -ENOENT;
}

/* Find the relative relocations through PT_DYNAMIC. */
static void parse_dynamic(struct elf_image *img, uint64_t offset, uint64_t bytes)
{
	uint64_t rela = 0, rela_bytes = 0, count = 0;
	uint64_t n = bytes / sizeof(Elf64_Dyn);

	for (uint64_t i = 0; i < n && i < MAX_DYNAMIC; i++) {
		Elf64_Dyn d;

		if (read_at(img, offset + i * sizeof(d), &d, sizeof(d)) || d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_RELA)
			rela = d.d_un.d_ptr;
		else if (d.d_tag == DT_RELASZ)
			rela_bytes = d.d_un.d_val;
		else if (d.d_tag == DT_RELACOUNT)
			count = d.d_un.d_val;
	}
	if (!rela || file_offset(img, rela, &img->rela_offset))
		return;
	if (count > rela_bytes / sizeof(Elf64_Rela))
		count = rela_bytes / sizeof(Elf64_Rela);
	img->rela_count = count;
}

/* More than 65534 sections: the number stands in the first section header. */
static uint64_t section_count(const struct elf_image *img, const Elf64_Ehdr *eh)
{
	Elf64_Shdr first;

	if (!eh->e_shoff || eh->e_shentsize != sizeof(Elf64_Shdr))
		return 0;
	if (eh->e_shnum)
		return eh->e_shnum;
	if (read_at(img, eh->e_shoff, &first, sizeof(first)))
		return 0;
	return first.sh_size;
}

static void parse(struct elf_image *img)
{
	uint64_t dyn_offset = 0, dyn_bytes = 0;
	Elf64_Ehdr eh;

	if (read_at(img, 0, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB ||
	    (eh.e_type != ET_EXEC && eh.e_type != ET_DYN) || eh.e_phentsize != sizeof(Elf64_Phdr))
		return;
	for (unsigned i = 0; i < eh.e_phnum && i < MAX_PHDRS; i++) {
		Elf64_Phdr ph;

		if (read_at(img, eh.e_phoff + i * sizeof(ph), &ph, sizeof(ph)))
			break;
		if (ph.p_type == PT_DYNAMIC) {
			dyn_offset = ph.p_offset;
			dyn_bytes = ph.p_filesz;
		}
		if (ph.p_type != PT_LOAD || img->n_segments == ELF_IMAGE_MAX_SEGMENTS)
			continue;
		img->segments[img->n_segments++] = (struct elf_segment){
			.offset = ph.p_offset,
			.vaddr = ph.p_vaddr,
			.filesz = ph.p_filesz,
			.is_exec = ph.p_flags & PF_X,
		};
	}
	img->is_elf = true;
	parse_dynamic(img, dyn_offset, dyn_bytes);
	img->shoff = eh.e_shoff;
	img->shnum = section_count(img, &eh);
}

int elf_image__new(struct elf_image **out, int fd, uint64_t id, struct page_cache *pages)
{
	struct elf_image *img = calloc(1, sizeof(*img));

	*out = NULL;
	if (!img) {
		close(fd);
		return -ENOMEM;
	}
	img->pages = pages;
	img->source = (struct page_source){ .fd = fd, .id = id };
	parse(img);
	*out = img;
	return 0;
}

void elf_image__free(struct elf_image *img)
{
	if (!img)
		return;
	symtab__free(img->symtab);
	close(img->source.fd);
	free(img);
}

int elf_image__vaddr(const struct elf_image *img, uint64_t offset, bool is_exec, uint64_t *vaddr)
{
	for (unsigned i = 0; i < img->n_segments; i++) {
		const struct elf_segment *s = &img->segments[i];

		if (is_exec && !s->is_exec)
			continue;
		if (offset >= s->offset && offset - s->offset < s->filesz) {
			*vaddr = s->vaddr + (offset - s->offset);
			return 0;
		}
	}
	return -ENOENT;
}

/*
 * The addend of the relative relocation at vaddr. Linkers put these first and sort
 * them (DT_RELACOUNT); in a file where they do not, nothing is found.
 */
static int find_addend(const struct elf_image *img, uint64_t vaddr, uint64_t *addend)
{
	uint64_t lo = 0, hi = img->rela_count;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		Elf64_Rela r;

		if (read_at(img, img->rela_offset + mid * sizeof(r), &r, sizeof(r)))
			return -ENOENT;
		if (r.r_offset == vaddr) {
			if (ELF64_R_TYPE(r.r_info) != R_X86_64_RELATIVE)
				return -ENOENT;
			*addend = (uint64_t)r.r_addend;
			return 0;
		}
		if (r.r_offset < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -ENOENT;
}

int elf_image__pointer(const struct elf_image *img, uint64_t offset, uint64_t *value)
{
	uint64_t vaddr;

	if (elf_image__vaddr(img, offset, false, &vaddr))
		return -ENOENT;
	if (!find_addend(img, vaddr, value))
		return 0;
	/* Not relocated, or relocated in place (-z pack-relative-relocs). */
	if (read_at(img, offset, value, sizeof(*value)) || !*value)
		return -ENOENT;
	return 0;
}

int elf_image__function(struct elf_image *img, uint64_t vaddr, size_t *budget, char *buf,
			size_t cap)
{
	if (!img->symtab_tried) {
		int err = symtab__load(&img->symtab, img, budget);

		if (err == -ENOMEM)
			return err;
		img->symtab_tried = true;
	}
	if (!img->symtab)
		return -ENOENT;
	return symtab__function(img->symtab, img, vaddr, buf, cap);
}
