/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's clients: one request a connection.
 *
 * In:   a listening socket, and whoever connects.
 * Out:  requests, with the kernel's word for who asks; answers, written as the client
 *       takes them.
 *
 * A connection that has not come to its answer after 10 s is closed. The request
 * stays in the socket (wire__peek_line), for a worker or for connection__answer.
 */
#ifndef HEAPSONDE_CONNECTIONS_H
#define HEAPSONDE_CONNECTIONS_H

#include <jansson.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

/* Unfinished connections: of a user, of all users but root, and in all. */
#define CONNECTIONS_PER_UID 64
#define CONNECTIONS_OF_USERS 960
#define CONNECTIONS_MAX 1024
/* The time that a client has. */
#define CONNECTION_US 10000000ull

struct connections;
struct connection;

/*
 * Called for a request (borrowed). Must end in connection__answer or
 * connection__free, at once or later.
 */
typedef void connection_request_fn(void *ctx, struct connection *c, const json_t *request);

/*
 * Listen on fd (a non-blocking listening socket, the connections' from now on, errors
 * included). event is borrowed and must outlive *out. Errors: -ENOMEM, sd-event's.
 */
int connections__new(struct connections **out, sd_event *event, int fd,
		     connection_request_fn *on_request, void *ctx);

/* Closes everything. NULL is fine. */
void connections__free(struct connections *cs);

/* The peer, and the socket (borrowed). */
uid_t connection__uid(const struct connection *c);
gid_t connection__gid(const struct connection *c);
int connection__fd(const struct connection *c);

/* Take the request out of the socket, with descriptors that nobody asked for. */
void connection__drop_request(struct connection *c);

/* Send answer (taken over, NULL: none) and close. c is not the caller's any more. */
void connection__answer(struct connection *c, json_t *answer);

/* The same on a connection that a worker has given back. fd is taken over. */
void connections__answer_on(struct connections *cs, int fd, json_t *answer);

/* Close our side without a word: it is another's now. */
void connection__free(struct connection *c);

#endif /* HEAPSONDE_CONNECTIONS_H */
