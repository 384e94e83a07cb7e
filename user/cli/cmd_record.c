/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heapsonde record: attach to a process, or start one, and write what Gc.Memprof
 * would have told it.
 */
#include <stdio.h>

#include "user/cli/cli.h"
#include "user/cli/record.h"

/* Notes for people, on stderr: why it ended, what was lost, the table of sites. */
static void print_end(const struct session *s)
{
	json_t *lost = domain_book__losses_to_json(s->book, true);
	const char *cause;
	json_t *n;

	if (s->reason == END_TARGET_EXITED && !s->child)
		fprintf(stderr, "heapsonde: PID %d has ended\n", s->target->pid);
	if (s->reason == END_TARGET_EXECED)
		fprintf(stderr, "heapsonde: PID %d runs another program now\n", s->target->pid);
	json_object_foreach (lost, cause, n)
		fprintf(stderr, "heapsonde: lost %s: %lld\n", cause,
			(long long)json_integer_value(n));
	json_decref(lost);
	if (s->pipeline.sites)
		site_table__print(s->pipeline.sites, stderr, s->options->top);
}

int cmd_record(int argc, char **argv)
{
	struct record_options options;
	struct session session;
	struct hs_error err;
	int status;

	status = record_options__parse(&options, argc, argv);
	if (status)
		goto out;
	if (session__begin(&session, &options, &err)) {
		status = cli__die(&err);
		session__free(&session);
		goto out;
	}
	if (session__run(&session, &err))
		status = cli__die(&err);
	else
		print_end(&session);
	if (session.child) {
		int code = session__wait_child(&session);

		status = status ? status : code;
	}
	session__free(&session);
out:
	record_options__deinit(&options);
	return status;
}
