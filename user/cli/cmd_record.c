/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heapsonde record: attach to a process, or start one, and write what Gc.Memprof
 * would have told it.
 */
#include <stdio.h>

#include "user/cli/cli.h"
#include "user/cli/record.h"
#include "user/cli/record_daemon.h"
#include "user/cli/record_notes.h"
#include "user/track/sites.h"

/* Notes for people, on stderr: why it ended, what was lost, the table of sites. */
static void print_end(const struct session *s)
{
	json_t *lost = profile_json__lost(s->profile);

	record_notes__print(end_reason__text(s->profile->reason), s->target->pid, s->child, lost,
			    domain_book__waiting_max(s->profile->book));
	json_decref(lost);
	if (s->profile->pipeline.sites)
		sites__print(s->profile->pipeline.sites, stderr, (size_t)s->options->top);
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
	if (record_daemon__is_wanted(options.socket)) {
		status = record_daemon__run(&options);
		goto out;
	}
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
