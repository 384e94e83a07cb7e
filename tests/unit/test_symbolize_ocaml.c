/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * user/symbolize against what OCaml's own Printexc says, in real programs: each slot
 * must give the same functions, files, lines and characters.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "tests/unit/symbolize_program.h"
#include "tests/unit/symbolize_target.h"
#include "user/symbolize/symbolize.h"

#define NOBODY 65534

static const struct frame_layout layout = { 8, 8, 10, 12 };
static char dir[] = "/tmp/heapsonde-symbolize-XXXXXX";
static bool have_ocaml;
static struct program program;

/* Run a command in the directory; the sources of the test are in $src. */
static int run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int run(const char *fmt, ...)
{
	char command[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return system(command);
}

static int group_setup(void **state)
{
	char bin[PATH_MAX], src[PATH_MAX], *slash;
	const char *path = getenv("PATH");

	(void)state;
	have_ocaml = find_ocaml(bin, sizeof(bin));
	if (!have_ocaml) {
		print_message("no ocamlopt: set OCAML_BIN to its directory\n");
		return 0;
	}
	/* __FILE__ is relative to the repository, where tests are run. */
	if (!realpath(__FILE__, src) || !(slash = strrchr(src, '/')))
		return -1;
	*slash = '\0';
	if (!mkdtemp(dir) || chmod(dir, 0755))
		return -1;
	setenv("src", src, 1);
	setenv("dir", dir, 1);
	setenv("PATH", bin, 1);
	if (path) {
		char *both = NULL;

		if (asprintf(&both, "%s:%s", bin, path) < 0)
			return -1;
		setenv("PATH", both, 1);
		free(both);
	}
	return run("cp \"$src\"/symbolize_*.ml \"$dir\"");
}

static int group_teardown(void **state)
{
	(void)state;
	return have_ocaml ? run("rm -rf \"$dir\"") : 0;
}

/* Build symbolize_prog.ml in a directory of its own, "name". */
static void build(const char *name, const char *flags)
{
	if (!have_ocaml)
		skip();
	assert_int_equal(run("mkdir -p \"$dir\"/%s && cd \"$dir\"/%s && cp ../*.ml . && "
			     "ocamlopt %s symbolize_dump.ml symbolize_prog.ml -o prog",
			     name, name, flags),
			 0);
}

static void start(const char *name, uid_t uid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s/prog", dir, name);
	assert_true(program__start(&program, (char *[]){ path, NULL }, uid));
	assert_true(program__listen(&program));
	assert_true(program.n > 100);
}

static struct symbolizer *look_at(pid_t pid)
{
	struct hs_error err = { "" };
	struct symbolizer *s;

	if (symbolizer__by_hand(&s, pid, &layout, &err))
		fail_msg("%s", err.text);
	return s;
}

static void assert_same(struct symbolizer *s, const struct expected *e)
{
	const struct hs_location *l;
	int n = symbolizer__resolve(s, e->slot, &l);

	if (!e->n) { /* no debug information: at most a symbol */
		assert_int_equal(n, 1);
		assert_null(l->file);
		assert_int_equal(l->line | l->start_char | l->end_char | l->is_inlined, 0);
		return;
	}
	for (int i = 0; i < e->n && i < n; i++) {
		char line[4096];

		snprintf(line, sizeof(line), "%s\t%s\t%u\t%u\t%u\t%u\t%u\t%s",
			 l[i].function ? l[i].function : "-", l[i].file ? l[i].file : "-",
			 l[i].line, l[i].end_line, l[i].start_char, l[i].end_char, l[i].end_offset,
			 l[i].is_inlined ? "true" : "false");
		assert_string_equal(line, e->locs[i]);
	}
	assert_int_equal(n, e->n);
}

static void assert_all_same(struct symbolizer *s, const struct program *p)
{
	for (size_t i = 0; i < p->n; i++)
		assert_same(s, &p->slots[i]);
}

/* The program says what the test is about: else it would prove little. */
static void assert_is_varied(const struct program *p)
{
	static const char *const parts[] = {
		"\ttrue", "Sub.(>>=)", "c#m", "Make.f'", "naïve", "\t524287\t", "\t5000\t", "(fun)",
	};
	size_t n_debuginfo = 0;

	for (size_t i = 0; i < p->n; i++)
		n_debuginfo += p->slots[i].slot % 4 == 2;
	assert_true(n_debuginfo > 10);
	for (size_t k = 0; k < sizeof(parts) / sizeof(*parts); k++) {
		bool found = false;

		for (size_t i = 0; i < p->n; i++)
			for (int j = 0; j < p->slots[i].n; j++)
				found |= strstr(p->slots[i].locs[j], parts[k]) != NULL;
		if (!found)
			fail_msg("no %s among the positions", parts[k]);
	}
}

/* Alive; and after its file and itself have gone. */
static void check_with_debug(const char *name)
{
	struct symbolizer *s;

	start(name, 0);
	assert_is_varied(&program);
	s = look_at(program.pid);
	assert_all_same(s, &program);
	symbolizer__free(s);

	assert_int_equal(run("rm \"$dir\"/%s/prog && cp /bin/true \"$dir\"/%s/prog", name, name),
			 0);
	s = look_at(program.pid);
	program__kill(&program);
	assert_int_equal(run("rm \"$dir\"/%s/prog", name), 0);
	assert_all_same(s, &program);
	symbolizer__free(s);
	program__end(&program);
}

static void test_pie(void **state)
{
	(void)state;
	build("pie", "-g -inline 100");
	check_with_debug("pie");
}

static void test_non_pie(void **state)
{
	(void)state;
	build("nopie", "-g -inline 100 -ccopt -no-pie");
	check_with_debug("nopie");
}

static void test_stripped(void **state)
{
	(void)state;
	build("stripped", "-g -inline 100");
	assert_int_equal(run("strip \"$dir\"/stripped/prog"), 0);
	check_with_debug("stripped");
}

/* Without -g, allocations have no position, though calls do. */
static void assert_symbols(struct symbolizer *s)
{
	static const char *const names[] = {
		"Symbolize_prog.one_alloc",
		"Symbolize_prog.combined",
		"Symbolize_prog.@:",
		"Symbolize_prog.f'",
		"caml_program",
	};
	const struct hs_location *l;

	assert_all_same(s, &program);
	for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
		bool found = false;

		for (size_t i = 0; i < program.n && !found; i++) {
			symbolizer__resolve(s, program.slots[i].slot, &l);
			found = l->function && strcmp(l->function, names[k]) == 0;
		}
		if (!found)
			fail_msg("no function %s", names[k]);
	}
	for (size_t i = 0; i < program.n; i++) {
		symbolizer__resolve(s, program.slots[i].slot, &l);
		assert_non_null(l->function);
	}
}

static void check_without_debug(const char *name)
{
	struct symbolizer *s;

	start(name, 0);
	s = look_at(program.pid);
	assert_symbols(s);
	symbolizer__free(s);
	s = look_at(program.pid);
	program__kill(&program);
	assert_symbols(s);
	symbolizer__free(s);
	program__end(&program);
}

static void test_no_debug(void **state)
{
	(void)state;
	build("nodebug", "");
	check_without_debug("nodebug");
	build("nodebug_nopie", "-ccopt -no-pie");
	check_without_debug("nodebug_nopie");
	build("nodebug_relr", "-ccopt -Wl,-z,pack-relative-relocs");
	check_without_debug("nodebug_relr");
}

/* Stripped and without -g: ocamlopt exports its functions when it is asked to. */
static void test_no_debug_stripped(void **state)
{
	(void)state;
	build("bare", "-ccopt -Wl,-E");
	assert_int_equal(run("strip \"$dir\"/bare/prog"), 0);
	check_without_debug("bare");
}

/* Without CAP_CHECKPOINT_RESTORE, map_files cannot be used. */
static void test_unprivileged(void **state)
{
	struct symbolizer *s;

	(void)state;
	build("nobody", "-g -inline 100");
	if (getuid() != 0) {
		check_with_debug("nobody");
		return;
	}
	start("nobody", NOBODY);
	assert_int_equal(run("mv \"$dir\"/nobody/prog \"$dir\"/nobody/prog2"), 0);
	assert_int_equal(seteuid(NOBODY), 0);
	prctl(PR_SET_DUMPABLE, 1); /* or /proc/self is closed to us */
	s = look_at(program.pid);
	assert_int_equal(seteuid(0), 0);
	prctl(PR_SET_DUMPABLE, 1);
	program__kill(&program);
	assert_all_same(s, &program);
	symbolizer__free(s);
	program__end(&program);
}

static void test_not_allowed(void **state)
{
	struct hs_error err = { "" };
	struct symbolizer *s;
	int code;

	(void)state;
	if (getuid() != 0)
		skip();
	assert_int_equal(seteuid(NOBODY), 0);
	code = symbolizer__by_hand(&s, 1, &layout, &err);
	assert_int_equal(seteuid(0), 0);
	prctl(PR_SET_DUMPABLE, 1);
	assert_int_equal(code, -EACCES);
	assert_non_null(strstr(err.text, "root"));
}

/* Code that was not there when the symbolizer was made, and is a file of its own. */
static void test_dynlink(void **state)
{
	char host[PATH_MAX], plugin[PATH_MAX];
	struct symbolizer *s, *late;

	(void)state;
	if (!have_ocaml)
		skip();
	assert_int_equal(run("mkdir -p \"$dir\"/dyn && cd \"$dir\"/dyn && cp ../*.ml . && "
			     "ocamlopt -g -linkall -I +dynlink dynlink.cmxa symbolize_dump.ml "
			     "symbolize_host.ml -o host && "
			     "ocamlopt -g -inline 100 -shared symbolize_plugin.ml -o plugin.cmxs"),
			 0);
	snprintf(host, sizeof(host), "%s/dyn/host", dir);
	snprintf(plugin, sizeof(plugin), "%s/dyn/plugin.cmxs", dir);
	assert_true(program__start(&program, (char *[]){ host, plugin, NULL }, 0));
	assert_true(program__listen(&program));
	s = look_at(program.pid);
	program__go_on(&program);
	assert_true(program__listen(&program));
	assert_true(program.n > 3 && program.slots[0].n == 1);
	assert_non_null(strstr(program.slots[0].locs[0], "Symbolize_plugin.inside"));
	assert_all_same(s, &program);
	symbolizer__free(s);
	late = look_at(program.pid);
	program__kill(&program);
	assert_int_equal(run("rm \"$dir\"/dyn/plugin.cmxs"), 0);
	assert_all_same(late, &program);
	symbolizer__free(late);
	program__end(&program);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pie),
		cmocka_unit_test(test_non_pie),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_no_debug),
		cmocka_unit_test(test_no_debug_stripped),
		cmocka_unit_test(test_unprivileged),
		cmocka_unit_test(test_not_allowed),
		cmocka_unit_test(test_dynlink),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
