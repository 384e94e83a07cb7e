/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may have what profiled, rule by rule: every program here breaks one rule only.
 * And what can be read of a process that a user was granted, once it is another
 * user's. As root.
 */
#include "tests/unit/probe_program.h"

#include <dirent.h>
#include <sys/syscall.h>

#include "user/attach/proc.h"
#include "user/attach/target.h"
#include "user/daemon/peer.h"
#include "user/symbolize/symbolize.h"

#define USER 4242u
#define OTHER 4343u

static struct hs_error err;

/* What tests/unit/peer_program.c puts there. */
#define FIRST_TABLE UINT64_C(0x10000000)
#define SECOND_TABLE (FIRST_TABLE + 4096)
#define NAME_AT (FIRST_TABLE + 580)
#define LAST_WRITTEN (SECOND_TABLE + 704)

/* Start it as user `as` with up to eight arguments. */
static struct running start(const char *name, uid_t as, const char *const args[8])
{
	char *argv[10] = { (char *)program__path(name) };

	for (int i = 0; i < 8; i++)
		argv[1 + i] = (char *)args[i];
	return program__run_as(argv, as);
}

#define START(name, as, ...) start(name, as, (const char *const[8]){ __VA_ARGS__ })

static struct target *open_ok(pid_t pid)
{
	struct target *t;

	if (target__open_probed(&t, pid, &err))
		fail_msg("%s", err.text);
	return t;
}

/* text: what the refusal says; NULL: there is none. Ends the program. */
static void expect(struct running r, uid_t uid, gid_t gid, const char *text)
{
	struct target *t = open_ok(r.pid);
	char pid[16];
	int ret;

	err.text[0] = '\0';
	ret = peer__may_profile(t, uid, gid, &err);
	if (ret != (text ? -EPERM : 0))
		fail_msg("%d %s", ret, err.text);
	snprintf(pid, sizeof(pid), "%d", (int)r.pid);
	if (text && (!strstr(err.text, text) || !strstr(err.text, pid)))
		fail_msg("`%s` does not say `%s`", err.text, text);
	assert_int_equal(peer__may_profile(t, 0, 0, &err), 0);
	target__free(t);
	program__end(r);
}

static int group_setup(void **state)
{
	(void)state;
	if (geteuid())
		return -1;
	program__compile("prog", BASE ALL_PROBES REGISTRY_NOTE,
			 "#include \"tests/unit/peer_program.c\"\n", "-D_GNU_SOURCE -no-pie");
	return 0;
}

static void grants_ones_own(void **state)
{
	(void)state;
	expect(START("prog", USER), USER, USER, NULL);
	expect(START("prog", USER, "dumpable=0", "dumpable=1"), USER, USER, NULL);
	/* Root that has become a user for good, and says that it may be looked at. */
	expect(START("prog", 0, "gids=4242 4242 4242", "uids=4242 4242 4242", "dumpable=1"), USER,
	       USER, NULL);
}

static void refuses_other_users(void **state)
{
	static const char *const some[] = {
		"uids=4343 4242 4242",
		"uids=4242 4343 4242",
		"uids=4242 4242 4343",
	};

	(void)state;
	expect(START("prog", OTHER), USER, USER, "does not run entirely as user 4242");
	for (int i = 0; i < 3; i++)
		expect(START("prog", 0, "gids=4242 4242 4242", some[i], "fsuid=4242", "dumpable=1"),
		       USER, USER, "does not run entirely as user 4242");
	expect(START("prog", 0, "keepcaps", "gids=4242 4242 4242", "uids=4242 4242 4242",
		     "raisecaps", "fsuid=4343", "dropcaps", "dumpable=1"),
	       USER, USER, "for files 4343");
}

static void refuses_other_groups(void **state)
{
	static const char *const some[] = {
		"gids=4343 4242 4242",
		"gids=4242 4343 4242",
		"gids=4242 4242 4343",
		"gids=4242 4242 4242",
	};

	(void)state;
	expect(START("prog", USER), USER, OTHER, "does not run entirely as group 4343");
	for (int i = 0; i < 4; i++)
		expect(START("prog", 0, some[i], i == 3 ? "fsgid=4343" : "fsgid=4242",
			     "uids=4242 4242 4242", "dumpable=1"),
		       USER, USER, "does not run entirely as group 4242");
}

static void refuses_threads(void **state)
{
	struct running r;
	struct target *t, of_thread;
	struct dirent *task;
	char path[64];
	pid_t tid = 0;
	DIR *tasks;

	(void)state;
	program__compile("threads", BASE ALL_PROBES REGISTRY_NOTE,
			 GOOD_REGISTRY_C
			 "#include <pthread.h>\n"
			 "void *f(void *p) { for (;;) pause(); }\n"
			 "int main(void) { pthread_t t; pthread_create(&t, 0, f, 0);"
			 "  char c; write(1, \"r\", 1); read(0, &c, 1); }\n",
			 "-pthread");
	r = START("threads", USER);
	t = open_ok(r.pid);
	/* Others start processes as well: it may be far from the first. */
	snprintf(path, sizeof(path), "/proc/%d/task", (int)r.pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((task = readdir(tasks)))
		if (atoi(task->d_name) > 0 && atoi(task->d_name) != r.pid)
			tid = atoi(task->d_name);
	closedir(tasks);
	assert_int_not_equal(tid, 0);
	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)r.pid, (int)tid);
	of_thread = *t; /* which target__open would refuse */
	of_thread.pid = tid;
	of_thread.proc_fd = proc__open(tid);
	assert_true(of_thread.proc_fd >= 0);
	assert_int_equal(peer__may_profile(&of_thread, USER, USER, &err), -EPERM);
	assert_non_null(strstr(err.text, "is a thread of process"));
	close(of_thread.proc_fd);
	target__free(t);
	expect(r, USER, USER, NULL);
}

static void refuses_capabilities(void **state)
{
	(void)state;
	/* Kept over the change of user: permitted, not effective. */
	expect(START("prog", 0, "keepcaps", "gids=4242 4242 4242", "uids=4242 4242 4242",
		     "dumpable=1"),
	       USER, USER, "has capabilities");
	/* By its file. */
	program__sh("cp %s %s && PATH=$PATH:/sbin:/usr/sbin setcap cap_net_raw+p %s",
		    program__path("prog"), program__path("capable"), program__path("capable"));
	expect(START("capable", USER, "dumpable=1"), USER, USER, "has capabilities");
	/* Which it has dropped: but it had them. */
	expect(START("capable", USER, "dropcaps", "dumpable=1"), USER, USER, "AT_SECURE");
}

static void refuses_other_namespaces(void **state)
{
	(void)state;
	expect(START("prog", USER, "newuser", "dropcaps", "dumpable=1"), USER, USER,
	       "user namespace of its own");
}

static void set_mode(const char *name, uid_t owner, const char *mode)
{
	program__sh("cp -f %s %s && chown %u:%u %s && chmod %s %s", program__path("prog"),
		    program__path(name), owner, owner, program__path(name), mode,
		    program__path(name));
}

static void refuses_set_id_programs(void **state)
{
	struct running r;

	(void)state;
	/* To the user that has it anyway: nothing but the mode of the file tells. */
	set_mode("suid", USER, "4755");
	expect(START("suid", USER, "dumpable=1"), USER, USER, "set-user-id program");
	set_mode("sgid", USER, "2755");
	expect(START("sgid", USER, "dumpable=1"), USER, USER, "set-group-id program");
	/* To root, that is. */
	set_mode("root", 0, "4755");
	expect(START("root", USER), USER, USER, "does not run entirely as user 4242");
	/* It gave all back, and its file is an ordinary one by now: but it had the rights. */
	r = START("root", USER, "uids=4242 4242 4242", "dumpable=1");
	assert_int_equal(chmod(program__path("root"), 0755), 0);
	expect(r, USER, USER, "AT_SECURE");
}

static void refuses_undumpable(void **state)
{
	(void)state;
	expect(START("prog", USER, "dumpable=0"), USER, USER, "is not dumpable");
	/* As the kernel leaves one that changed its user. */
	expect(START("prog", 0, "gids=4242 4242 4242", "uids=4242 4242 4242"), USER, USER,
	       "is not dumpable");
	/* One may execute it and not read it. */
	set_mode("secret", 0, "0711");
	expect(START("secret", USER), USER, USER, "is not dumpable");
}

static void wait_for_exec(pid_t pid)
{
	bool done = false;
	char *command;

	for (int i = 0; i < 6000 && !done; i++) {
		usleep(10000);
		assert_int_equal(proc__command(pid, &command), 0);
		done = strcmp(command, "second") == 0;
		free(command);
	}
	assert_true(done);
}

static const char *name_of(struct symbolizer *s, uint64_t slot)
{
	const struct hs_location *l;

	assert_int_equal(symbolizer__resolve(s, slot, &l), 1);
	return l->function ? l->function : "";
}

static void assert_reads(const struct target *t, const char *name)
{
	char text[16] = "";

	assert_int_equal(target__read(t, NAME_AT, text, strlen(name)), 0);
	assert_string_equal(text, name);
}

/* Granted; then it executes a set-user-id program, with data at the same addresses. */
static void becomes_root(bool is_shared)
{
	struct sonde_domain_info *domains;
	struct target *t, *anew;
	struct symbolizer *s, *fresh;
	struct running r;
	char text[16] = "", exec[160];

	set_mode("root", 0, "4755");
	snprintf(exec, sizeof(exec), "exec=%s", program__path("root"));
	r = START("prog", USER, exec, is_shared ? "shared" : NULL);
	t = open_ok(r.pid);
	assert_int_equal(peer__may_profile(t, USER, USER, &err), 0);
	assert_int_equal(symbolizer__new(&s, t, &err), 0);
	assert_reads(t, "Mod.mine");
	assert_string_equal(name_of(s, FIRST_TABLE), "Mod.mine");

	kill(r.pid, SIGUSR1);
	wait_for_exec(r.pid);
	anew = open_ok(r.pid);
	/* It is there to be read, by those who may, and once it has been written. */
	for (int i = 0; i < 6000 && strcmp(text, "a.ml") != 0; i++) {
		usleep(10000);
		target__read(anew, LAST_WRITTEN, text, sizeof(text) - 1);
	}
	assert_reads(anew, "Mod.secret");
	assert_int_equal(symbolizer__new(&fresh, anew, &err), 0);
	assert_string_equal(name_of(fresh, SECOND_TABLE), "Mod.secret");
	symbolizer__free(fresh);
	assert_int_equal(peer__may_profile(anew, USER, USER, &err), -EPERM);
	target__free(anew);

	assert_int_equal(peer__may_profile(t, USER, USER, &err), -EPERM);
	if (is_shared) { /* another process has the memory that was granted */
		assert_reads(t, "Mod.mine");
		assert_string_equal(name_of(s, SECOND_TABLE), "Mod.mine");
		assert_int_equal(symbolizer__new(&fresh, t, &err), 0);
		assert_string_equal(name_of(fresh, SECOND_TABLE), "Mod.mine");
		symbolizer__free(fresh);
	} else {
		assert_int_equal(target__read(t, NAME_AT, text, 8), -ESRCH);
		assert_int_equal(target__domains(t, &domains), -ESRCH);
		assert_string_equal(name_of(s, SECOND_TABLE), "");
		assert_int_equal(symbolizer__new(&fresh, t, &err), -ESRCH);
	}
	assert_string_equal(name_of(s, FIRST_TABLE), "Mod.mine");
	symbolizer__free(s);
	target__free(t);
	program__end(r);
}

static void loses_what_executes_another(void **state)
{
	(void)state;
	becomes_root(false);
	becomes_root(true);
}

/* By an ordinary program with all the right answers, while it is being asked. */
static void refuses_what_changes(void **state)
{
	struct running r;
	struct target *t;
	char exec[160];

	(void)state;
	snprintf(exec, sizeof(exec), "exec=%s", program__path("prog"));
	for (int i = 0; i < 2; i++) {
		/* -no-pie: the entry point stays where it is. Only the memory changes. */
		r = START("prog", USER, exec, i ? "shared" : NULL);
		t = open_ok(r.pid);
		assert_int_equal(peer__may_profile(t, USER, USER, &err), 0);
		kill(r.pid, SIGUSR1);
		wait_for_exec(r.pid);
		assert_true(target__same_exe(t));
		assert_int_equal(peer__may_profile(t, USER, USER, &err), -EPERM);
		assert_non_null(strstr(err.text, "executed another program"));
		target__free(t);
		program__end(r);
	}
	r = START("prog", USER);
	t = open_ok(r.pid);
	program__end(r);
	assert_int_equal(peer__may_profile(t, USER, USER, &err), -ESRCH);
	target__free(t);
}

/* What may be told of a process that is not open, and perhaps cannot be opened. */
static void tells_of_ones_own_only(void **state)
{
	struct running r = START("prog", USER);
	pid_t pid;

	(void)state;
	assert_int_equal(peer__may_ask(r.pid, USER, USER, &err), 0);
	assert_int_equal(peer__may_ask(r.pid, 0, 0, &err), 0);
	assert_int_equal(peer__may_ask(r.pid, OTHER, OTHER, &err), -EPERM);
	assert_null(strstr(err.text, "prog"));
	assert_int_equal(peer__may_ask(r.pid, USER, OTHER, &err), -EPERM);
	program__end(r);
	assert_int_equal(peer__may_ask(r.pid, USER, USER, &err), -ESRCH);
	r = START("prog", USER, "dumpable=0");
	assert_int_equal(peer__may_ask(r.pid, USER, USER, &err), -EPERM);
	program__end(r);
	r = START("prog", USER, "newuser", "dropcaps", "dumpable=1");
	assert_int_equal(peer__may_ask(r.pid, USER, USER, &err), -EPERM);
	program__end(r);
	assert_int_equal(peer__may_ask(0, USER, USER, &err), -ESRCH);
	assert_int_equal(peer__may_ask(-1, USER, USER, &err), -ESRCH);
	pid = fork();
	if (!pid)
		_exit(0);
	waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	assert_int_equal(peer__may_ask(pid, USER, USER, &err), -ESRCH);
	waitpid(pid, NULL, 0);
}

static void refuses_what_it_cannot_read(void **state)
{
	struct running r = START("prog", USER);
	struct target *t = open_ok(r.pid);
	int fd = t->mem_fd;

	(void)state;
	t->mem_fd = -1;
	assert_int_equal(peer__may_profile(t, USER, USER, &err), -EPERM);
	assert_non_null(strstr(err.text, "may not be read"));
	t->mem_fd = fd;
	assert_int_equal(peer__may_profile(t, USER, USER, &err), 0);
	t->kind = TARGET_NATIVE;
	assert_int_equal(peer__may_profile(t, USER, USER, &err), -EPERM);
	target__free(t);
	program__end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grants_ones_own),
		cmocka_unit_test(refuses_other_users),
		cmocka_unit_test(refuses_other_groups),
		cmocka_unit_test(refuses_threads),
		cmocka_unit_test(refuses_capabilities),
		cmocka_unit_test(refuses_other_namespaces),
		cmocka_unit_test(refuses_set_id_programs),
		cmocka_unit_test(refuses_undumpable),
		cmocka_unit_test(loses_what_executes_another),
		cmocka_unit_test(refuses_what_changes),
		cmocka_unit_test(refuses_what_it_cannot_read),
		cmocka_unit_test(tells_of_ones_own_only),
	};

	return cmocka_run_group_tests(tests, group_setup, program__cleanup);
}
