/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking at processes: real ones, of every kind. Programs with probes are made
 * by probe_program.h. OCaml programs without them: test_exe.c.
 */
#include "tests/unit/probe_program.h"

#include <poll.h>
#include <sched.h>
#include <sys/mount.h>

#include "user/attach/proc.h"
#include "user/attach/target.h"

static struct hs_error err;

static void expect_text(const char *text)
{
	if (!strstr(err.text, text))
		fail_msg("`%s` does not say `%s`", err.text, text);
}

/* Start the file called name, with one argument. */
static struct running run(const char *name)
{
	char *argv[] = { (char *)program__path(name), "one  two", NULL };

	return program__run(argv);
}

static struct target *open_ok(pid_t pid, enum target_kind kind)
{
	struct target *t;
	int ret = target__open(&t, pid, &err);

	if (ret)
		fail_msg("target__open: %d %s", ret, err.text);
	assert_int_equal(t->kind, kind);
	return t;
}

static void expect_error(pid_t pid, int code, const char *text)
{
	struct target *t = (void *)1;

	assert_int_equal(target__open_probed(&t, pid, &err), code);
	assert_null(t);
	expect_text(text);
}

/* ---- programs with probes ------------------------------------------------------- */

static void probed(const char *name, const char *flags, bool position_independent)
{
	struct sonde_domain_info *domains;
	struct sonde_registry reg;
	struct running r;
	struct target *t;

	program__compile(name, BASE ALL_PROBES REGISTRY_NOTE, GOOD_REGISTRY_C MAIN_C, flags);
	r = run(name);
	assert_int_equal(target__open_probed(&t, r.pid, &err), 0);
	assert_int_equal(t->kind, TARGET_PROBED);
	assert_int_equal(t->pid, r.pid);
	assert_int_equal(t->uid, geteuid());
	assert_string_equal(t->exe, program__path(name));
	assert_non_null(strstr(t->command, "one  two"));
	assert_int_equal(strncmp(t->command, program__dir(), strlen(program__dir())), 0);
	assert_int_equal(t->load_bias != 0, position_independent);
	assert_string_equal(t->registry.ocaml_version, "5.3.0");
	assert_int_equal(
		target__read(t, t->load_bias + t->probes.registry_vaddr, &reg, sizeof(reg)), 0);
	assert_memory_equal(&reg, &t->registry, sizeof(reg));
	assert_int_equal(target__domains(t, &domains), 2);
	assert_int_equal(domains[0].unique_id, 1);
	assert_int_equal(domains[0].tid, 11);
	assert_int_equal(domains[1].unique_id, 7);
	assert_int_equal(domains[1].domain_id, 2);
	free(domains);
	assert_true(target__same_exe(t));
	assert_true(target__same_memory(t));
	assert_false(target__has_execed(t));
	program__end(r);
	assert_false(target__same_exe(t));
	assert_false(target__same_memory(t));
	assert_false(target__has_execed(t));
	assert_int_equal(poll(&(struct pollfd){ t->pidfd, POLLIN, 0 }, 1, 0), 1);
	assert_int_equal(target__domains(t, &domains), -ESRCH);
	target__free(t);
}

static void reads_probed_programs(void **state)
{
	(void)state;
	probed("pie", "-pie -fPIE", true);
	probed("pie-stripped", "-pie -fPIE -s", true);
	probed("no-pie", "-no-pie", false);
	probed("static", "-static -no-pie -s", false);
	probed("static-pie", "-static-pie -fPIE", true);
}

static void bad_registry(const char *registry_c, const char *text)
{
	struct running r;

	program__compile("bad", BASE ALL_PROBES REGISTRY_NOTE, registry_c, "");
	r = run("bad");
	expect_error(r.pid, -EPROTO, text);
	program__end(r);
}

#define SIZE "sizeof(struct sonde_registry)"

static void refuses_bad_registries(void **state)
{
	struct running r;

	(void)state;
	bad_registry(REGISTRY_C("SONDE_ABI_VERSION + 1", SIZE, "\"5.3.0\"") MAIN_C, "relink");
	bad_registry(REGISTRY_C("0", SIZE, "\"5.3.0\"") MAIN_C, "version 0");
	bad_registry(REGISTRY_C("SONDE_ABI_VERSION", "40", "\"5.3.0\"") MAIN_C, "damaged");
	bad_registry(REGISTRY_C("SONDE_ABI_VERSION", SIZE, "\"\"") MAIN_C, "damaged");
	bad_registry(REGISTRY_C("SONDE_ABI_VERSION", SIZE, "\"5.3.0\\033[m\"") MAIN_C, "damaged");
	bad_registry(REGISTRY_C("SONDE_ABI_VERSION", SIZE,
				"{'5','5','5','5','5','5','5','5','5','5','5','5','5','5','5','5'}")
			     MAIN_C,
		     "damaged");
#define WRONG(assignment)                                                                          \
	bad_registry(GOOD_REGISTRY_C "__attribute__((constructor)) void f(void) { " assignment     \
				     "; }\n" MAIN_C,                                               \
		     "damaged")
	WRONG("registry.max_domains = 70000");
	WRONG("registry.domains += 3");
	WRONG("registry.fd_retaddr_bytes = 2");
	WRONG("registry.fd_live_ofs = 65");
	/* Enough to be ours, but not whole. */
	program__compile("bad", BASE MOST_GC_PROBES REGISTRY_NOTE, GOOD_REGISTRY_C MAIN_C, "");
	r = run("bad");
	expect_error(r.pid, -EPROTO, "lacks the probe alloc_0");
	program__end(r);
}

static void survives_wild_domains(void **state)
{
	struct sonde_domain_info *domains;
	struct running r;
	struct target *t;

	(void)state;
	program__compile("wild", BASE ALL_PROBES REGISTRY_NOTE,
			 GOOD_REGISTRY_C "__attribute__((constructor)) void f(void)"
					 "{ domains[1] = (void *)8; }\n" MAIN_C,
			 "");
	r = run("wild");
	t = open_ok(r.pid, TARGET_PROBED);
	assert_int_equal(target__domains(t, &domains), -EFAULT);
	assert_null(domains);
	target__free(t);
	program__end(r);
	/* Not started yet: nothing relocated, nothing to count. */
	program__compile("early", BASE ALL_PROBES REGISTRY_NOTE,
			 GOOD_REGISTRY_C
			 "extern char __executable_start;\n"
			 "__attribute__((constructor)) void f(void)"
			 "{ registry.domains -= (unsigned long)&__executable_start; }\n" MAIN_C,
			 "-pie -fPIE");
	r = run("early");
	t = open_ok(r.pid, TARGET_PROBED);
	assert_int_equal(target__domains(t, &domains), 0);
	free(domains);
	target__free(t);
	program__end(r);
}

/* A file that is deleted or replaced while it runs is read all the same. */
static void reads_deleted_programs(void **state)
{
	struct running r;
	struct target *t;

	(void)state;
	program__compile("gone", BASE ALL_PROBES REGISTRY_NOTE, GOOD_REGISTRY_C MAIN_C, "");
	r = run("gone");
	assert_int_equal(unlink(program__path("gone")), 0);
	program__sh("cp /bin/true %s", program__path("gone"));
	t = open_ok(r.pid, TARGET_PROBED);
	assert_non_null(strstr(t->exe, "(deleted)"));
	assert_true(target__same_exe(t));
	target__free(t);
	program__end(r);
}

static void exec_after_signal(const char *text)
{
	struct running r;
	struct target *t;

	/* On a signal the program executes `text`. */
	program__compile("exec", BASE ALL_PROBES REGISTRY_NOTE, text, "-pie -fPIE");
	r = run("exec");
	t = open_ok(r.pid, TARGET_PROBED);
	assert_true(target__same_exe(t));
	kill(r.pid, SIGUSR1);
	for (int i = 0; i < 6000 && target__same_exe(t); i++)
		usleep(10000);
	assert_false(target__same_exe(t));
	assert_true(target__has_execed(t));
	/* For that reason, and not because it has ended. */
	assert_int_equal(poll(&(struct pollfd){ t->pidfd, POLLIN, 0 }, 1, 0), 0);
	target__free(t);
	program__end(r);
}

static void notices_exec(void **state)
{
	(void)state;
	exec_after_signal(GOOD_REGISTRY_C EXEC_MAIN("\"/bin/sleep\""));
	exec_after_signal(GOOD_REGISTRY_C EXEC_MAIN("\"/proc/self/exe\""));
}

/*
 * Where Yama forbids reading memory, the file's registry will do for `list`. Few
 * kernels here have Yama: a file that its reader may not open takes the place of mem.
 */
static void does_without_memory(void **state)
{
	char *argv[] = { (char *)program__path("pie"), NULL };
	struct sonde_domain_info *domains;
	const uid_t nobody = 65534;
	struct running r;
	struct target *t;
	char path[64];
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	program__compile("pie", BASE ALL_PROBES REGISTRY_NOTE, GOOD_REGISTRY_C MAIN_C, "");
	program__sh("install -m 0 /dev/null %s", program__path("forbidden"));
	r = program__run_as(argv, nobody);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)r.pid);
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount(program__path("forbidden"), path, NULL, MS_BIND, NULL))
			_exit(1);
		if (setresgid(nobody, nobody, nobody) || setresuid(nobody, nobody, nobody))
			_exit(2);
		if (target__open_probed(&t, r.pid, &err))
			_exit(3);
		if (strcmp(t->registry.ocaml_version, "5.3.0") || t->mem_fd != -1)
			_exit(4);
		_exit(target__domains(t, &domains) == -EPERM ? 0 : 5);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	program__end(r);
}

/* ---- what cannot be looked at --------------------------------------------------- */

static void refuses_what_is_no_process(void **state)
{
	struct running r;
	struct target *t;
	siginfo_t ended;
	pid_t pid;

	(void)state;
	expect_error(0, -ESRCH, "no process");
	expect_error(-5, -ESRCH, "no process");
	expect_error(0x7fffffff, -ESRCH, "no process with PID 2147483647");
	expect_error(getpid(), -ENOEXEC, "is not an OCaml program");
	pid = fork();
	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
	expect_error(pid, -ESRCH, "has ended");
	waitpid(pid, NULL, 0);
	expect_error(pid, -ESRCH, "no process");

	program__compile(
		"thread", "",
		"#include <pthread.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n"
		"void *f(void *p) { int tid = syscall(SYS_gettid);"
		"  write(1, &tid, sizeof(tid)); for (;;) pause(); }\n"
		"int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); for (;;) pause(); }\n",
		"-pthread");
	r = run("thread");
	for (pid_t tid = r.pid + 1; tid < r.pid + 50; tid++) {
		char path[64], wanted[64];

		snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)r.pid, (int)tid);
		if (access(path, F_OK))
			continue;
		snprintf(wanted, sizeof(wanted), "thread of process %d", (int)r.pid);
		expect_error(tid, -ESRCH, wanted);
		break;
	}
	program__end(r);
	/* A kernel thread, where there are any to be seen. */
	if (!access("/proc/2/status", R_OK) && !target__open(&t, 2, &err)) {
		assert_int_equal(t->kind, TARGET_NOT_OCAML);
		target__free(t);
		expect_error(2, -ENOEXEC, "is not an OCaml program");
	}
}

static void says_what_permission_is_lacking(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	pid = fork();
	if (!pid) {
		struct target *t;

		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(2);
		if (target__open(&t, getppid(), &err) != -EACCES)
			_exit(3);
		_exit(strstr(err.text, "CAP_SYS_PTRACE (run as root)") ? 0 : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Text from other people's processes is fit for a terminal and for JSON. */
static void cleans_text(void **state)
{
	char *argv[] = { (char *)program__path("pie"),
			 "a\033[31mb\nc",
			 "caf\xc3\xa9",
			 "\xff\xc3",
			 "\xc2\x9b",
			 "\xed\xa0\x80",
			 "",
			 NULL };
	struct running r;
	char *command;

	(void)state;
	program__compile("pie", BASE ALL_PROBES REGISTRY_NOTE, GOOD_REGISTRY_C MAIN_C, "");
	r = program__run(argv);
	assert_int_equal(proc__command(r.pid, &command), 0);
	assert_string_equal(command + strlen(argv[0]), " a?[31mb?c caf\xc3\xa9 ?? ?? ???");
	free(command);
	program__end(r);
	target__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_probed_programs),
		cmocka_unit_test(refuses_bad_registries),
		cmocka_unit_test(survives_wild_domains),
		cmocka_unit_test(reads_deleted_programs),
		cmocka_unit_test(notices_exec),
		cmocka_unit_test(does_without_memory),
		cmocka_unit_test(refuses_what_is_no_process),
		cmocka_unit_test(says_what_permission_is_lacking),
		cmocka_unit_test(cleans_text),
	};

	return cmocka_run_group_tests(tests, NULL, program__cleanup);
}
