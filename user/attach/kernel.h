/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the running kernel offers, found out by trying and not by version:
 * distributions backport, and containers and lockdown take away.
 *
 * In:   the kernel, the capabilities of this process, HEAPSONDE_WITHOUT.
 * Out:  struct kernel_features, for user/attach/attach.h (which way to attach) and
 *       `heapsonde version`.
 *
 * Every attempt is made so that it fails short of changing anything, or on an
 * object that is closed at once: nothing stays behind.
 */
#ifndef HEAPSONDE_KERNEL_H
#define HEAPSONDE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/common/error.h"

enum kernel_lockdown {
	LOCKDOWN_UNKNOWN = 0, /* securityfs not mounted, or no lockdown in this kernel */
	LOCKDOWN_NONE,
	LOCKDOWN_INTEGRITY,
	LOCKDOWN_CONFIDENTIALITY, /* reading user memory and uprobes still work */
};

struct kernel_features {
	char release[65];
	enum kernel_lockdown lockdown;
	uint64_t caps;            /* effective capabilities of this process, bit = CAP_… */
	int bpf_error;            /* why bpf is false: a negative errno; else 0 */
	int perf_error;           /* why perf_uprobe is false, likewise */
	bool bpf;                 /* a program of type KPROBE can be loaded */
	bool ringbuf;             /* BPF_MAP_TYPE_RINGBUF */
	int ringbuf_error;        /* why it is false, likewise */
	bool bpf_loop;            /* bpf_loop in KPROBE programs */
	bool sleepable_uprobe;    /* sleepable KPROBE programs with copy_from_user */
	bool perf_uprobe;         /* perf_event uprobes with a semaphore (ref_ctr) */
	bool uprobe_multi;        /* BPF_TRACE_UPROBE_MULTI links */
	bool uprobe_multi_by_pid; /* their PID filter means the process, not a thread */
	bool nop10;               /* a uprobe on a ten-byte nop is optimized, safely */
	bool pidfd_open;
	bool process_vm_readv;
	bool btf; /* /sys/kernel/btf/vmlinux */
};

/*
 * Try everything; a few milliseconds. Without privileges the BPF features count
 * as absent, with bpf_error -EPERM. What the environment variable
 * HEAPSONDE_WITHOUT names counts as absent too. Returns 0, -ENOSYS if this kernel
 * does not even say what it is, or -EINVAL for a name that is none.
 */
int kernel_features__probe(struct kernel_features *out, struct hs_error *err);

/*
 * Let features that have a fallback count as absent, so that the fallback is used
 * on a kernel that would not need it. names: keys of rows (below), separated by
 * commas; "" takes nothing away. Returns 0, or -EINVAL for a name that is none.
 */
int kernel_features__without(struct kernel_features *f, const char *names, struct hs_error *err);

/*
 * Is everything there that attaching needs? 0, or a negative errno and a text
 * that names what is missing: -EPERM capabilities, -EOPNOTSUPP a kernel feature.
 */
int kernel_features__require(const struct kernel_features *f, struct hs_error *err);

enum feature_state {
	FEATURE_NO,
	FEATURE_YES,
	FEATURE_UNKNOWN, /* could not be tried for lack of privileges */
};

/* One feature as `heapsonde version` shows it. Strings are static. */
struct kernel_feature_row {
	const char *key;   /* name of the field above */
	const char *title; /* for people */
	const char *note;  /* what it is needed for, or what its absence means */
	enum feature_state state;
};

/*
 * The i-th row, i = 0 .. ; false when there are no more.
 */
bool kernel_features__row(const struct kernel_features *f, size_t i,
			  struct kernel_feature_row *row);

/* "none", "integrity", "confidentiality" or "unknown". */
const char *kernel_lockdown__name(enum kernel_lockdown l);

#endif /* HEAPSONDE_KERNEL_H */
