/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doing without what the kernel offers; see kernel.h.
 *
 * In:   features as probed; names from HEAPSONDE_WITHOUT.
 * Out:  the features with those taken away, as if the kernel lacked them.
 */
#include "user/attach/kernel.h"

#include <errno.h>
#include <string.h>

/* Only what something else can stand in for. False: no such name. */
static bool take_away(struct kernel_features *f, const char *name, size_t len)
{
#define IS(word) (len == strlen(word) && !memcmp(name, word, len))
	if (IS("sleepable_uprobe")) {
		f->sleepable_uprobe = false;
	} else if (IS("uprobe_multi")) {
		f->uprobe_multi = f->uprobe_multi_by_pid = false;
	} else if (IS("perf_uprobe")) {
		f->perf_uprobe = false;
		f->perf_error = -EOPNOTSUPP;
	} else if (IS("nop10")) {
		f->nop10 = false;
	} else {
		return false;
	}
#undef IS
	return true;
}

int kernel_features__without(struct kernel_features *f, const char *names, struct hs_error *err)
{
	while (*names) {
		size_t len = strcspn(names, ",");

		if (!take_away(f, names, len))
			return hs_error__set(
				err, -EINVAL,
				"HEAPSONDE_WITHOUT: `%.*s' is none of sleepable_uprobe, "
				"uprobe_multi, perf_uprobe, nop10",
				(int)len, names);
		names += len;
		/* A comma promises another name. */
		if (*names && !*++names)
			return hs_error__set(
				err, -EINVAL,
				"HEAPSONDE_WITHOUT: a name is missing after the comma");
	}
	return 0;
}
