/* SPDX-License-Identifier: BSD-2-Clause */
/* See notes.h. */
#include "user/attach/notes.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* SystemTap's note: owner, type, and three addresses before the strings. */
#define NOTE_OWNER "stapsdt"
#define NOTE_TYPE 3
#define NOTE_ADDRS 3

/* In all sections. Far more than any real program has; bounds what a hostile file can cost. */
#define MAX_NOTE_BYTES (16u << 20)

/* The linker gives some 40; with a section for each function it may be 100,000. */
#define MAX_SECTIONS (1u << 20)

#define PAGE_BYTES 4096

static const unsigned char nop_nop10[] = { 0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 };

struct reader {
	Elf *elf;
	bool have_base;
	uint64_t base; /* address of .stapsdt.base now */
	uint64_t left; /* bytes of notes that may still be read */
	struct probe_set *set;
	struct hs_error *err;
};

/*
 * The probes by name. Both the reader and the completeness check walk the same
 * list: i = 0 .. and NULL at its end.
 */
static struct probe_site *site_at(struct probe_set *set, unsigned i, char *name, size_t size)
{
	const struct {
		const char *name;
		struct probe_site *site;
	} fixed[] = {
		{ "minor_end", &set->minor_end },
		{ "major_end", &set->major_end },
		{ "compact", &set->compact },
		{ "domain_spawn", &set->domain_spawn },
		{ "domain_terminate", &set->domain_terminate },
		{ "exit", &set->exit },
	};

	if (i < SONDE_TIERS) {
		snprintf(name, size, "alloc_%u", i);
		return &set->alloc[i];
	}
	i -= SONDE_TIERS;
	if (i < SONDE_STACK_CLASSES) {
		snprintf(name, size, "stack_%u", SONDE_STACK_MIN << i);
		return &set->stack[i];
	}
	i -= SONDE_STACK_CLASSES;
	if (i < sizeof(fixed) / sizeof(fixed[0])) {
		snprintf(name, size, "%s", fixed[i].name);
		return fixed[i].site;
	}
	return NULL;
}

static struct probe_site *site_by_name(struct probe_set *set, const char *wanted)
{
	struct probe_site *site;
	char name[24];

	for (unsigned i = 0; (site = site_at(set, i, name, sizeof(name))); i++)
		if (!strcmp(name, wanted))
			return site;
	return NULL;
}

const struct probe_site *notes__site(const struct probe_set *set, unsigned i, char *name,
				     size_t size)
{
	/* site_at is the reader's, who fills in; here it comes back as it went in. */
	return site_at((struct probe_set *)set, i, name, size);
}

const char *notes__missing(const struct probe_set *set)
{
	/* A copy, since site_at hands out pointers for the reader to fill. */
	struct probe_set copy = *set;
	struct probe_site *site;
	static char name[24];

	for (unsigned i = 0; (site = site_at(&copy, i, name, sizeof(name))); i++)
		if (!site->offset || !site->sem_offset)
			return name;
	return set->registry_vaddr ? NULL : "registry";
}

/* From an address to the offset in the file of the segment that holds it, or back. */
static int translate(Elf *elf, bool to_offset, uint64_t from, uint64_t len, uint32_t flags,
		     uint64_t *to)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return -ENOENT;
	for (size_t i = 0; i < n; i++) {
		uint64_t begin, other, delta;
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph))
			return -ENOENT;
		begin = to_offset ? ph.p_vaddr : ph.p_offset;
		other = to_offset ? ph.p_offset : ph.p_vaddr;
		if (ph.p_type != PT_LOAD || (ph.p_flags & flags) != flags || from < begin)
			continue;
		delta = from - begin;
		if (delta >= ph.p_filesz || len > ph.p_filesz - delta)
			continue;
		if (__builtin_add_overflow(other, delta, to))
			continue;
		/* No file has more, and offsets are signed where they go. */
		if (to_offset && *to > INT64_MAX - len)
			continue;
		return 0;
	}
	return -ENOENT;
}

int notes__file_offset(Elf *elf, uint64_t vaddr, uint64_t len, uint32_t flags, uint64_t *offset)
{
	return translate(elf, true, vaddr, len, flags, offset);
}

int notes__vaddr(Elf *elf, uint64_t offset, uint64_t len, uint32_t flags, uint64_t *vaddr)
{
	return translate(elf, false, offset, len, flags, vaddr);
}

/* Is vaddr made read-only by the dynamic linker? The kernel could not count there. */
static bool in_relro(Elf *elf, uint64_t vaddr)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_GNU_RELRO &&
		    vaddr >= ph.p_vaddr && vaddr - ph.p_vaddr < ph.p_memsz)
			return true;
	}
	return false;
}

static int bad(struct reader *r, const char *what)
{
	return hs_error__set(r->err, -EBADMSG, "malformed probe notes: %s", what);
}

static int bad_probe(struct reader *r, const char *name, const char *what)
{
	return hs_error__set(r->err, -EBADMSG, "malformed probe notes: probe %s %s", name, what);
}

static int add_registry(struct reader *r, uint64_t vaddr)
{
	uint64_t offset;

	if (r->set->registry_vaddr)
		return bad_probe(r, "registry", "is there twice");
	/* Only the head: another version's structure may have another size. */
	if (!vaddr || vaddr % 8 || notes__file_offset(r->elf, vaddr, 8, PF_W, &offset))
		return bad_probe(r, "registry", "does not lie in writable data");
	r->set->registry_vaddr = vaddr;
	return 0;
}

static int add_probe(struct reader *r, const char *name, uint64_t pc, uint64_t sem)
{
	struct probe_site *site, found = { .sem_vaddr = sem };

	if (!strcmp(name, "registry"))
		return add_registry(r, sem);
	site = site_by_name(r->set, name);
	if (!site)
		return 0;
	if (site->offset)
		return bad_probe(r, name, "is there twice");
	if (notes__file_offset(r->elf, pc, 1, PF_X, &found.offset) || !found.offset)
		return bad_probe(r, name, "does not lie in executable code");
	if (!sem)
		return bad_probe(r, name, "has no semaphore");
	if (sem % 2 || notes__file_offset(r->elf, sem, 2, PF_W, &found.sem_offset) ||
	    !found.sem_offset || in_relro(r->elf, sem))
		return bad_probe(r, name, "has a semaphore outside writable data");
	*site = found;
	return 0;
}

/* Cut one NUL-terminated string off *p; NULL if no NUL comes before end. */
static const char *take_string(const char **p, const char *end)
{
	const char *s = *p, *nul = memchr(s, 0, (size_t)(end - s));

	if (nul)
		*p = nul + 1;
	return nul ? s : NULL;
}

static int read_note(struct reader *r, const char *desc, size_t size)
{
	uint64_t addr[NOTE_ADDRS], shift;
	const char *p = desc + sizeof(addr), *end = desc + size;
	const char *provider, *name, *args;

	if (size < sizeof(addr))
		return bad(r, "a note is too short");
	memcpy(addr, desc, sizeof(addr));
	provider = take_string(&p, end);
	name = provider ? take_string(&p, end) : NULL;
	args = name ? take_string(&p, end) : NULL;
	if (!args)
		return bad(r, "a note's text does not end");
	if (strcmp(provider, SONDE_PROVIDER))
		return 0;

	/*
	 * Addresses were written by the linker. Prelink and the like move
	 * sections without touching notes; .stapsdt.base tells how far.
	 * Unsigned wrap-around is meant: sections move down too.
	 */
	shift = r->have_base ? r->base - addr[1] : 0;
	return add_probe(r, name, addr[0] + shift, addr[2] ? addr[2] + shift : 0);
}

static int read_section(struct reader *r, Elf_Scn *scn, const GElf_Shdr *sh)
{
	size_t offset = 0, next, name_at, desc_at;
	Elf_Data *data;
	GElf_Nhdr nh;

	if (sh->sh_type != SHT_NOTE || sh->sh_size > r->left)
		return bad(r, "not a note section");
	r->left -= sh->sh_size;
	data = elf_getdata(scn, NULL);
	if (!data || (data->d_size && !data->d_buf))
		return bad(r, "the section lies outside the file");
	while (offset < data->d_size) {
		const char *owner;
		int ret;

		next = gelf_getnote(data, offset, &nh, &name_at, &desc_at);
		if (!next)
			return bad(r, "a note runs past its section");
		owner = (const char *)data->d_buf + name_at;
		if (nh.n_type == NOTE_TYPE && nh.n_namesz == sizeof(NOTE_OWNER) &&
		    !memcmp(owner, NOTE_OWNER, sizeof(NOTE_OWNER))) {
			ret = read_note(r, (const char *)data->d_buf + desc_at, nh.n_descsz);
			if (ret)
				return ret;
		}
		offset = next;
	}
	return 0;
}

static int each_section(struct reader *r, const char *wanted,
			int (*fn)(struct reader *, Elf_Scn *, const GElf_Shdr *))
{
	Elf_Scn *scn = NULL;
	size_t strings;

	if (elf_getshdrstrndx(r->elf, &strings))
		return 0;
	while ((scn = elf_nextscn(r->elf, scn))) {
		const char *name;
		GElf_Shdr sh;
		int ret;

		if (!gelf_getshdr(scn, &sh))
			continue;
		name = elf_strptr(r->elf, strings, sh.sh_name);
		if (!name || strcmp(name, wanted))
			continue;
		ret = fn(r, scn, &sh);
		if (ret)
			return ret;
	}
	return 0;
}

static int set_base(struct reader *r, Elf_Scn *scn, const GElf_Shdr *sh)
{
	(void)scn;
	r->base = sh->sh_addr;
	r->have_base = true;
	return 0;
}

/* The number of sections, in the first of them if it is large. */
static bool has_few_sections(int fd, const Elf64_Ehdr *eh)
{
	Elf64_Shdr first;

	if (eh->e_shnum || !eh->e_shoff)
		return true;
	return eh->e_shoff <= INT64_MAX &&
	       pread(fd, &first, sizeof(first), (off_t)eh->e_shoff) == (ssize_t)sizeof(first) &&
	       first.sh_size <= MAX_SECTIONS;
}

int notes__is_elf(int fd)
{
	Elf64_Ehdr eh;
	ssize_t n = pread(fd, &eh, sizeof(eh), 0);

	if (n < 0)
		return -errno;
	if (n != (ssize_t)sizeof(eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB ||
	    eh.e_machine != EM_X86_64)
		return 0;
	return eh.e_phnum != PN_XNUM && has_few_sections(fd, &eh);
}

int notes__read(int fd, struct probe_set *out, struct hs_error *err)
{
	struct reader r = { .set = out, .err = err, .left = MAX_NOTE_BYTES };
	int ret = notes__is_elf(fd);

	memset(out, 0, sizeof(*out));
	if (ret < 0)
		return hs_error__set(err, -EIO, "cannot read the executable: %s", strerror(-ret));
	if (!ret)
		return hs_error__set(err, -ENOENT, "no probe notes");
	elf_version(EV_CURRENT);
	r.elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!r.elf)
		return hs_error__set(err, -EIO, "cannot read the executable: %s", elf_errmsg(-1));
	ret = hs_error__set(err, -ENOENT, "no probe notes");
	if (elf_kind(r.elf) != ELF_K_ELF)
		goto out;
	each_section(&r, ".stapsdt.base", set_base);
	ret = each_section(&r, ".note.stapsdt", read_section);
	if (!ret && !out->registry_vaddr)
		ret = hs_error__set(err, -ENOENT, "no probe notes");
out:
	elf_end(r.elf);
	return ret;
}

int notes__site_has_nop10(int fd, uint64_t offset)
{
	unsigned char bytes[sizeof(nop_nop10)];
	ssize_t n;

	if (offset > INT64_MAX - sizeof(bytes))
		return -EINVAL;
	/* The kernel replaces the ten bytes together, so within one page. */
	if ((offset + 1) / PAGE_BYTES != (offset + sizeof(nop_nop10) - 1) / PAGE_BYTES)
		return 0;
	n = pread(fd, bytes, sizeof(bytes), (off_t)offset);
	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(bytes) && !memcmp(bytes, nop_nop10, sizeof(bytes));
}
