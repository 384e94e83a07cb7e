/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * errs HOW [WHERE]: does what a sanitizer is to notice. Part of the build with sanitizers only, to
 * show that they are heard (tests/sanitized/sanitized.bats).
 *
 * In:   HOW: `heap`, `freed`, `overflow`, `leak`, or `nothing`. WHERE: `here` (by default);
 * `child`, a forked one whose status nobody looks at; `supervisor` or `worker`, within the daemon's
 * sandbox. Out:  a report, and exit status 99; with `child` 0.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/attach/kernel.h"
#include "user/daemon/sandbox.h"

/* What the compiler does not see through. */
static volatile int one = 1;
static char *volatile kept;

static int err(const char *how)
{
	if (!strcmp(how, "heap")) {
		kept = malloc(8);
		return kept[7 + one];
	}
	if (!strcmp(how, "freed")) {
		kept = malloc(8);
		free(kept);
		return kept[one];
	}
	if (!strcmp(how, "overflow")) {
		one += INT_MAX;
		return 0;
	}
	if (!strcmp(how, "leak")) {
		kept = malloc(8);
		kept = NULL;
		return 0;
	}
	return strcmp(how, "nothing") ? 2 : 0;
}

static int enter(const char *where)
{
	struct kernel_features kernel;
	struct hs_error error;

	if (!strcmp(where, "here") || !strcmp(where, "child"))
		return 0;
	if (kernel_features__probe(&kernel, &error))
		return -1;
	if (sandbox__enter(&kernel, &error) ||
	    (!strcmp(where, "worker") && sandbox__enter_worker(&error))) {
		fprintf(stderr, "errs: %s\n", error.text);
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *where = argc > 2 ? argv[2] : "here";

	if (argc < 2 || enter(where))
		return 2;
	if (strcmp(where, "child"))
		return err(argv[1]);
	switch (fork()) {
	case -1:
		return 2;
	case 0:
		exit(err(argv[1]));
	default:
		wait(NULL);
		return 0;
	}
}
