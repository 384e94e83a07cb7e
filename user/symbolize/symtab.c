/* SPDX-License-Identifier: BSD-2-Clause */
/* See symtab.h. */
#include "user/symbolize/symtab.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/symbolize/elf_image.h"

#define MAX_SECTIONS (1u << 20)
#define CHUNK_SYMS 2048u
/* Functions that start before an address and may still reach it. */
#define MAX_OVERLAP 8

struct function_symbol {
	uint64_t vaddr;
	uint32_t size;
	uint32_t name; /* offset in the string table */
};

struct symtab {
	uint64_t strings; /* file offset */
	uint64_t strings_bytes;
	size_t n, cap;
	struct function_symbol *functions; /* by vaddr, then size */
};

static int read_section(const struct elf_image *img, uint64_t i, Elf64_Shdr *sh)
{
	return page_cache__read(img->pages, &img->source, img->shoff + i * sizeof(*sh), sh,
				sizeof(*sh));
}

/* The first section of a type that has a string table; its header and that one's. */
static int find_table(const struct elf_image *img, uint32_t type, Elf64_Shdr *table,
		      Elf64_Shdr *strings)
{
	for (uint64_t i = 0; i < img->shnum && i < MAX_SECTIONS; i++) {
		if (read_section(img, i, table))
			return -ENOENT;
		if (table->sh_type != type || table->sh_entsize != sizeof(Elf64_Sym))
			continue;
		if (table->sh_link < img->shnum && !read_section(img, table->sh_link, strings) &&
		    strings->sh_type == SHT_STRTAB)
			return 0;
	}
	return -ENOENT;
}

static int add(struct symtab *t, const Elf64_Sym *sym)
{
	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == SHN_UNDEF ||
	    !sym->st_size || !sym->st_name)
		return 0;
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 1024;
		void *grown = reallocarray(t->functions, cap, sizeof(*t->functions));

		if (!grown)
			return -ENOMEM;
		t->functions = grown;
		t->cap = cap;
	}
	t->functions[t->n++] = (struct function_symbol){
		.vaddr = sym->st_value,
		.size = sym->st_size > UINT32_MAX ? UINT32_MAX : (uint32_t)sym->st_size,
		.name = sym->st_name,
	};
	return 0;
}

/* Past the page cache, which a long table would empty. */
static size_t read_syms(const struct elf_image *img, uint64_t offset, Elf64_Sym *syms, size_t n)
{
	size_t len = 0, want = n * sizeof(*syms);

	if (offset > INT64_MAX - want)
		return 0;
	while (len < want) {
		ssize_t r = pread(img->source.fd, (char *)syms + len, want - len,
				  (off_t)(offset + len));
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			break;
		len += (size_t)r;
	}
	return len / sizeof(*syms);
}

static int read_table(struct symtab *t, const struct elf_image *img, const Elf64_Shdr *table,
		      size_t *budget)
{
	Elf64_Sym *syms = malloc(CHUNK_SYMS * sizeof(*syms));
	uint64_t left = table->sh_size / sizeof(*syms);
	uint64_t offset = table->sh_offset;
	int err = 0;

	if (!syms)
		return -ENOMEM;
	while (left && *budget && !err) {
		size_t n = left < CHUNK_SYMS ? left : CHUNK_SYMS;

		if (n > *budget)
			n = *budget;
		n = read_syms(img, offset, syms, n);
		if (!n)
			break;
		for (size_t i = 0; i < n && !err; i++)
			err = add(t, &syms[i]);
		offset += n * sizeof(*syms);
		left -= n;
		*budget -= n;
	}
	free(syms);
	return err;
}

static int by_address(const void *a, const void *b)
{
	const struct function_symbol *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

int symtab__load(struct symtab **out, const struct elf_image *img, size_t *budget)
{
	static const uint32_t types[] = { SHT_SYMTAB, SHT_DYNSYM };
	struct symtab *t = calloc(1, sizeof(*t));
	int err = 0;

	*out = NULL;
	if (!t)
		return -ENOMEM;
	for (unsigned i = 0; i < 2 && !t->n && !err; i++) {
		Elf64_Shdr table, strings;

		if (find_table(img, types[i], &table, &strings))
			continue;
		t->strings = strings.sh_offset;
		t->strings_bytes = strings.sh_size;
		err = read_table(t, img, &table, budget);
	}
	if (!err && !t->n)
		err = -ENOENT;
	if (err) {
		symtab__free(t);
		return err;
	}
	qsort(t->functions, t->n, sizeof(*t->functions), by_address);
	*out = t;
	return 0;
}

void symtab__free(struct symtab *t)
{
	if (!t)
		return;
	free(t->functions);
	free(t);
}

static int read_name(const struct symtab *t, const struct elf_image *img, uint32_t name, char *buf,
		     size_t cap)
{
	uint64_t left, pos;
	size_t len = 0;

	if (name >= t->strings_bytes)
		return -ENOENT;
	left = t->strings_bytes - name;
	pos = t->strings + name;
	while (len < cap - 1 && left) {
		const uint8_t *from, *nul;
		size_t n = page_cache__peek(img->pages, &img->source, pos, &from);

		if (!n)
			return -ENOENT;
		if (n > left)
			n = left;
		if (n > cap - 1 - len)
			n = cap - 1 - len;
		nul = memchr(from, 0, n);
		if (nul)
			n = left = (size_t)(nul - from);
		memcpy(buf + len, from, n);
		len += n;
		pos += n;
		left -= n;
	}
	buf[len] = '\0';
	return len ? 0 : -ENOENT;
}

int symtab__function(const struct symtab *t, const struct elf_image *img, uint64_t vaddr, char *buf,
		     size_t cap)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) { /* to the first function beyond vaddr */
		size_t mid = lo + (hi - lo) / 2;

		if (t->functions[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (unsigned i = 0; i < MAX_OVERLAP && lo > 0; i++) {
		const struct function_symbol *f = &t->functions[--lo];

		if (vaddr - f->vaddr < f->size)
			return read_name(t, img, f->name, buf, cap);
	}
	return -ENOENT;
}
