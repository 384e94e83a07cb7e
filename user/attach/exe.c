/* SPDX-License-Identifier: BSD-2-Clause */
/* See exe.h. */
#include "user/attach/exe.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/attach/notes.h"

/*
 * Of symbols and their names, in all tables together: no OCaml program comes near. Files with
 * holes can have any number of large tables, all in the same place, for next to no disk.
 */
#define MAX_TABLE_BYTES (256ull << 20)

/* Of text and data, in all sections together, for one pattern. */
#define MAX_SEARCH_BYTES (1ull << 30)

/* How much of the file is searched at a time. */
#define CHUNK_BYTES (1u << 20)

/* The last bytes of a bytecode executable: this and a three-digit version. */
#define BYTECODE_MAGIC "Caml1999X"
#define BYTECODE_MAGIC_BYTES 12

/*
 * Byte strings to search for. The first byte stands for a NUL: written so, these
 * constants are not themselves found when heapsonde looks at heapsonde.
 */
struct pattern {
	const char *bytes;
	size_t len;
};
#define PATTERN(text) { text, sizeof(text) - 1 }

/*
 * What is left of the runtime in a program without any symbols. Each runtime,
 * native or not, reads this variable; the pattern includes both NULs so that
 * text which merely mentions it does not count.
 */
static const struct pattern runtime_pattern = PATTERN("?OCAMLRUNPARAM\0");

/*
 * The name of a predefined exception as a native OCaml string constant: in
 * writable data, after its header (whose last byte is 0), padded to whole words,
 * the number of padding bytes last. ocamlopt puts one into every program.
 */
static const struct pattern native_pattern = PATTERN("?Undefined_recursive_module\0\0\0\0\0\5");

/* An entry of the bytecode interpreter's table of primitive names. */
static const struct pattern bytecode_pattern = PATTERN("?caml_register_named_value\0");

/* ---- symbols ---------------------------------------------------------------- */

struct symbols {
	bool complete;   /* there was a .symtab, so that what is absent is absent */
	bool interprete; /* the bytecode interpreter */
	bool frametable; /* made by ocamlopt for each native program */
	bool runtime;    /* the native runtime's entries, here or in a library */
	uint64_t left;   /* bytes of tables that may still be read */
};

static void note_symbol(struct symbols *found, const char *name)
{
	if (strncmp(name, "caml_", 5))
		return;
	name += 5;
	/* The first up to OCaml 5.2, the second since. */
	if (!strcmp(name, "interprete") || !strcmp(name, "bytecode_interpreter"))
		found->interprete = true;
	else if (!strcmp(name, "frametable"))
		found->frametable = true;
	/* The last one is called by OCaml code, also where C's main is in the library. */
	else if (!strcmp(name, "main") || !strcmp(name, "startup") ||
		 !strcmp(name, "startup_exn") || !strcmp(name, "call_gc"))
		found->runtime = true;
}

static void read_symbols(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, struct symbols *found)
{
	Elf_Scn *str_scn = elf_getscn(elf, sh->sh_link);
	Elf_Data *syms, *strs;
	GElf_Shdr str_sh;
	size_t n;

	if (!str_scn || !gelf_getshdr(str_scn, &str_sh) || str_sh.sh_type != SHT_STRTAB ||
	    sh->sh_size > found->left || str_sh.sh_size > found->left - sh->sh_size)
		return;
	found->left -= sh->sh_size + str_sh.sh_size;
	syms = elf_getdata(scn, NULL);
	strs = elf_getdata(str_scn, NULL);
	if (!syms || !syms->d_buf || !strs || !strs->d_buf || !strs->d_size)
		return;
	/* With a NUL at its end every string inside the table ends inside it. */
	if (((const char *)strs->d_buf)[strs->d_size - 1])
		return;
	n = syms->d_size / sizeof(Elf64_Sym);
	for (size_t i = 0; i < n; i++) {
		const Elf64_Sym *sym = (const Elf64_Sym *)syms->d_buf + i;

		if (sym->st_name < strs->d_size)
			note_symbol(found, (const char *)strs->d_buf + sym->st_name);
	}
	if (sh->sh_type == SHT_SYMTAB)
		found->complete = true;
}

static void find_symbols(Elf *elf, struct symbols *found)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh) &&
		    (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM))
			read_symbols(elf, scn, &sh, found);
	}
}

/* ---- text and data ---------------------------------------------------------- */

static bool chunk_contains(const char *chunk, size_t len, const struct pattern *pat)
{
	const char *end = chunk + len, *p = chunk;

	while ((p = memmem(p, (size_t)(end - p), pat->bytes + 1, pat->len - 1))) {
		if (p > chunk && !p[-1])
			return true;
		p++;
	}
	return false;
}

/* What is searched, and how. */
struct search {
	int fd;
	const struct pattern *pattern;
	char *chunk;   /* CHUNK_BYTES */
	uint64_t left; /* bytes that may still be searched */
};

/*
 * Do len bytes of the file from offset contain the pattern? 1, 0 or -errno. No more than
 * s->left of them are looked at.
 */
static int range_contains(struct search *s, uint64_t offset, uint64_t len)
{
	const struct pattern *pat = s->pattern;
	uint64_t end;

	if (__builtin_add_overflow(offset, len, &end) || end > INT64_MAX)
		return 0;
	if (len > s->left)
		end = offset + s->left;
	s->left -= end - offset;
	while (end - offset >= pat->len) {
		size_t want = end - offset < CHUNK_BYTES ? end - offset : CHUNK_BYTES;
		ssize_t n = pread(s->fd, s->chunk, want, (off_t)offset);

		if (n < 0)
			return -errno;
		if (chunk_contains(s->chunk, (size_t)n, pat))
			return 1;
		if ((size_t)n < pat->len)
			return 0;
		offset += (size_t)n - (pat->len - 1); /* it may straddle two chunks */
	}
	return 0;
}

/*
 * Search the constants (writable false) or the data (true): by sections, which
 * leave out code and unwind tables, or by segments in a file without sections.
 */
static int file_contains(Elf *elf, int fd, bool writable, const struct pattern *pat, char *chunk)
{
	struct search s = { fd, pat, chunk, MAX_SEARCH_BYTES };
	Elf_Scn *scn = NULL;
	bool sections = false;
	size_t n = 0;
	int ret = 0;

	while (!ret && (scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_PROGBITS ||
		    !(sh.sh_flags & SHF_ALLOC))
			continue;
		sections = true;
		if (sh.sh_flags & SHF_EXECINSTR || !(sh.sh_flags & SHF_WRITE) == writable)
			continue;
		ret = range_contains(&s, sh.sh_offset, sh.sh_size);
	}
	if (sections || ret || elf_getphdrnum(elf, &n))
		return ret;
	for (size_t i = 0; !ret && i < n; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD &&
		    !(ph.p_flags & PF_W) != writable)
			ret = range_contains(&s, ph.p_offset, ph.p_filesz);
	}
	return ret;
}

/* The kind of a program that was stripped of every symbol, or a negative errno. */
static int kind_by_text(Elf *elf, int fd)
{
	char *chunk = malloc(CHUNK_BYTES);
	int ret;

	if (!chunk)
		return -ENOMEM;
	ret = file_contains(elf, fd, false, &runtime_pattern, chunk);
	if (ret != 1)
		goto out;
	ret = file_contains(elf, fd, true, &native_pattern, chunk);
	if (ret == 1)
		ret = TARGET_NATIVE;
	if (ret)
		goto out;
	ret = file_contains(elf, fd, false, &bytecode_pattern, chunk);
	if (ret == 1)
		ret = TARGET_BYTECODE;
out:
	free(chunk);
	return ret;
}

static bool has_bytecode_trailer(int fd)
{
	char magic[BYTECODE_MAGIC_BYTES];
	struct stat st;

	return !fstat(fd, &st) && st.st_size > (off_t)sizeof(magic) &&
	       pread(fd, magic, sizeof(magic), st.st_size - (off_t)sizeof(magic)) ==
		       (ssize_t)sizeof(magic) &&
	       !memcmp(magic, BYTECODE_MAGIC, strlen(BYTECODE_MAGIC));
}

/*
 * A script started as `ocamlrun prog.byte`, or through #!, runs the file
 * ocamlrun, so the script itself need not be looked at.
 */
static int ocaml_kind(Elf *elf, int fd)
{
	struct symbols found = { .left = MAX_TABLE_BYTES };

	if (has_bytecode_trailer(fd))
		return TARGET_BYTECODE;
	find_symbols(elf, &found);
	if (found.interprete)
		return TARGET_BYTECODE;
	if (found.frametable && found.runtime)
		return TARGET_NATIVE;
	if (found.complete)
		return TARGET_NOT_OCAML;
	return kind_by_text(elf, fd);
}

/* ---- the whole file --------------------------------------------------------- */

static int inspect_elf(Elf *elf, int fd, struct exe_info *out, struct hs_error *err)
{
	struct hs_error notes_err;
	uint64_t offset;
	GElf_Ehdr eh;
	int notes, kind;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh))
		return 0;
	out->entry = eh.e_entry;
	notes = notes__read(fd, &out->probes, &notes_err);
	if (!notes) {
		out->kind = TARGET_PROBED;
		if (notes__file_offset(elf, out->probes.registry_vaddr, sizeof(out->registry), PF_W,
				       &offset) ||
		    pread(fd, &out->registry, sizeof(out->registry), (off_t)offset) !=
			    (ssize_t)sizeof(out->registry))
			memset(&out->registry, 0, sizeof(out->registry));
		return 0;
	}
	memset(&out->probes, 0, sizeof(out->probes));
	kind = ocaml_kind(elf, fd);
	if (kind < 0)
		return hs_error__set(err, kind, "cannot read the executable: %s", strerror(-kind));
	/* Anybody's notes may be malformed; that matters in OCaml programs only. */
	if (kind == TARGET_NATIVE && notes != -ENOENT)
		return hs_error__set(err, notes, "%s", notes_err.text);
	out->kind = kind;
	return 0;
}

int exe__inspect(int fd, struct exe_info *out, struct hs_error *err)
{
	Elf *elf;
	int ret = notes__is_elf(fd);

	memset(out, 0, sizeof(*out));
	if (ret < 0)
		return hs_error__set(err, -EIO, "cannot read the executable: %s", strerror(-ret));
	if (!ret)
		return 0;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return hs_error__set(err, -EIO, "cannot read the executable: %s", elf_errmsg(-1));
	ret = inspect_elf(elf, fd, out, err);
	elf_end(elf);
	return ret;
}

/* ---- cache ------------------------------------------------------------------ */

struct cached_exe {
	dev_t dev;
	ino_t ino;
	int ret;
	struct exe_info info;
	struct hs_error err;
};

struct exe_cache {
	struct cached_exe *exes;
	size_t len, capacity;
};

int exe_cache__new(struct exe_cache **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void exe_cache__free(struct exe_cache *cache)
{
	if (!cache)
		return;
	free(cache->exes);
	free(cache);
}

static struct cached_exe *append(struct exe_cache *cache)
{
	if (cache->len == cache->capacity) {
		size_t capacity = cache->capacity ? 2 * cache->capacity : 32;
		struct cached_exe *exes = reallocarray(cache->exes, capacity, sizeof(*exes));

		if (!exes)
			return NULL;
		cache->exes = exes;
		cache->capacity = capacity;
	}
	return &cache->exes[cache->len++];
}

int exe_cache__inspect(struct exe_cache *cache, int fd, const struct stat *st, struct exe_info *out,
		       struct hs_error *err)
{
	struct cached_exe *e = NULL;

	if (!cache)
		return exe__inspect(fd, out, err);
	for (size_t i = 0; i < cache->len && !e; i++)
		if (cache->exes[i].ino == st->st_ino && cache->exes[i].dev == st->st_dev)
			e = &cache->exes[i];
	if (!e) {
		e = append(cache);
		if (!e)
			return hs_error__set(err, -ENOMEM, "out of memory");
		memset(e, 0, sizeof(*e));
		e->dev = st->st_dev;
		e->ino = st->st_ino;
		e->ret = exe__inspect(fd, &e->info, &e->err);
	}
	*out = e->info;
	return e->ret ? hs_error__set(err, e->ret, "%s", e->err.text) : 0;
}
