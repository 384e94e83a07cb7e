/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `heapsonde record`: its options and its session.
 *
 *   record_options.c   from argv to struct record_options
 *   session.c          target → attachment → collecting until something ends it, also while
 *                      the output has no room
 *   cmd_record.c       the command
 */
#ifndef HEAPSONDE_RECORD_H
#define HEAPSONDE_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/attach/attach.h"
#include "user/attach/child.h"
#include "user/cli/output_file.h"
#include "user/profile/profile.h"
#include "user/sinks/outbox_stream.h"

struct record_options {
	pid_t pid;      /* 0: start command */
	char **command; /* NULL-terminated; in argv */
	struct profile_options profile;
	double duration_s;  /* 0: until something else ends it */
	const char *output; /* NULL: stdout; in argv; to be expanded (output_file.h) */
	bool force;         /* replace it */
	enum sink_format format;
	int top;            /* allocation sites to print at the end; 0: none */
	const char *socket; /* the daemon's, if it is to do it; in argv */
};

/*
 * Parse argv. 0, or the exit status of a usage error, which has been printed.
 * *o is to be freed with record_options__deinit in any case.
 */
int record_options__parse(struct record_options *o, int argc, char **argv);
void record_options__deinit(struct record_options *o);

struct session {
	const struct record_options *options;
	struct kernel_features kernel;
	struct target *target;
	struct child *child; /* NULL with -p */
	struct symbolizer *symbolizer;
	struct sink *sink;       /* writes to the outbox */
	struct outbox *outbox;   /* writes the output */
	struct output_file file; /* until the recording has begun; then it is the outbox's */
	char *output;            /* its name, expanded; NULL: stdout */
	struct profile *profile;
	int signal_fd;
	uint64_t end_ns; /* when the duration asked for is over; 0: never */
	enum end_reason reason;
	int n_signals;             /* to us, with a command */
	uint64_t waiting_since_ns; /* for the output alone; 0: not yet */
	bool is_waiting_told;      /* it has been said that the output keeps us waiting */
	bool is_given_up;          /* and that was too long for somebody */
};

/*
 * Get everything ready and attach. On error s is still to be freed, and nothing
 * is attached, written to the target or left running.
 */
int session__begin(struct session *s, const struct record_options *o, struct hs_error *err);

/*
 * Collect until something ends it; then detach and write the rest, and wait for as long as that
 * takes, or until somebody who has been told so gives up.
 */
int session__run(struct session *s, struct hs_error *err);

/*
 * Wait for the command to end, passing signals on; however the recording went, it
 * is the user's program. Returns its exit code as a shell would show it.
 */
int session__wait_child(struct session *s);

/* Free what there is. A zeroed s is fine. */
void session__free(struct session *s);

#endif /* HEAPSONDE_RECORD_H */
