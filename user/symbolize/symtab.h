/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of one ELF file by address, for frames without debug information.
 *
 * In:   the sections .symtab or, in a stripped file, .dynsym (ocamlopt exports its
 *       functions), and the string table that goes with it.
 * Out:  symbol names, for elf_image.c.
 *
 * Only addresses are kept in memory, 16 bytes a function; names are read from the
 * file when asked for.
 */
#ifndef HEAPSONDE_SYMTAB_H
#define HEAPSONDE_SYMTAB_H

#include <stddef.h>
#include <stdint.h>

struct elf_image;
struct symtab;

/*
 * Read the symbol table of img. *budget: symbols that may be read, lowered by what
 * was read. Errors: -ENOENT (none, or no budget left), -ENOMEM; *out is NULL then.
 */
int symtab__load(struct symtab **out, const struct elf_image *img, size_t *budget);

/* NULL is fine. */
void symtab__free(struct symtab *t);

/*
 * Copy the name of the function that contains the link-time address vaddr, cut off
 * at cap - 1 bytes. 0 or -ENOENT.
 */
int symtab__function(const struct symtab *t, const struct elf_image *img, uint64_t vaddr, char *buf,
		     size_t cap);

#endif /* HEAPSONDE_SYMTAB_H */
