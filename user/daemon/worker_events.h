/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a worker tells the supervisor; the packets are described in worker.h.
 *
 * In:   held profiles, the target.
 * Out:  packets on the channel. A supervisor that does not take them has died, which
 *       the channel's end tells: errors are not reported here.
 */
#ifndef HEAPSONDE_WORKER_EVENTS_H
#define HEAPSONDE_WORKER_EVENTS_H

#include "user/daemon/held.h"

/* How often everything is told, in ns. */
#define WORKER_STATUS_NS 1000000000ull

/* Domains of the target that are told one by one; the rest as a sum. */
#define WORKER_DOMAINS_MAX 32

void worker_events__started(int channel, const struct held *h);
void worker_events__refused(int channel, uint32_t profile);
void worker_events__bounce(int channel, json_t *request, int connection);

/* One profile, because something about it has changed. */
void worker_events__profile(int channel, const struct held *h);

/* The target (may be NULL) and all its profiles. */
void worker_events__all(int channel, const struct target *t, const struct held *profiles);

#endif /* HEAPSONDE_WORKER_EVENTS_H */
