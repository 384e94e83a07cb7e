/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telling executables apart: OCaml programs made by the stock compilers, with and
 * without symbols, and programs that only look like them.
 */
#include "tests/unit/probe_program.h"

#include <elf.h>
#include <sys/resource.h>

#include "user/attach/exe.h"
#include "user/attach/target.h"

static struct hs_error err;

static void expect_ocaml(const char *name, enum target_kind kind)
{
	char *argv[] = { (char *)program__path(name), NULL };
	struct running r = program__run(argv);
	struct target *t;

	assert_int_equal(target__open(&t, r.pid, &err), 0);
	assert_int_equal(t->kind, kind);
	assert_true(target__same_exe(t));
	target__free(t);
	assert_int_equal(target__open_probed(&t, r.pid, &err),
			 kind == TARGET_NATIVE ? -ENOENT : -ENOEXEC);
	assert_null(t);
	assert_non_null(strstr(err.text, kind == TARGET_NATIVE
						 ? "OCAMLPARAM='_,runtime-variant=_sonde'"
						 : "bytecode"));
	program__end(r);
}

static void tells_ocaml_programs_apart(void **state)
{
	static const char find[] = "d=${OCAML_BIN:-$(scripts/setup --ocaml-bin 2>/dev/null)}; [ -x "
				   "\"$d/ocamlopt\" ] ||"
				   " d=$(dirname \"$(command -v ocamlopt)\"); echo \"$d\"";
	char bin[256] = "";
	FILE *p = popen(find, "r");

	(void)state;
	assert_non_null(p);
	assert_non_null(fgets(bin, sizeof(bin), p));
	pclose(p);
	bin[strcspn(bin, "\n")] = 0;
	program__sh(
		"cd %s && echo 'let () = print_endline \"r\"; ignore (input_line stdin)' > a.ml && "
		"export PATH=%s:$PATH && ocamlopt a.ml -o native && "
		"ocamlopt a.ml -ccopt -static -o static 2>/dev/null && ocamlc a.ml -o byte && "
		"ocamlc -custom a.ml -o custom && ocamlc -output-complete-exe a.ml -o complete && "
		"w=$(ocamlopt -where) && ocamlopt a.ml -without-runtime -cclib -lasmrun_shared "
		"-ccopt \"-L$w -Wl,-rpath,$w\" -o shared && strip -o shared-s shared && "
		"strip -o native-s native && strip -o static-s static && strip -o complete-s "
		"complete",
		program__dir(), bin);
	expect_ocaml("native", TARGET_NATIVE);
	expect_ocaml("native-s", TARGET_NATIVE);
	expect_ocaml("static", TARGET_NATIVE);
	expect_ocaml("static-s", TARGET_NATIVE);
	expect_ocaml("shared", TARGET_NATIVE);
	expect_ocaml("shared-s", TARGET_NATIVE);
	expect_ocaml("byte", TARGET_BYTECODE);
	expect_ocaml("custom", TARGET_BYTECODE);
	expect_ocaml("complete", TARGET_BYTECODE);
	expect_ocaml("complete-s", TARGET_BYTECODE);
}

/* Neither a program that knows OCaml's names nor one whose notes are broken. */
static void does_not_take_others_for_ocaml(void **state)
{
	struct exe_info info;
	int fd;

	(void)state;
	program__compile("other", "",
			 "#include <unistd.h>\n"
			 "const char s[] = \"\\0OCAMLRUNPARAM\\0\";\n"
			 "const char t[] = \"Undefined_recursive_module\\0\\0\\0\\0\\0\\5\";\n"
			 "int caml_main, caml_startup; int main(void) { return 0; }\n",
			 "");
	fd = open(program__path("other"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(exe__inspect(fd, &info, &err), 0);
	assert_int_equal(info.kind, TARGET_NOT_OCAML);
	close(fd);
	program__compile("other", BASE NOTE("0", "0", "0", ".ascii \"x\""),
			 "int main(void) { return 0; }\n", "");
	fd = open(program__path("other"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(exe__inspect(fd, &info, &err), 0);
	assert_int_equal(info.kind, TARGET_NOT_OCAML);
	close(fd);
	/* The same with OCaml's symbols: an error, not a guess. */
	program__compile("other", BASE NOTE("0", "0", "0", ".ascii \"x\""),
			 "int caml_main, caml_frametable; int main(void) { return 0; }\n", "");
	fd = open(program__path("other"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(exe__inspect(fd, &info, &err), -EBADMSG);
	close(fd);
	/* This program contains what it searches for. */
	program__sh("strip -o %s /proc/%d/exe", program__path("self"), (int)getpid());
	fd = open(program__path("self"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(exe__inspect(fd, &info, &err), 0);
	assert_int_equal(info.kind, TARGET_NOT_OCAML);
	close(fd);
}

/* ---- files that say that they are large ---- */

#define HOLE_BYTES (100ull << 20)
#define HOLE_SECTIONS 2000u

/* An ELF file with n sections like s, most of it holes. Returns a descriptor. */
static int hollow(unsigned int n, const Elf64_Shdr *s)
{
	Elf64_Ehdr eh = { .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_ehsize = sizeof(eh),
			  .e_shoff = sizeof(eh),
			  .e_shentsize = sizeof(*s),
			  .e_shnum = (uint16_t)n };
	Elf64_Shdr strings = { .sh_type = SHT_STRTAB,
			       .sh_offset = HOLE_BYTES / 2,
			       .sh_size = HOLE_BYTES / 2,
			       .sh_addralign = 1 };
	int fd = open(program__path("hollow"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_ident[EI_VERSION] = EV_CURRENT;
	assert_int_equal(write(fd, &eh, sizeof(eh)), sizeof(eh));
	assert_int_equal(lseek(fd, sizeof(*s), SEEK_CUR), sizeof(eh) + sizeof(*s));
	assert_int_equal(write(fd, &strings, sizeof(strings)), sizeof(strings));
	for (unsigned int i = 2; i < n; i++)
		assert_int_equal(write(fd, s, sizeof(*s)), sizeof(*s));
	assert_int_equal(ftruncate(fd, HOLE_BYTES), 0);
	return fd;
}

/* Inspect it in a process of its own; returns the memory that this took, in MiB. */
static long inspect_mib(int fd)
{
	/* So that a failure is no more than that. */
#ifdef __SANITIZE_ADDRESS__ /* its shadow takes terabytes */
	const struct rlimit most = { RLIM_INFINITY, RLIM_INFINITY };
#else
	const struct rlimit most = { 4ul << 30, 4ul << 30 };
#endif
	struct exe_info info;
	struct rusage usage;
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(setrlimit(RLIMIT_AS, &most) || exe__inspect(fd, &info, &err) ||
		      info.kind != TARGET_NOT_OCAML);
	assert_int_equal(wait4(pid, &status, 0, &usage), pid);
	assert_int_equal(status, 0);
	close(fd);
	return usage.ru_maxrss / 1024;
}

/* 100 MiB, of which the disk has 128 KiB: two thousand tables in the same place. */
static void reads_no_more_than_there_can_be(void **state)
{
	Elf64_Shdr s = { .sh_type = SHT_SYMTAB,
			 .sh_offset = 1 << 20,
			 .sh_size = (HOLE_BYTES / 2 - (1 << 20)) / sizeof(Elf64_Sym) *
				    sizeof(Elf64_Sym),
			 .sh_link = 1,
			 .sh_entsize = sizeof(Elf64_Sym),
			 .sh_addralign = 8 };
	int fd;

	(void)state;
	assert_in_range(inspect_mib(hollow(HOLE_SECTIONS, &s)), 0, 512);
	s.sh_type = SHT_DYNSYM;
	assert_in_range(inspect_mib(hollow(HOLE_SECTIONS, &s)), 0, 512);
	s.sh_type = SHT_PROGBITS;
	s.sh_flags = SHF_ALLOC;
	assert_in_range(inspect_mib(hollow(HOLE_SECTIONS, &s)), 0, 512);
	/* A billion of sections, which the first of them says. */
	fd = hollow(0, &s);
	s.sh_size = 1u << 30;
	assert_int_equal(pwrite(fd, &s, sizeof(s), sizeof(Elf64_Ehdr)), sizeof(s));
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	assert_in_range(inspect_mib(fd), 0, 512);
}

static void caches_by_file(void **state)
{
	struct exe_cache *cache;
	struct exe_info info;
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(exe_cache__new(&cache), 0);
	program__compile("pie", BASE ALL_PROBES REGISTRY_NOTE, GOOD_REGISTRY_C MAIN_C, "");
	fd = open(program__path("pie"), O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(exe_cache__inspect(cache, fd, &st, &info, &err), 0);
	assert_int_equal(info.kind, TARGET_PROBED);
	close(fd);
	/* From memory: the descriptor is not even looked at. */
	assert_int_equal(exe_cache__inspect(cache, -1, &st, &info, &err), 0);
	assert_int_equal(info.kind, TARGET_PROBED);
	for (ino_t i = 1; i < 100; i++) {
		st.st_ino += 1;
		assert_int_equal(exe_cache__inspect(cache, -1, &st, &info, &err), -EIO);
	}
	err.text[0] = 0;
	assert_int_equal(exe_cache__inspect(cache, -1, &st, &info, &err), -EIO);
	assert_non_null(strstr(err.text, "cannot read"));
	exe_cache__free(cache);
	exe_cache__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_ocaml_programs_apart),
		cmocka_unit_test(does_not_take_others_for_ocaml),
		cmocka_unit_test(reads_no_more_than_there_can_be),
		cmocka_unit_test(caches_by_file),
	};

	return cmocka_run_group_tests(tests, NULL, program__cleanup);
}
