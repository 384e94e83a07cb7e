/* SPDX-License-Identifier: BSD-2-Clause */
/* See record_notes.h. */
#include "user/cli/record_notes.h"

#include <string.h>

#include "user/common/say.h"
#include "user/profile/profile.h"

static bool is(const char *reason, enum end_reason which)
{
	return !strcmp(reason, end_reason__text(which));
}

void record_notes__print(const char *reason, pid_t pid, bool is_command, const json_t *lost,
			 uint64_t waiting_max)
{
	const char *cause;
	json_t *n;

	if (is(reason, END_TARGET_EXITED) && !is_command)
		say__note("PID %d has ended", pid);
	if (is(reason, END_TARGET_EXECED))
		say__note("PID %d runs another program now", pid);
	if (is(reason, END_DOMAINS_GONE))
		say__note("all domains that were recorded have terminated");
	if (waiting_max && (is(reason, END_TARGET_EXITED) || is(reason, END_TARGET_EXECED)))
		say__note(
			"it ended in the middle of its work: up to %llu sampled blocks that it had "
			"not handed over yet are missing",
			(unsigned long long)waiting_max);
	json_object_foreach ((json_t *)lost, cause, n)
		say__note("lost %s: %lld", cause, (long long)json_integer_value(n));
}
