/* SPDX-License-Identifier: BSD-2-Clause */
/* See sandbox.h. */
#include "user/daemon/sandbox.h"

#include <errno.h>
#include <linux/securebits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>

#include "user/daemon/sandbox_calls.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- capabilities ------------------------------------------------------------- */

/* docs/daemon.md says why; scripts/heapsonde.service lists the same. */
static const struct {
	cap_value_t cap;
	bool for_perf; /* only where the kernel lacks uprobe_multi */
} kept_caps[] = {
	{ CAP_BPF, false },
	{ CAP_PERFMON, false },
	{ CAP_SYS_PTRACE, false },
	{ CAP_CHECKPOINT_RESTORE, false },
	{ CAP_DAC_READ_SEARCH, false },
	{ CAP_SYS_ADMIN, true },
};

static bool attaches_with_perf(const struct kernel_features *kernel)
{
	return !kernel->uprobe_multi || !kernel->uprobe_multi_by_pid;
}

uint64_t sandbox__caps(const struct kernel_features *kernel)
{
	uint64_t caps = 0;

	for (size_t i = 0; i < N_OF(kept_caps); i++)
		if (!kept_caps[i].for_perf || attaches_with_perf(kernel))
			caps |= 1ull << kept_caps[i].cap;
	return caps;
}

/* What a later execve could give back. */
static int empty_bounding_set(uint64_t keep)
{
	for (cap_value_t cap = 0; cap < cap_max_bits(); cap++)
		if (!(keep >> cap & 1) && cap_get_bound(cap) == 1 && cap_drop_bound(cap))
			return -errno;
	return 0;
}

/* No capabilities for being root, and no way back to it. */
static int lock_securebits(void)
{
	unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	return prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) ? -errno : 0;
}

/* Keep those of `keep` that are permitted, in the permitted and the effective set. */
static int keep_caps(cap_t now, uint64_t keep)
{
	cap_t next = cap_init();
	int err = next ? 0 : -errno;

	for (cap_value_t cap = 0; !err && cap < cap_max_bits(); cap++) {
		cap_flag_value_t is_permitted = CAP_CLEAR;

		if (!(keep >> cap & 1))
			continue;
		if (cap_get_flag(now, cap, CAP_PERMITTED, &is_permitted))
			err = -errno;
		else if (is_permitted && (cap_set_flag(next, CAP_PERMITTED, 1, &cap, CAP_SET) ||
					  cap_set_flag(next, CAP_EFFECTIVE, 1, &cap, CAP_SET)))
			err = -errno;
	}
	if (!err && cap_set_proc(next))
		err = -errno;
	cap_free(next);
	return err;
}

static int drop_caps(uint64_t keep)
{
	cap_flag_value_t has_setpcap = CAP_CLEAR;
	cap_t now = cap_get_proc();
	int err = now ? 0 : -errno;

	if (!err &&
	    (cap_get_flag(now, CAP_SETPCAP, CAP_EFFECTIVE, &has_setpcap) || cap_reset_ambient()))
		err = -errno;
	if (!err && has_setpcap == CAP_SET)
		err = empty_bounding_set(keep);
	if (!err && has_setpcap == CAP_SET)
		err = lock_securebits();
	if (!err)
		err = keep_caps(now, keep);
	cap_free(now);
	return err;
}

/* ---- all of it ---------------------------------------------------------------- */

static int failed(const char *what, int code, struct hs_error *err)
{
	return hs_error__set(err, code, "cannot give up %s: %s", what, strerror(-code));
}

int sandbox__enter(const struct kernel_features *kernel, struct hs_error *err)
{
	int ret = drop_caps(sandbox__caps(kernel));

	if (ret)
		return failed("capabilities", ret, err);
	/* No core files: they would hold what was read of other users' processes. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return failed("the way to new privileges", -errno, err);
	ret = sandbox_calls__forbid(attaches_with_perf(kernel));
	return ret ? failed("system calls (seccomp)", ret, err) : 0;
}

int sandbox__enter_worker(struct hs_error *err)
{
	int ret = sandbox_calls__forbid_supervisors();

	return ret ? failed("system calls (seccomp)", ret, err) : 0;
}
