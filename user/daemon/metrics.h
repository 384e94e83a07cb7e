/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics for Prometheus, over HTTP: GET or HEAD /metrics.
 *
 * In:   HTTP clients, who may be anybody that reaches the port; snapshots of the
 *       supervisor.
 * Out:  text (metrics_text.h); a small page at /; errors for everything else.
 *
 * No thread, and nothing that waits: the supervisor watches one descriptor. Clients
 * are bounded in number, in memory and in time, and a snapshot serves all that ask
 * within METRICS_FRESH_MS.
 */
#ifndef HEAPSONDE_METRICS_H
#define HEAPSONDE_METRICS_H

#include <jansson.h>

#include "user/common/error.h"

/* Connections at a time; others wait in the kernel. */
#define METRICS_CONNECTIONS_MAX 32
/* Until one that says nothing, or takes nothing, is closed. */
#define METRICS_TIMEOUT_S 20
/* For what a client sends and for headers of answers, for each connection. */
#define METRICS_CONNECTION_BYTES 8192
#define METRICS_FRESH_MS 200

struct metrics;

/*
 * Listen on addr_port: ADDR:PORT, [ADDR]:PORT for IPv6, *:PORT or :PORT for all
 * addresses; ADDR may be a name. To be called before sandbox__enter.
 *
 * snapshot(ctx) gives a new object, or NULL if memory is short:
 *
 *   {"targets":[{"pid":4711,"command":"…","cpu_ns":…,"rss_bytes":…,   of its worker
 *     "domains":[{"domain":0,"minor_words":…,"promoted_words":…,"major_words":…,
 *       "minor_collections":…,"major_collections":…},…],
 *     "other":{"count":3,"minor_words":…,…}},…],
 *    "profiles":[…],                        as in the answer to `status`
 *    "daemon":{"cpu_ns":…,"rss_bytes":…,"workers":2}}
 *
 * major_words includes the promoted ones. "daemon" may be left out: then it is this
 * process, and a worker for each target.
 *
 * Errors, with a text: -EINVAL what addr_port is not; -EADDRINUSE, -EACCES and others
 * of listening; -ENOMEM.
 */
int metrics__new(struct metrics **out, const char *addr_port, json_t *(*snapshot)(void *ctx),
		 void *ctx, struct hs_error *err);

/* Readable when metrics__run has something to do, timeouts included. */
int metrics__fd(const struct metrics *m);

/* Do what there is to be done. Never waits. */
void metrics__run(struct metrics *m);

/* The port listened on, for tests that ask for port 0. */
int metrics__port(const struct metrics *m);

/* NULL is fine. */
void metrics__free(struct metrics *m);

#endif /* HEAPSONDE_METRICS_H */
