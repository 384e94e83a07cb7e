/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel offers, as found by trying; and the verdicts on it. */
#include "tests/unit/probe_program.h"

#include <dirent.h>
#include <linux/capability.h>

#include "user/attach/kernel.h"

static struct hs_error err;

static void expect(const struct kernel_features *f, int code, const char *text)
{
	assert_int_equal(kernel_features__require(f, &err), code);
	if (code && !strstr(err.text, text))
		fail_msg("`%s` does not say `%s`", err.text, text);
}

/* A kernel with everything, and all capabilities. */
static const struct kernel_features all = {
	.release = "9.9",
	.caps = ~0ull,
	.bpf = true,
	.ringbuf = true,
	.bpf_loop = true,
	.sleepable_uprobe = true,
	.perf_uprobe = true,
	.uprobe_multi = true,
	.uprobe_multi_by_pid = true,
	.nop10 = true,
	.pidfd_open = true,
	.process_vm_readv = true,
	.btf = true,
};

static void names_what_is_missing(void **state)
{
	struct kernel_features f = all;

	(void)state;
	expect(&f, 0, "");
	f.sleepable_uprobe = f.nop10 = f.uprobe_multi = f.uprobe_multi_by_pid = f.btf = false;
	expect(&f, 0, "");
	f.perf_uprobe = false;
	f.perf_error = -EOPNOTSUPP;
	expect(&f, -EOPNOTSUPP, "kernel (9.9) lacks uprobes");
	f.perf_error = -EACCES;
	f.caps &= ~(1ull << CAP_SYS_ADMIN);
	expect(&f, -EPERM, "CAP_SYS_ADMIN");
	/* An early link, that would see one thread only, does not count. */
	f.uprobe_multi = true;
	expect(&f, -EPERM, "CAP_SYS_ADMIN");
	f.uprobe_multi_by_pid = true;
	expect(&f, 0, "");
	f = all;
	f.bpf_loop = false;
	expect(&f, -EOPNOTSUPP, "bpf_loop");
	f = all;
	f.ringbuf = false;
	f.ringbuf_error = -EINVAL;
	expect(&f, -EOPNOTSUPP, "ring buffer");
	f.ringbuf_error = -ENOMEM;
	expect(&f, -ENOMEM, "cannot create BPF maps: Cannot allocate memory");
	f = all;
	f.bpf = false;
	f.bpf_error = -ENOSYS;
	expect(&f, -EOPNOTSUPP, "BPF programs");
	f.bpf_error = -EMFILE;
	expect(&f, -EMFILE, "cannot load BPF programs: Too many open files");
	f.bpf_error = -EPERM;
	expect(&f, -EPERM, "although the capabilities are there");
	f.caps = 1ull << CAP_BPF;
	expect(&f, -EPERM, "lacking: CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_PTRACE");
	assert_null(strstr(err.text, "CAP_BPF"));
}

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void probes_this_kernel(void **state)
{
	struct kernel_feature_row row;
	struct kernel_features f;
	int before = open_fds();
	size_t n = 0;

	(void)state;
	assert_int_equal(kernel_features__probe(&f, &err), 0);
	assert_int_equal(open_fds(), before);
	assert_true(f.release[0]);
	assert_true(f.pidfd_open);
	assert_true(f.process_vm_readv);
	/* The machines that the tests run on can do the main job. */
	if (!geteuid()) {
		expect(&f, 0, "");
		assert_true(f.bpf && f.ringbuf && f.bpf_loop);
	}
	while (kernel_features__row(&f, n, &row)) {
		assert_true(*row.key && *row.title && *row.note);
		n++;
	}
	assert_int_equal(n, 11);
	assert_string_equal(kernel_lockdown__name(LOCKDOWN_INTEGRITY), "integrity");
}

static void without_privileges(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	pid = fork();
	if (!pid) {
		struct kernel_feature_row row;
		struct kernel_features f;

		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(2);
		if (kernel_features__probe(&f, &err))
			_exit(3);
		/* Unless this machine lets everybody load such programs. */
		if (f.bpf)
			_exit(0);
		if (kernel_features__require(&f, &err) != -EPERM || !strstr(err.text, "CAP_BPF"))
			_exit(4);
		kernel_features__row(&f, 1, &row);
		_exit(row.state == FEATURE_UNKNOWN ? 0 : 5);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Nothing but what was named is taken away, and a wrong name is no silent one. */
static void does_without(void **state)
{
	static const char *const wrong[] = { "nop",    "nop100", "ringbuf",      ",",
					     "nop10,", ",nop10", "nop10,,nop10", " nop10" };
	struct kernel_features f = all, expected = all;

	(void)state;
	assert_int_equal(kernel_features__without(&f, "", &err), 0);
	assert_memory_equal(&f, &expected, sizeof(f));
	assert_int_equal(kernel_features__without(&f, "nop10", &err), 0);
	expected.nop10 = false;
	assert_memory_equal(&f, &expected, sizeof(f));
	assert_int_equal(kernel_features__without(&f, "uprobe_multi,sleepable_uprobe", &err), 0);
	expected.uprobe_multi = expected.uprobe_multi_by_pid = expected.sleepable_uprobe = false;
	assert_memory_equal(&f, &expected, sizeof(f));
	expect(&f, 0, "");
	/* Both ways of attaching. */
	assert_int_equal(kernel_features__without(&f, "perf_uprobe", &err), 0);
	expect(&f, -EOPNOTSUPP, "lacks uprobes");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		f = all;
		assert_int_equal(kernel_features__without(&f, wrong[i], &err), -EINVAL);
		assert_non_null(strstr(err.text, "HEAPSONDE_WITHOUT"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_what_is_missing),
		cmocka_unit_test(probes_this_kernel),
		cmocka_unit_test(without_privileges),
		cmocka_unit_test(does_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
