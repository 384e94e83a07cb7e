/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the events of `heapsonde top` come from: a profile in this process, or one in
 * the daemon.
 *
 * In:   a process, what to sample of it.
 * Out:  the sampled heap, and the records that a sink is told.
 */
#ifndef HEAPSONDE_SOURCE_H
#define HEAPSONDE_SOURCE_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "user/common/error.h"
#include "user/profile/profile.h"
#include "user/sinks/sink.h"
#include "user/track/heap.h"

#define SOURCE_FDS 3

struct source_options {
	pid_t pid;
	const struct profile_options *profile; /* borrowed */
	const char *socket;                    /* of the daemon; NULL: where it is by default */
	struct sink *sink;                     /* borrowed: told all records */
	struct heap *heap;                     /* borrowed */
};

struct source;

struct source_ops {
	/* Fill in at most SOURCE_FDS descriptors to be polled. Returns how many. */
	int (*fds)(const struct source *s, struct pollfd *fds);
	/*
	 * Take in what there is, within bounds, so that keys are seen under any load. 1:
	 * there may be more at once. 0: not now. Errors, with a text; then only free.
	 */
	int (*step)(struct source *s, struct hs_error *err);
	/*
	 * Sample at another rate. It is in force when the records say so; a refusal that
	 * comes later is told by `refusal`. Errors: a text.
	 */
	int (*set_rate)(struct source *s, double rate, struct hs_error *err);
	/* End the profile and take in the rest. 0 or an error with a text. */
	int (*finish)(struct source *s, enum end_reason reason, struct hs_error *err);
	void (*free)(struct source *s);
};

/* The first member of every source. */
struct source {
	const struct source_ops *ops;
	bool has_ended;          /* nothing is attached any more, and nothing will come */
	bool has_rate;           /* set_rate can be called: none is under way */
	int wait_ms;             /* how long records may wait for step; -1: fds tell */
	struct hs_error refusal; /* of the last rate; "": none. Emptied by who reads it */
};

/*
 * Attach. *out is owned by the caller; o is copied, and what it points to must outlive it. The
 * names in the heap are good until source__free. Errors, with a text: those of profile__begin, or
 * of the daemon.
 */
int source__begin_direct(struct source **out, const struct source_options *o, struct hs_error *err);
int source__begin_daemon(struct source **out, const struct source_options *o, struct hs_error *err);

/* Nothing stays attached. NULL is fine. */
void source__free(struct source *s);

#endif /* HEAPSONDE_SOURCE_H */
