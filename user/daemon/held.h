/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile as a worker holds it: the profile itself, its output, those who follow
 * it, and who waits for its end.
 *
 * In:   checked requests and the connections that they came on (worker.c).
 * Out:  records in outputs that cannot block us (user/sinks/consumer.h); answers.
 *
 * A held profile ends in three steps: profile__finish writes the summary, the
 * consumers write what waits in their queues, and when the last is done (or has
 * used up its time) those who wait for the end are told.
 */
#ifndef HEAPSONDE_HELD_H
#define HEAPSONDE_HELD_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "user/daemon/requests.h"
#include "user/daemon/readers.h"
#include "user/profile/profile.h"

enum held_state {
	HELD_RUNNING,   /* sampling or stopped: see profile->state */
	HELD_ENDING,    /* finished, its outputs are still being written */
	HELD_FINISHED,  /* nothing left but its status */
	HELD_DISCARDED, /* nobody may ask for it any more */
};

struct held {
	struct held *next;
	struct request request; /* the start */
	sd_event *loop;         /* borrowed */
	enum held_state state;
	struct profile *profile; /* NULL from HELD_FINISHED on */
	json_t *final;           /* its full status, from HELD_FINISHED on */
	struct sink *fanout;
	struct readers *readers; /* its output and those who follow */
	int client;              /* connection of a bound start; -1: none */
	sd_event_source *client_source;
	sd_event_source *duration_source; /* NULL: without end */
	int waiting;                      /* connection of a discard; -1: none */
	bool is_discarding;               /* becomes HELD_DISCARDED at its end */

	/* Something has changed that the supervisor should know. */
	void (*changed)(void *ctx, struct held *h);
	void *ctx;
};

/*
 * Start a profile. request is moved into *out, also on failure; output: a descriptor,
 * which this takes over in any case, or -1. target, symbolizer, kernel and loop must
 * outlive *out. `changed` and `ctx` are the caller's to set. Errors: those of
 * profile__begin, with a text.
 */
int held__start(struct held **out, struct request *request, int output, struct target *target,
		struct symbolizer *symbolizer, const struct kernel_features *kernel, sd_event *loop,
		struct hs_error *err);

/* Tell whoever started it, and keep the connection if it is bound. */
void held__answer_start(struct held *h, int client);

/* NULL is fine. Detaches, if it is attached; what waits in outputs is given up. */
void held__free(struct held *h);

/*
 * Hand over what the kernel has, a batch of it: true if there may be more. Look after
 * counters. Neither fails: a profile that does has ended then, with the reason "error".
 */
bool held__drain(struct held *h);
void held__tick(struct held *h);

/*
 * The requests. On success held__discard and held__follow take over the connection
 * and answer themselves; the others leave it and the answer to the caller. Errors,
 * with a text: those of docs/protocol.md.
 */
int held__stop(struct held *h, struct hs_error *err);
int held__set_rate(struct held *h, const struct tier_choice *tier, struct hs_error *err);
int held__discard(struct held *h, int connection, struct hs_error *err);
int held__follow(struct held *h, int connection, enum sink_format format, struct hs_error *err);

/* End it for this reason, as when the target has gone. */
void held__end(struct held *h, enum end_reason reason);

/*
 * May a profile start on these domains (NULL: all), h being there? 0, or -EBUSY with
 * a text: each domain samples for one profile at most.
 */
int held__check_conflict(const struct held *h, const struct profile_options *o,
			 struct hs_error *err);

/* A status of docs/protocol.md, new reference or NULL. is_full: with `domains`. */
json_t *held__status(const struct held *h, bool is_full);

/* The target's command line as a JSON string, cut to COMMAND_MAX_BYTES. */
#define COMMAND_MAX_BYTES 256
json_t *held__command(const struct target *t);

/* Its members `lost` and `output_error`. */
json_t *held__lost(const struct held *h);
json_t *held__output_error(const struct held *h);

#endif /* HEAPSONDE_HELD_H */
