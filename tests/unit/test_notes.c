/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of probe notes, on real ELF files and on damaged ones. */
#include "tests/unit/probe_program.h"

#include <gelf.h>
#include <sys/stat.h>

#include "user/attach/notes.h"

/* The kernel's own view of a site and a semaphore, by their offsets in the file. */
static void check_site(int fd, const struct probe_site *site, unsigned sem_value)
{
	unsigned char nop;
	uint16_t sem;

	assert_int_equal(pread(fd, &nop, 1, (off_t)site->offset), 1);
	assert_int_equal(nop, 0x90);
	assert_int_equal(notes__site_has_nop10(fd, site->offset), 1);
	assert_int_equal(pread(fd, &sem, 2, (off_t)site->sem_offset), 2);
	assert_int_equal(sem, sem_value);
}

static void check_all(int fd, const struct probe_set *set)
{
	unsigned n = 1;

	for (int k = 0; k < SONDE_TIERS; k++)
		check_site(fd, &set->alloc[k], n++);
	for (int i = 0; i < SONDE_STACK_CLASSES; i++)
		check_site(fd, &set->stack[i], n++);
	check_site(fd, &set->minor_end, n++);
	check_site(fd, &set->major_end, n++);
	check_site(fd, &set->compact, n++);
	check_site(fd, &set->domain_spawn, n++);
	check_site(fd, &set->domain_terminate, n++);
	check_site(fd, &set->exit, n++);
	assert_null(notes__missing(set));
}

/* The registry's address leads to the registry. */
static void check_registry(int fd, uint64_t vaddr)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	struct sonde_registry reg;
	uint64_t offset;

	assert_int_equal(notes__file_offset(elf, vaddr, sizeof(reg), PF_W, &offset), 0);
	elf_end(elf);
	assert_int_equal(pread(fd, &reg, sizeof(reg), (off_t)offset), sizeof(reg));
	assert_int_equal(reg.abi_version, SONDE_ABI_VERSION);
	assert_string_equal(reg.ocaml_version, "5.3.0");
}

static int read_file(const char *name, struct probe_set *set, struct hs_error *err)
{
	int fd = open(program__path(name), O_RDONLY | O_CLOEXEC), ret;

	assert_true(fd >= 0);
	err->text[0] = 0;
	ret = notes__read(fd, set, err);
	close(fd);
	return ret;
}

static void expect_all(const char *name)
{
	int fd = open(program__path(name), O_RDONLY | O_CLOEXEC);
	struct probe_set set;
	struct hs_error err;

	assert_true(fd >= 0);
	assert_int_equal(notes__read(fd, &set, &err), 0);
	check_all(fd, &set);
	check_registry(fd, set.registry_vaddr);
	close(fd);
}

static void finds_every_probe(void **state)
{
	(void)state;
	program__compile("pie", BASE ALL_PROBES REGISTRY_NOTE, GOOD_REGISTRY_C MAIN_C,
			 "-pie -fPIE");
	expect_all("pie");
	program__sh("strip %s", program__path("pie"));
	expect_all("pie");
	program__compile("static", BASE ALL_PROBES REGISTRY_NOTE, GOOD_REGISTRY_C MAIN_C,
			 "-static -no-pie");
	expect_all("static");
	/* Without .stapsdt.base addresses are taken as they are. */
	program__compile("nobase", ".set _.stapsdt.base, 0x1234\n" ALL_PROBES REGISTRY_NOTE,
			 GOOD_REGISTRY_C MAIN_C, "-no-pie");
	expect_all("nobase");
}

/* Notes as they look after a tool has moved sections up by a page. */
static void adjusts_moved_sections(void **state)
{
	(void)state;
	program__compile("moved",
			 BASE ALL_PROBES SITE_BYTES NOTE("990b - 4096", "_.stapsdt.base - 4096",
							 "registry - 4096",
							 TEXT("ocaml", "registry")),
			 GOOD_REGISTRY_C MAIN_C, "-no-pie");
	expect_all("moved");
}

static void expect(const char *asm_text, int code, const char *text)
{
	struct probe_set set;
	struct hs_error err;

	program__compile("bad", asm_text,
			 GOOD_REGISTRY_C MAIN_C "const short ro = 1; short zero;\n",
			 "-no-pie -fno-common");
	assert_int_equal(read_file("bad", &set, &err), code);
	if (!strstr(err.text, text))
		fail_msg("`%s` does not say `%s`", err.text, text);
}

#define ONE(pc, sem) SITE_BYTES NOTE(pc, "_.stapsdt.base", sem, TEXT("ocaml", "exit"))

static void refuses_bad_probes(void **state)
{
	(void)state;
	expect(BASE PROBE("exit", "1") PROBE("exit", "2") REGISTRY_NOTE, -EBADMSG,
	       "exit is there twice");
	expect(BASE REGISTRY_NOTE REGISTRY_NOTE, -EBADMSG, "registry is there twice");
	expect(BASE ONE("990b", "0"), -EBADMSG, "has no semaphore");
	expect(BASE ONE("990b", "990b"), -EBADMSG, "semaphore outside");
	expect(BASE ONE("990b", "registry + 1"), -EBADMSG, "semaphore outside");
	expect(BASE ONE("990b", "ro"), -EBADMSG, "semaphore outside");
	expect(BASE ONE("990b", "zero"), -EBADMSG, "semaphore outside");
	expect(BASE ONE("990b", "_DYNAMIC"), -EBADMSG, "semaphore outside"); /* RELRO */
	expect(BASE ONE("registry", "registry"), -EBADMSG, "executable");
	expect(BASE ONE("0x7fffffffffff0000", "registry"), -EBADMSG, "executable");
	expect(BASE NOTE("0", "_.stapsdt.base", "ro", TEXT("ocaml", "registry")), -EBADMSG,
	       "writable");
	expect(BASE NOTE("0", "0", "0", ".ascii \"ocaml\""), -EBADMSG, "does not end");
	expect(BASE NOTE("0", "0", "0", ".asciz \"ocaml\""), -EBADMSG, "does not end");
	expect(".pushsection .note.stapsdt, \"\", @note\n.4byte 8, 8, 3\n.asciz \"stapsdt\"\n"
	       ".8byte 0\n.popsection\n",
	       -EBADMSG, "too short");
	expect(".pushsection .note.stapsdt, \"\", @note\n.4byte 8, 4096, 3\n.asciz \"stapsdt\"\n"
	       ".8byte 0\n.popsection\n",
	       -EBADMSG, "past its section");
}

static void passes_over_what_is_not_ours(void **state)
{
	struct probe_set set;
	struct hs_error err;

	(void)state;
	expect("", -ENOENT, "no probe notes");
	expect(BASE SITE_BYTES NOTE("990b", "_.stapsdt.base", "0", TEXT("libc", "setjmp")), -ENOENT,
	       "no probe notes");
	/* Probes of another runtime by the same provider name. */
	expect(BASE PROBE("gc_begin", "1"), -ENOENT, "no probe notes");
	/* Other kinds of notes, names that almost fit, names of the future. */
	program__compile("mixed",
			 BASE ".pushsection .note.stapsdt, \"\", @note\n"
			      ".4byte 4, 0, 9\n.asciz \"abc\"\n.popsection\n" PROBE("alloc_00", "1")
				      PROBE("alloc_25", "1") PROBE("stack_17", "1")
					      PROBE("tomorrow", "1") ALL_PROBES REGISTRY_NOTE,
			 GOOD_REGISTRY_C MAIN_C, "-no-pie");
	expect_all("mixed");
	program__sh("echo hello > %s; : > %s", program__path("text"), program__path("empty"));
	assert_int_equal(read_file("text", &set, &err), -ENOENT);
	assert_int_equal(read_file("empty", &set, &err), -ENOENT);
	assert_int_equal(notes__read(-1, &set, &err), -EIO);
}

static void names_what_is_missing(void **state)
{
	struct probe_set set;
	struct hs_error err;

	(void)state;
	program__compile("partial", BASE MOST_GC_PROBES REGISTRY_NOTE, GOOD_REGISTRY_C MAIN_C, "");
	assert_int_equal(read_file("partial", &set, &err), 0);
	assert_string_equal(notes__missing(&set), "alloc_0");
	memset(&set, 1, sizeof(set));
	assert_null(notes__missing(&set));
	set.stack[3].sem_offset = 0;
	assert_string_equal(notes__missing(&set), "stack_128");
	set.stack[3].sem_offset = 1;
	set.exit.offset = 0;
	assert_string_equal(notes__missing(&set), "exit");
	set.exit.offset = 1;
	set.registry_vaddr = 0;
	assert_string_equal(notes__missing(&set), "registry");
}

static void recognizes_the_ten_byte_nop(void **state)
{
	static const unsigned char site[] = { 0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 };
	int fd = open(program__path("nops"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, site, sizeof(site), 64), sizeof(site));
	assert_int_equal(notes__site_has_nop10(fd, 64), 1);
	assert_int_equal(notes__site_has_nop10(fd, 63), 0);
	assert_int_equal(notes__site_has_nop10(fd, 65), 0); /* and the file ends */
	assert_int_equal(notes__site_has_nop10(fd, UINT64_MAX - 4), -EINVAL);
	/* The last place where the ten bytes still lie in one page, and the next. */
	assert_int_equal(pwrite(fd, site, sizeof(site), 4096 - 11), sizeof(site));
	assert_int_equal(notes__site_has_nop10(fd, 4096 - 11), 1);
	assert_int_equal(pwrite(fd, site, sizeof(site), 8192 - 10), sizeof(site));
	assert_int_equal(notes__site_has_nop10(fd, 8192 - 10), 0);
	assert_int_equal(pwrite(fd, site, sizeof(site), 12288 - 1), sizeof(site));
	assert_int_equal(notes__site_has_nop10(fd, 12288 - 1), 1);
	close(fd);
	assert_int_equal(notes__site_has_nop10(-1, 64), -EBADF);
}

/* Whatever the bytes: an answer, in bounds (the sanitizers watch). */
static void survives_damage(void **state)
{
	static unsigned char good[1 << 16], bad[1 << 16];
	unsigned seed = 1, accepted = 0;
	struct probe_set set;
	struct hs_error err;
	struct stat st;
	ssize_t size;
	int fd;

	(void)state;
	program__compile("victim", BASE ALL_PROBES REGISTRY_NOTE, GOOD_REGISTRY_C MAIN_C, "-s");
	fd = open(program__path("victim"), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	size = pread(fd, good, sizeof(good), 0);
	assert_int_equal(size, st.st_size);
	for (int round = 0; round < 4000; round++) {
		int ret;

		memcpy(bad, good, (size_t)size);
		for (int i = rand_r(&seed) % 4; i >= 0; i--) {
			/* Everything, or the ELF header, or the last tables. */
			static const unsigned from[] = { 0, 0, 1 }, span[] = { 1, 64, 3 };
			unsigned where = (unsigned)rand_r(&seed), part = where / 7 % 3;
			size_t start = from[part] ? (size_t)size * 2 / 3 : 0;
			size_t len = part == 1 ? span[1] : (size_t)size / span[part];

			bad[start + (where / 64) % len] = (unsigned char)rand_r(&seed);
		}
		assert_int_equal(pwrite(fd, bad, (size_t)size, 0), size);
		ret = notes__read(fd, &set, &err);
		accepted += ret == 0;
		assert_true(ret == 0 || ret == -ENOENT || ret == -EBADMSG || ret == -EIO);
	}
	assert_in_range(accepted, 1, 3999);
	assert_int_equal(pwrite(fd, good, (size_t)size, 0), size);
	for (off_t len = size - 1; len >= 0; len -= 61) {
		assert_int_equal(ftruncate(fd, len), 0);
		assert_int_not_equal(notes__read(fd, &set, &err), 0);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_every_probe),
		cmocka_unit_test(adjusts_moved_sections),
		cmocka_unit_test(refuses_bad_probes),
		cmocka_unit_test(passes_over_what_is_not_ours),
		cmocka_unit_test(names_what_is_missing),
		cmocka_unit_test(recognizes_the_ten_byte_nop),
		cmocka_unit_test(survives_damage),
	};

	return cmocka_run_group_tests(tests, NULL, program__cleanup);
}
