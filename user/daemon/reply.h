/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker's answers to clients.
 *
 * In:   an answer, the client's connection.
 * Out:  the answer on the connection, which is closed then.
 *
 * Most fit into the socket's buffer and are gone at once. What does not fit, as the
 * status of a profile with a thousand domains, waits in a queue (user/sinks/outbox.h)
 * for the client to read, for 5 s.
 */
#ifndef HEAPSONDE_REPLY_H
#define HEAPSONDE_REPLY_H

#include <jansson.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "user/common/error.h"

/*
 * Send object and close. Takes over both: object may be NULL (memory is short), and
 * then the client only sees the end.
 */
void reply__send(sd_event *loop, int connection, json_t *object);

/* The same for {"ok":true,"profile":N} and for an error. */
void reply__ok(sd_event *loop, int connection, uint32_t profile);
void reply__error(sd_event *loop, int connection, int code, const struct hs_error *err);

/* {"ok":true,"profile":N}; new reference, NULL if memory is short. */
json_t *reply__make_ok(uint32_t profile);

/* How many answers are still waiting. */
size_t reply__n_waiting(void);

#endif /* HEAPSONDE_REPLY_H */
