/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Little programs for the tests of user/attach: C and assembler text, compiled
 * into a folder of the test's own and run, with probe notes written by hand so
 * that the tests do not depend on runtime/.
 *
 * In:   a list of notes, in assembler.
 * Out:  files and processes; program__cleanup removes all of them.
 */
#ifndef TEST_PROBE_PROGRAM_H
#define TEST_PROBE_PROGRAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/abi.h"

static char program_dir[64];

static inline const char *program__dir(void)
{
	if (!*program_dir) {
		strcpy(program_dir, "/tmp/heapsonde-test.XXXXXX");
		assert_non_null(mkdtemp(program_dir));
		assert_int_equal(chmod(program_dir, 0755), 0);
	}
	return program_dir;
}

__attribute__((format(printf, 1, 2))) static inline void program__sh(const char *fmt, ...)
{
	char cmd[4096];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	assert_in_range(n, 1, sizeof(cmd) - 1);
	if (system(cmd))
		fail_msg("failed: %s", cmd);
}

static inline int program__cleanup(void **state)
{
	(void)state;
	if (*program_dir)
		program__sh("rm -rf %s", program_dir);
	*program_dir = 0;
	return 0;
}

/* The path of file name in the folder, in one of some static buffers. */
static inline const char *program__path(const char *name)
{
	static char paths[32][128];
	static unsigned next;
	char *path = paths[next++ % 32];

	snprintf(path, sizeof(paths[0]), "%s/%s", program__dir(), name);
	return path;
}

/* One note in assembler: descriptor fields and the text as they are given. */
#define NOTE(pc, base, sem, text)                                                                  \
	".pushsection .note.stapsdt, \"\", @note\n"                                                \
	".balign 4\n.4byte 992f - 991f, 994f - 993f, 3\n"                                          \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n"                                                \
	"993: .8byte " pc ", " base ", " sem "\n" text "\n994: .balign 4\n.popsection\n"

#define SITE_BYTES ".balign 16\n990: .byte 0x90, 0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0\n"
#define TEXT(provider, name) ".asciz \"" provider "\", \"" name "\", \"8@%rdi\""

/* A proper probe with a semaphore of its own, in .probes, of initial value `val`. */
#define PROBE(name, val)                                                                           \
	SITE_BYTES NOTE(                                                                           \
		"990b", "_.stapsdt.base", "995f",                                                  \
		TEXT("ocaml",                                                                      \
		     name)) ".pushsection .probes, \"aw\", @progbits\n.balign 2\n995: .2byte " val \
			    "\n.popsection\n"

#define REGISTRY_NOTE                                                                              \
	SITE_BYTES NOTE("990b", "_.stapsdt.base", "registry", TEXT("ocaml", "registry"))

#define BASE                                                                                       \
	".pushsection .stapsdt.base, \"aG\", @progbits, .stapsdt.base, comdat\n"                   \
	".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.popsection\n"

/* Every probe but the registry; the n-th has the semaphore value n, from 1. */
/* clang-format off */
#define ALL_PROBES \
	PROBE("alloc_0", "1") PROBE("alloc_1", "2") PROBE("alloc_2", "3") PROBE("alloc_3", "4") \
	PROBE("alloc_4", "5") PROBE("alloc_5", "6") PROBE("alloc_6", "7") PROBE("alloc_7", "8") \
	PROBE("alloc_8", "9") PROBE("alloc_9", "10") PROBE("alloc_10", "11") PROBE("alloc_11", "12") \
	PROBE("alloc_12", "13") PROBE("alloc_13", "14") PROBE("alloc_14", "15") PROBE("alloc_15", "16") \
	PROBE("alloc_16", "17") PROBE("alloc_17", "18") PROBE("alloc_18", "19") PROBE("alloc_19", "20") \
	PROBE("alloc_20", "21") PROBE("alloc_21", "22") PROBE("alloc_22", "23") PROBE("alloc_23", "24") \
	PROBE("alloc_24", "25") PROBE("stack_16", "26") PROBE("stack_32", "27") PROBE("stack_64", "28") \
	PROBE("stack_128", "29") PROBE("stack_256", "30") PROBE("stack_512", "31") PROBE("stack_1024", "32") \
	MOST_GC_PROBES PROBE("exit", "38")
#define MOST_GC_PROBES \
	PROBE("minor_end", "33") PROBE("major_end", "34") PROBE("compact", "35") \
	PROBE("domain_spawn", "36") PROBE("domain_terminate", "37")
/* clang-format on */

/*
 * Compile a program into the folder as `name`: asm_text in its own section of
 * code, and c_text, which must define main.
 */
static inline void program__compile(const char *name, const char *asm_text, const char *c_text,
				    const char *flags)
{
	FILE *f = fopen(program__path("program.s"), "w");
	char root[256];

	assert_non_null(getcwd(root, sizeof(root)));
	assert_non_null(f);
	fprintf(f,
		".section .text.sites, \"ax\", @progbits\n%s\n"
		".section .note.GNU-stack, \"\", @progbits\n",
		asm_text);
	assert_int_equal(fclose(f), 0);
	f = fopen(program__path("program.c"), "w");
	assert_non_null(f);
	fputs(c_text, f);
	assert_int_equal(fclose(f), 0);
	program__sh("cd %s && cc -w -I'%s' %s program.c program.s -o %s", program__dir(), root,
		    flags, name);
}

/* A registry of the right shape, with three domain slots of which two live. */
#define REGISTRY_C(abi, size, version)                                                             \
	"#include \"runtime/abi.h\"\n#include <stdio.h>\n#include <unistd.h>\n"                    \
	"struct sonde_domain_info one = {1, 0, 1, 11}, two = {2, 1, 0, 12}, three = {7, 2, 1, "    \
	"13};\n"                                                                                   \
	"struct sonde_domain_info *domains[5] = {&one, &two, 0, &three};\n"                        \
	"struct sonde_registry registry = {.abi_version = " abi ", .size_bytes = " size ",\n"      \
	"  .ocaml_version = " version ", .domains = (unsigned long)domains, .max_domains = 5,\n"   \
	"  .fd_retaddr_bytes = 8, .fd_frame_data = 8, .fd_num_live = 10, .fd_live_ofs = 12};\n"
#define GOOD_REGISTRY_C                                                                            \
	REGISTRY_C("SONDE_ABI_VERSION", "sizeof(struct sonde_registry)", "\"5.3.0\"")

/* Says ready, then waits for its stdin to end. */
#define MAIN_C                                                                                     \
	"#include <unistd.h>\n"                                                                    \
	"int main(void) { char c; write(1, \"r\", 1); return read(0, &c, 1) != 0; }\n"

/* On SIGUSR1 executes path. Ready is said when first run only: nobody would read it again. */
#define EXEC_MAIN(path)                                                                            \
	"#include <signal.h>\nvoid f(int s) { sigset_t e; sigemptyset(&e);"                        \
	"  sigprocmask(SIG_SETMASK, &e, 0); execl(" path ", \"x\", \"100\", 0); }\n"               \
	"int main(int n, char **v) { signal(SIGUSR1, f); if (*v[0] != 'x') write(1, \"r\", 1);"    \
	"  for (;;) pause(); }\n"

/* A running program: pid, and the pipe whose closing makes it end. */
struct running {
	pid_t pid;
	int in;
};

/* Start the program as user and group uid (0: as we are); wait for its first output. */
static inline struct running program__run_as(char *const argv[], uid_t uid)
{
	int in[2], out[2];
	struct running r;
	char c;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	r.pid = fork();
	assert_true(r.pid >= 0);
	if (!r.pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		if (uid &&
		    (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
			_exit(126);
		execv(argv[0], argv);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	r.in = in[1];
	assert_int_equal(read(out[0], &c, 1), 1);
	close(out[0]);
	return r;
}

static inline struct running program__run(char *const argv[])
{
	return program__run_as(argv, 0);
}

static inline void program__end(struct running r)
{
	kill(r.pid, SIGKILL); /* first, or it might complain about its input */
	close(r.in);
	waitpid(r.pid, NULL, 0);
}

#endif /* TEST_PROBE_PROGRAM_H */
