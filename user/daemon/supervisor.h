/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the daemon does with requests and with the events of its workers.
 *
 * In:   requests (connections.h), events (workers.h).
 * Out:  answers, or requests handed over to workers; the table of profiles.
 */
#ifndef HEAPSONDE_SUPERVISOR_H
#define HEAPSONDE_SUPERVISOR_H

#include <jansson.h>

#include "user/daemon/connections.h"
#include "user/daemon/table.h"
#include "user/daemon/workers.h"

struct supervisor {
	struct table *table;
	struct workers *workers;
	struct connections *connections;
	/* Workers of a user, but root, that may be there at once; those whose profiles
	 * have gone may take their time to end. */
	size_t max_workers;
	/* Something has changed in table or workers: for whoever shows it. */
	void (*changed)(void *ctx);
	void *ctx;
};

/* For connections__new and workers__new; ctx is the struct supervisor. */
connection_request_fn supervisor__on_request;
extern const struct workers_ops supervisor_workers_ops;

/*
 * Hand over a row that is starting to the worker of its process, a new one if need
 * be. connection is borrowed. On error, with a text, the row is as it was.
 */
int supervisor__hand_start(struct supervisor *s, struct row *row, int connection,
			   struct hs_error *err);

/* {"targets":[…],"profiles":[…]} for the metrics; new reference, or NULL. */
json_t *supervisor__snapshot(void *ctx);

#endif /* HEAPSONDE_SUPERVISOR_H */
