/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target stays the process, the program and the address space that was opened,
 * whatever the process executes and whoever has its PID later.
 */
#include "tests/unit/probe_program.h"

#include <linux/sched.h>
#include <sys/syscall.h>

#include "user/attach/proc.h"
#include "user/attach/target.h"

static struct hs_error err;

static struct running run(const char *name)
{
	char *argv[] = { (char *)program__path(name), NULL };

	return program__run(argv);
}

static struct target *open_ok(pid_t pid)
{
	struct target *t;
	int ret = target__open_probed(&t, pid, &err);

	if (ret)
		fail_msg("target__open: %d %s", ret, err.text);
	return t;
}

/*
 * On a signal: a process that shares the memory goes on if there are arguments, and
 * the program executes itself, at the same addresses. What it writes down differs.
 */
#define SAME_AGAIN_C                                                                               \
	GOOD_REGISTRY_C                                                                            \
	"#include <sched.h>\n#include <signal.h>\n#include <sys/personality.h>\n"                  \
	"char stack[65536]; int number;\n"                                                         \
	"int end(void *p) { char c; while (read(0, &c, 1)); _exit(0); }\n"                         \
	"void f(int s) { sigset_t e; sigemptyset(&e); sigprocmask(SIG_SETMASK, &e, 0);"            \
	"  if (number == 1 && domains[4]) clone(end, stack + 65536, CLONE_VM, 0);"                 \
	"  execl(\"/proc/self/exe\", \"second\", 0); }\n"                                          \
	"int main(int n, char **v) {\n"                                                            \
	"  if (*v[0] != 's' && !(personality(-1) & ADDR_NO_RANDOMIZE)) {"                          \
	"    personality(ADDR_NO_RANDOMIZE); execv(v[0], v); }\n"                                  \
	"  number = *v[0] == 's' ? 2 : 1; signal(SIGUSR1, f);"                                     \
	"  if (n > 2) domains[4] = &one;"                                                          \
	"  if (number == 1) write(1, \"r\", 1); end(0); }\n"

static void wait_for_exec(pid_t pid)
{
	char *command;
	bool done = false;

	for (int i = 0; i < 6000 && !done; i++) {
		usleep(10000);
		assert_int_equal(proc__command(pid, &command), 0);
		done = strcmp(command, "second") == 0;
		free(command);
	}
	assert_true(done);
}

static uint64_t address_of(const char *file, const char *symbol)
{
	char line[256];
	uint64_t addr = 0;
	FILE *p;

	snprintf(line, sizeof(line), "nm %s | grep ' %s$'", program__path(file), symbol);
	p = popen(line, "r");
	assert_non_null(p);
	assert_non_null(fgets(line, sizeof(line), p));
	pclose(p);
	addr = strtoull(line, NULL, 16);
	assert_int_not_equal(addr, 0);
	return addr;
}

/* Same file, same addresses: only the memory is another one. */
static void keeps_to_its_memory(void **state)
{
	struct sonde_domain_info *domains;
	struct running r;
	struct target *t, *anew;
	uint64_t number_at;
	int number;

	(void)state;
	program__compile("again", BASE ALL_PROBES REGISTRY_NOTE, SAME_AGAIN_C,
			 "-no-pie -D_GNU_SOURCE");
	number_at = address_of("again", "number");
	for (int n_args = 0; n_args < 2; n_args++) {
		char *argv[] = { (char *)program__path("again"), "one", n_args ? "two" : NULL,
				 NULL };

		r = program__run(argv);
		t = open_ok(r.pid);
		assert_int_equal(target__read(t, number_at, &number, sizeof(number)), 0);
		assert_int_equal(number, 1);
		kill(r.pid, SIGUSR1);
		wait_for_exec(r.pid);
		assert_true(target__same_exe(t));
		assert_false(target__same_memory(t));
		if (n_args) { /* kept alive by somebody else, and still the old one */
			assert_int_equal(target__read(t, number_at, &number, sizeof(number)), 0);
			assert_int_equal(number, 1);
		} else {
			assert_int_equal(target__read(t, number_at, &number, sizeof(number)),
					 -ESRCH);
			assert_int_equal(target__domains(t, &domains), -ESRCH);
		}
		anew = open_ok(r.pid);
		assert_true(target__same_memory(anew));
		for (int i = 0; i < 6000 && number != 2; i++) { /* until main has run */
			usleep(10000);
			assert_int_equal(target__read(anew, number_at, &number, sizeof(number)), 0);
		}
		assert_int_equal(number, 2);
		target__free(anew);
		target__free(t);
		program__end(r);
	}
}

static void reads_exactly(void **state)
{
	char text[8192];
	struct running r;
	struct target *t;
	uint64_t at;

	(void)state;
	program__compile("end", BASE ALL_PROBES REGISTRY_NOTE,
			 GOOD_REGISTRY_C "#include <sys/mman.h>\n"
					 "__attribute__((constructor)) void f(void)"
					 "{ char *p = mmap((void *)0x10000000, 4096, PROT_READ |"
					 "  PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANON, -1, 0);"
					 "  p[4095] = 'e'; }\n" MAIN_C,
			 "");
	r = run("end");
	t = open_ok(r.pid);
	at = 0x10000000;
	assert_int_equal(target__read(t, at, text, 4096), 0);
	assert_int_equal(text[4095], 'e');
	assert_int_equal(target__read(t, at + 4095, text, 1), 0);
	assert_int_equal(target__read(t, at + 4095, text, 2), -EFAULT);
	assert_int_equal(target__read(t, at + 4096, text, 1), -EFAULT);
	assert_int_equal(target__read(t, at - 1, text, 2), -EFAULT);
	assert_int_equal(target__read(t, at - 1, text, 0), 0);
	assert_int_equal(target__read(t, 0, text, 1), -EFAULT);
	assert_int_equal(target__read(t, INT64_MAX, text, 1), -EFAULT);
	assert_int_equal(target__read(t, UINT64_MAX, text, 1), -EFAULT);
	target__free(t);
	program__end(r);
}

/* A process with a certain PID, of the same program. */
static struct running run_as_pid(const char *name, pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = (uint64_t)(uintptr_t)&pid,
				   .set_tid_size = 1 };
	struct running r;
	int in[2], out[2];
	char c;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	r.pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!r.pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(program__path(name), name, NULL);
		_exit(127);
	}
	assert_int_equal(r.pid, pid);
	close(in[0]);
	close(out[1]);
	r.in = in[1];
	assert_int_equal(read(out[0], &c, 1), 1);
	close(out[0]);
	return r;
}

static void survives_reused_pids(void **state)
{
	struct sonde_domain_info *domains;
	struct proc_status status;
	struct running r;
	struct target *t;

	(void)state;
	if (geteuid())
		skip();
	program__compile("pid", BASE ALL_PROBES REGISTRY_NOTE, GOOD_REGISTRY_C MAIN_C, "-no-pie");
	r = run("pid");
	t = open_ok(r.pid);
	program__end(r);
	r = run_as_pid("pid", r.pid);
	assert_int_equal(proc__status(r.pid, &status), 0);
	assert_int_equal(proc__read_status(t->proc_fd, &status), -ESRCH);
	assert_false(target__same_exe(t));
	assert_false(target__same_memory(t));
	assert_int_equal(target__domains(t, &domains), -ESRCH);
	target__free(t);
	program__end(r);
}

/* What is attached to is the file that was looked into, whatever runs by now. */
static void keeps_the_executable(void **state)
{
	struct stat is, was;
	struct running r;
	struct target *t;

	(void)state;
	program__compile("exec", BASE ALL_PROBES REGISTRY_NOTE,
			 GOOD_REGISTRY_C EXEC_MAIN("\"/bin/sleep\""), "-pie -fPIE");
	assert_int_equal(stat(program__path("exec"), &was), 0);
	r = run("exec");
	t = open_ok(r.pid);
	kill(r.pid, SIGUSR1);
	for (int i = 0; i < 6000 && !target__has_execed(t); i++)
		usleep(10000);
	assert_true(target__has_execed(t));
	assert_int_equal(unlink(program__path("exec")), 0);
	assert_int_equal(stat(t->exe_proc, &is), 0);
	assert_int_equal(is.st_dev, was.st_dev);
	assert_int_equal(is.st_ino, was.st_ino);
	target__free(t);
	program__end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_to_its_memory),
		cmocka_unit_test(reads_exactly),
		cmocka_unit_test(survives_reused_pids),
		cmocka_unit_test(keeps_the_executable),
	};

	return cmocka_run_group_tests(tests, NULL, program__cleanup);
}
