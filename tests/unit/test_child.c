/* SPDX-License-Identifier: BSD-2-Clause */
/* Starting a program, holding it before its first instruction, letting it go. */
#include "tests/unit/probe_program.h"

#include <sys/prctl.h>
#include <time.h>

#include "user/attach/child.h"
#include "user/attach/target.h"

static struct hs_error err;

static struct child *start(char *const argv[])
{
	struct child *c;
	int ret = child__start(&c, argv, &err);

	if (ret)
		fail_msg("child__start: %d %s", ret, err.text);
	return c;
}

static struct child *start_sh(const char *script)
{
	char *argv[] = { "sh", "-c", (char *)script, NULL };

	return start(argv);
}

static int finish(struct child *c)
{
	int status;

	assert_int_equal(child__wait(c, &status, true), 1);
	return child__exit_code(status);
}

/* Wait up to a minute until the process is gone. */
static bool goes(pid_t pid)
{
	for (int i = 0; i < 6000; i++) {
		if (kill(pid, 0))
			return true;
		usleep(10000);
	}
	return false;
}

static void holds_until_resumed(void **state)
{
	const char *file = program__path("ran");
	struct child *c;
	char script[256];
	int status;

	(void)state;
	snprintf(script, sizeof(script), "echo x > %s; exit 7", file);
	c = start_sh(script);
	assert_true(child__pid(c) > 0);
	usleep(200000);
	assert_int_equal(access(file, F_OK), -1);
	assert_int_equal(child__wait(c, &status, false), 0);
	assert_int_equal(child__resume(c), 0);
	assert_int_equal(finish(c), 7);
	assert_int_equal(access(file, F_OK), 0);
	/* Again: the answer stays. */
	assert_int_equal(finish(c), 7);
	child__free(c);
	child__free(NULL);
	child__kill(NULL);
}

/* No tracer any more, and nothing else of ours. */
static void leaves_nothing_behind(void **state)
{
	const char *before = program__path("fds-before"), *after = program__path("fds-after");
	struct child *c;
	char script[512];

	(void)state;
	program__sh("ls /proc/self/fd | wc -l > %s", before);
	snprintf(script, sizeof(script),
		 "grep -q '^TracerPid:[[:space:]]0$' /proc/self/status && "
		 "ls /proc/self/fd | wc -l > %s && cmp %s %s",
		 after, before, after);
	c = start_sh(script);
	assert_int_equal(child__resume(c), 0);
	assert_int_equal(finish(c), 0);
	child__free(c);
}

static void expect_failure(char *cmd, int code, const char *text)
{
	char *argv[] = { cmd, NULL };
	struct child *c = (void *)1;

	assert_int_equal(child__start(&c, argv, &err), code);
	assert_null(c);
	if (!strstr(err.text, text))
		fail_msg("`%s` does not say `%s`", err.text, text);
	/* Not even a zombie. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void reports_what_exec_says(void **state)
{
	(void)state;
	expect_failure("/no/such/program", -ENOENT,
		       "cannot run /no/such/program: No such file or directory");
	/* A folder that may not be searched would make it -EACCES. */
	setenv("PATH", "/usr/bin:/bin", 1);
	expect_failure("no-such-program-in-path", -ENOENT,
		       "cannot run no-such-program-in-path: No");
	expect_failure("/etc/passwd", -EACCES, "cannot run /etc/passwd: Permission denied");
	expect_failure("/etc", -EACCES, "cannot run /etc");
	program__sh("printf '\\177ELF' > %s; chmod +x %s", program__path("broken"),
		    program__path("broken"));
	program__sh("echo '#!/no/interpreter' > %s; chmod +x %s", program__path("script"),
		    program__path("script"));
	expect_failure((char *)program__path("script"), -ENOENT, "cannot run");
	expect_failure("", -ENOENT, "cannot run");
}

static void exit_codes(void **state)
{
	struct child *c = start_sh("kill -TERM $$");

	(void)state;
	assert_int_equal(child__resume(c), 0);
	assert_int_equal(finish(c), 128 + SIGTERM);
	child__free(c);
	c = start_sh("exit 255");
	child__resume(c);
	assert_int_equal(finish(c), 255);
	child__free(c);
}

static void signals_wait_for_resume(void **state)
{
	struct child *c = start_sh("sleep 100");
	const char *file = program__path("trapped");
	char script[256];

	(void)state;
	kill(child__pid(c), SIGTERM);
	usleep(100000);
	assert_int_equal(kill(child__pid(c), 0), 0);
	assert_int_equal(child__resume(c), 0);
	assert_int_equal(finish(c), 128 + SIGTERM);
	child__free(c);
	/* One that somebody sent, that looks like what ptrace uses. */
	snprintf(script, sizeof(script),
		 "trap 'exit 9' TRAP; echo > %s; while :; do sleep 0.01; done", file);
	c = start_sh(script);
	assert_int_equal(child__resume(c), 0);
	for (int i = 0; i < 6000 && access(file, F_OK); i++)
		usleep(10000);
	kill(child__pid(c), SIGTRAP);
	assert_int_equal(finish(c), 9);
	child__free(c);
}

static void killed_while_held(void **state)
{
	struct child *c = start_sh("sleep 100");
	pid_t pid = child__pid(c);

	(void)state;
	kill(pid, SIGKILL);
	assert_int_equal(finish(c), 128 + SIGKILL);
	child__free(c);
	c = start_sh("sleep 100");
	pid = child__pid(c);
	child__kill(c);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(finish(c), 128 + SIGKILL);
	child__kill(c);
	child__free(c);
	/* Freed without having been let go: killed, for nobody else would. */
	c = start_sh("sleep 100");
	pid = child__pid(c);
	child__free(c);
	assert_int_equal(kill(pid, 0), -1);
	/* Killed after it was let go. */
	c = start_sh("sleep 100");
	pid = child__pid(c);
	assert_int_equal(child__resume(c), 0);
	child__kill(c);
	assert_int_equal(kill(pid, 0), -1);
	child__free(c);
}

/* heapsonde killed while it holds a child: the child goes too; afterwards not. */
static void dies_with_us_only_while_held(void **state)
{
	(void)state;
	for (int resumed = 0; resumed <= 1; resumed++) {
		int fds[2], status;
		pid_t pid, held;

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		/* To adopt the grandchild, and see it end. */
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		pid = fork();
		if (!pid) {
			struct child *c = start_sh("exec sleep 1000");

			held = child__pid(c);
			if (resumed)
				child__resume(c);
			if (write(fds[1], &held, sizeof(held)) < 0)
				_exit(1);
			usleep(200000);
			kill(getpid(), SIGKILL);
		}
		assert_int_equal(read(fds[0], &held, sizeof(held)), sizeof(held));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (resumed) {
			usleep(300000);
			assert_int_equal(waitpid(held, &status, WNOHANG), 0);
			kill(held, SIGKILL);
		}
		assert_int_equal(waitpid(held, &status, 0), held);
		assert_int_equal(WTERMSIG(status), SIGKILL);
		assert_true(goes(held));
		close(fds[0]);
		close(fds[1]);
	}
}

/* What the child says about its signals: "blocked ignored" as hex. */
static void signals_of_child(char *out, size_t size)
{
	const char *file = program__path("signals");
	unsigned long blocked, ignored;
	char script[512];
	struct child *c;
	FILE *f;

	snprintf(script, sizeof(script),
		 "awk '/^Sig(Blk|Ign)/ { printf \"%%s \", $2 }' /proc/self/status > %s", file);
	c = start_sh(script);
	child__resume(c);
	assert_int_equal(finish(c), 0);
	child__free(c);
	f = fopen(file, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lx %lx", &blocked, &ignored), 2);
	fclose(f);
	/* Signals 32 and 33 are the C library's own: no program may set them, and
	 * make leaves them ignored in what it starts. */
	snprintf(out, size, "%lx %lx", blocked, ignored & ~0x180000000ul);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void starts_with_clean_signals(void **state)
{
	char bits[128];
	sigset_t set, old;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_IGN); /* and the exit status is known all the same */
	signal(SIGUSR1, on_signal);
	signals_of_child(bits, sizeof(bits));
	assert_string_equal(bits, "0 0");
	/* What heapsonde itself was started with is passed on. */
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	child__remember_signals();
	signal(SIGHUP, SIG_DFL);
	signal(SIGINT, SIG_IGN);
	signals_of_child(bits, sizeof(bits));
	assert_string_equal(bits, "0 1");
	signal(SIGINT, SIG_DFL);
	signal(SIGUSR1, SIG_DFL);
}

/* The purpose of it all: a held program can be looked at, before it has begun. */
static void held_program_can_be_opened(void **state)
{
	char *argv[] = { (char *)program__path("pie"), NULL };
	struct sonde_domain_info *domains;
	struct target *t;
	struct child *c;
	char path[64];
	int fd;

	(void)state;
	program__compile("pie", BASE ALL_PROBES REGISTRY_NOTE,
			 GOOD_REGISTRY_C "int main(void) { return 3; }\n", "-pie -fPIE");
	c = start(argv);
	assert_int_equal(target__open_probed(&t, child__pid(c), &err), 0);
	assert_true(t->load_bias != 0);
	assert_int_equal(target__domains(t, &domains), 0);
	free(domains);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)child__pid(c));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(child__resume(c), 0);
	assert_int_equal(finish(c), 3);
	assert_false(target__same_exe(t));
	target__free(t);
	child__free(c);
}

/* Signals in the middle of starting: either it starts or it says that it did not. */
static void survives_signals_while_starting(void **state)
{
	char *argv[] = { "/bin/true", NULL };
	int status;
	pid_t nuisance;

	(void)state;
	nuisance = fork();
	if (!nuisance) {
		/* PIDs follow each other: whatever we start next is hit. */
		pid_t parent = getppid();
		static const int sigs[] = { SIGSTOP, SIGCONT, SIGTRAP, SIGWINCH };

		for (unsigned i = 0;; i++)
			for (pid_t pid = getpid() + 1; pid < getpid() + 120; pid++) {
				char path[64], text[64] = "";
				int fd;

				snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
				fd = open(path, O_RDONLY | O_CLOEXEC);
				if (fd < 0)
					continue;
				if (read(fd, text, sizeof(text) - 1) > 0) {
					const char *p = strrchr(text, ')');

					if (p && atoi(p + 4) == parent)
						kill(pid, sigs[(i + (unsigned)pid) % 4]);
				}
				close(fd);
			}
	}
	for (int i = 0; i < 100; i++) {
		struct child *c;
		int ret = child__start(&c, argv, &err);

		if (ret)
			fail_msg("child__start: %d %s", ret, err.text);
		assert_int_equal(child__resume(c), 0);
		for (int ms = 0; child__wait(c, &status, false) == 0; ms++) {
			kill(child__pid(c), SIGCONT); /* it may well have been stopped */
			usleep(1000);
			assert_in_range(ms, 0, 60000);
		}
		status = child__exit_code(status);
		assert_true(status == 0 || status == 128 + SIGTRAP);
		child__free(c);
	}
	kill(nuisance, SIGKILL);
	waitpid(nuisance, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_until_resumed),
		cmocka_unit_test(leaves_nothing_behind),
		cmocka_unit_test(reports_what_exec_says),
		cmocka_unit_test(exit_codes),
		cmocka_unit_test(signals_wait_for_resume),
		cmocka_unit_test(killed_while_held),
		cmocka_unit_test(dies_with_us_only_while_held),
		cmocka_unit_test(starts_with_clean_signals),
		cmocka_unit_test(held_program_can_be_opened),
		cmocka_unit_test(survives_signals_while_starting),
	};

	return cmocka_run_group_tests(tests, NULL, program__cleanup);
}
