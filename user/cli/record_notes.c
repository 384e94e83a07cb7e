/* SPDX-License-Identifier: BSD-2-Clause */
/* See record_notes.h. */
#include "user/cli/record_notes.h"

#include <stdio.h>
#include <string.h>

#include "user/profile/profile.h"

static bool is(const char *reason, enum end_reason which)
{
	return !strcmp(reason, end_reason__text(which));
}

void record_notes__print(const char *reason, pid_t pid, bool is_command, const json_t *lost)
{
	const char *cause;
	json_t *n;

	if (is(reason, END_TARGET_EXITED) && !is_command)
		fprintf(stderr, "heapsonde: PID %d has ended\n", pid);
	if (is(reason, END_TARGET_EXECED))
		fprintf(stderr, "heapsonde: PID %d runs another program now\n", pid);
	if (is(reason, END_DOMAINS_GONE))
		fputs("heapsonde: all domains that were recorded have terminated\n", stderr);
	json_object_foreach ((json_t *)lost, cause, n)
		fprintf(stderr, "heapsonde: lost %s: %lld\n", cause,
			(long long)json_integer_value(n));
}
