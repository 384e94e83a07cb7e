/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `heapsonde record`: its options and its session.
 *
 *   record_options.c   from argv to struct record_options
 *   session.c          target → attachment → collecting until something ends it
 *   session_json.c     the records that have no fixed form: header … summary
 *   cmd_record.c       the command
 */
#ifndef HEAPSONDE_RECORD_H
#define HEAPSONDE_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/attach/attach.h"
#include "user/attach/child.h"
#include "user/collect/collect.h"
#include "user/track/domains.h"
#include "user/track/pipeline.h"

struct record_options {
	pid_t pid;      /* 0: start command */
	char **command; /* NULL-terminated; in argv */
	struct attach_options attach;
	uint32_t *domains;  /* what attach.domains points to; owned */
	char track[128];    /* --track as given, or "all" */
	double duration_s;  /* 0: until something else ends it */
	const char *output; /* NULL: stdout; in argv */
	bool is_raw;
	int top;           /* allocation sites to print at the end; 0: none */
	int n_rates_given; /* by -r and --interval */
};

/*
 * Parse argv. 0, or the exit status of a usage error, which has been printed.
 * *o is to be freed with record_options__deinit in any case.
 */
int record_options__parse(struct record_options *o, int argc, char **argv);
void record_options__deinit(struct record_options *o);

enum end_reason {
	END_NONE = 0,
	END_INTERRUPTED, /* by a signal to us */
	END_DURATION,
	END_TARGET_EXITED,
	END_TARGET_EXECED, /* it runs another program now */
	END_ERROR,
};

struct session {
	const struct record_options *options;
	struct kernel_features kernel;
	struct target *target;
	struct child *child; /* NULL with -p */
	struct symbolizer *symbolizer;
	struct sink *sink;
	struct pipeline pipeline;
	struct attachment *attachment;
	struct collector *collector;
	struct domain_book *book;
	int signal_fd;
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
	enum end_reason reason;
	int n_signals; /* to us, with a command */
};

/*
 * Get everything ready and attach. On error s is still to be freed, and nothing
 * is attached, written to the target or left running.
 */
int session__begin(struct session *s, const struct record_options *o, struct hs_error *err);

/* Collect until something ends it; then detach and write the rest. */
int session__run(struct session *s, struct hs_error *err);

/*
 * Wait for the command to end, passing signals on; however the recording went, it
 * is the user's program. Returns its exit code as a shell would show it.
 */
int session__wait_child(struct session *s);

/* Free what there is. A zeroed s is fine. */
void session__free(struct session *s);

/* The records of session_json.c; new references, NULL if memory is short. */
json_t *session_json__header(const struct session *s);
json_t *session_json__profile(const struct session *s);
json_t *session_json__loss(uint32_t domain, enum hs_loss cause, uint64_t n);
json_t *session_json__summary(const struct session *s, uint64_t missed);

/* CLOCK_MONOTONIC in ns, the clock of all records. */
uint64_t session__now_ns(void);

#endif /* HEAPSONDE_RECORD_H */
