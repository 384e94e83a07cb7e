/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is made of what the kernel offers; see kernel.h.
 *
 * In:   struct kernel_features.
 * Out:  whether it is enough to attach, with the reason if it is not; the rows of
 *       `heapsonde version`.
 */
#include "user/attach/kernel.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

static bool has_cap(const struct kernel_features *f, unsigned cap)
{
	/* CAP_SYS_ADMIN implies both of these, as before they were split off. */
	if ((cap == CAP_BPF || cap == CAP_PERFMON) && f->caps >> CAP_SYS_ADMIN & 1)
		return true;
	return f->caps >> cap & 1;
}

/* Write the names of the capabilities that are wanted and lacking; returns how many. */
static int lacking_caps(const struct kernel_features *f, char *text, size_t size)
{
	static const struct {
		unsigned cap;
		const char *name;
	} wanted[] = {
		{ CAP_BPF, "CAP_BPF" },
		{ CAP_PERFMON, "CAP_PERFMON" },
		{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
		{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
	};
	int n = 0;

	text[0] = 0;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		size_t len = strlen(text);

		if (!has_cap(f, wanted[i].cap))
			snprintf(text + len, size - len, "%s%s", n++ ? ", " : "", wanted[i].name);
	}
	return n;
}

static bool denied(int code)
{
	return code == -EPERM || code == -EACCES;
}

static int not_permitted(const struct kernel_features *f, const char *what, struct hs_error *err)
{
	char caps[128];

	if (lacking_caps(f, caps, sizeof(caps)))
		return hs_error__set(err, -EPERM,
				     "not permitted to %s: run as root, or with the "
				     "capabilities that are lacking: %s",
				     what, caps);
	return hs_error__set(err, -EPERM,
			     "not permitted to %s although the capabilities are there: a "
			     "container, a seccomp filter or a security module forbids it",
			     what);
}

static int missing(const struct kernel_features *f, const char *what, struct hs_error *err)
{
	return hs_error__set(err, -EOPNOTSUPP, "the kernel (%s) lacks %s: 6.1 or later is needed",
			     f->release, what);
}

int kernel_features__require(const struct kernel_features *f, struct hs_error *err)
{
	if (!f->bpf && denied(f->bpf_error))
		return not_permitted(f, "load BPF programs", err);
	if (!f->bpf && hs_error__is_shortage(f->bpf_error))
		return hs_error__set(err, f->bpf_error, "cannot load BPF programs: %s",
				     strerror(-f->bpf_error));
	if (!f->bpf)
		return missing(f, "BPF programs of type kprobe", err);
	if (!f->ringbuf && denied(f->ringbuf_error))
		return not_permitted(f, "create BPF maps", err);
	if (!f->ringbuf && hs_error__is_shortage(f->ringbuf_error))
		return hs_error__set(err, f->ringbuf_error, "cannot create BPF maps: %s",
				     strerror(-f->ringbuf_error));
	if (!f->ringbuf)
		return missing(f, "the BPF ring buffer", err);
	if (!f->bpf_loop)
		return missing(f, "the BPF helper bpf_loop", err);
	/* A link that filters by thread would lose what other domains allocate. */
	if (!f->perf_uprobe && !f->uprobe_multi_by_pid && denied(f->perf_error))
		return not_permitted(f, "attach uprobes", err);
	if (!f->perf_uprobe && !f->uprobe_multi_by_pid && hs_error__is_shortage(f->perf_error))
		return hs_error__set(err, f->perf_error, "cannot open a uprobe: %s",
				     strerror(-f->perf_error));
	if (!f->perf_uprobe && !f->uprobe_multi_by_pid)
		return missing(f, "uprobes with semaphores (CONFIG_UPROBE_EVENTS)", err);
	if (!f->pidfd_open)
		return missing(f, "pidfd_open", err);
	if (!f->process_vm_readv)
		return missing(f, "process_vm_readv (CONFIG_CROSS_MEMORY_ATTACH)", err);
	return 0;
}

bool kernel_features__row(const struct kernel_features *f, size_t i, struct kernel_feature_row *row)
{
	enum feature_state no = !f->bpf && denied(f->bpf_error) ? FEATURE_UNKNOWN : FEATURE_NO;
	enum feature_state no_perf = denied(f->perf_error) ? FEATURE_UNKNOWN : FEATURE_NO;
#define BPF_ROW(field, title, note) { #field, title, note, f->field ? FEATURE_YES : no }
#define ROW(field, title, note) { #field, title, note, f->field ? FEATURE_YES : FEATURE_NO }
	const struct kernel_feature_row rows[] = {
		BPF_ROW(bpf, "BPF programs", "required"),
		BPF_ROW(ringbuf, "BPF ring buffer", "required"),
		BPF_ROW(bpf_loop, "bpf_loop", "required"),
		BPF_ROW(sleepable_uprobe, "sleepable uprobes",
			"without: reads of pages that are not present count as lost"),
		{ "perf_uprobe", "perf uprobes", "this or uprobe_multi is required",
		  f->perf_uprobe ? FEATURE_YES : no_perf },
		BPF_ROW(uprobe_multi, "uprobe_multi links", "without: attaching is slower"),
		BPF_ROW(uprobe_multi_by_pid, "uprobe_multi by process",
			"without: perf uprobes are used instead"),
		ROW(nop10, "optimized uprobes (nop10)", "without: a probe costs twice as much"),
		ROW(pidfd_open, "pidfd_open", "required"),
		ROW(process_vm_readv, "process_vm_readv", "required"),
		ROW(btf, "kernel BTF", "type information for BPF programs"),
	};
#undef BPF_ROW
#undef ROW

	if (i >= sizeof(rows) / sizeof(rows[0]))
		return false;
	*row = rows[i];
	return true;
}
