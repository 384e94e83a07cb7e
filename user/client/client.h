/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command's side of a connection to the daemon.
 *
 * In:   a socket's path, a request (docs/protocol.md), perhaps a descriptor.
 * Out:  the daemon's answer, or its error as a negative errno and one line of text;
 *       after the answer to `follow` the stream of records.
 *
 * A line is taken from the socket byte-exactly: what the daemon sent after it, in the
 * same breath perhaps, is still there to be read, as the next line or from `fd`.
 */
#ifndef HEAPSONDE_CLIENT_H
#define HEAPSONDE_CLIENT_H

#include <jansson.h>
#include <stdbool.h>

#include "user/common/error.h"
#include "user/wire/wire.h"

/* The longest line that a client takes from a daemon. */
#define CLIENT_ANSWER_MAX_BYTES (64u << 20)

struct client {
	int fd; /* blocking, close-on-exec; -1: not connected */
	const char *path;
	struct wire_message message; /* a line that is not yet whole */
};

/*
 * Where the daemon is looked for: the option --socket (NULL: not given), or
 * $HEAPSONDE_SOCKET, or WIRE_SOCKET_DEFAULT.
 */
const char *client__path(const char *option);

/* Does a daemon listen there? option as above. */
bool client__is_there(const char *option);

/*
 * Connect. *c is to be closed with client__close in any case. option as above, and
 * must outlive *c. Errors: -ENOENT, -ECONNREFUSED no daemon; -ENAMETOOLONG; those of
 * socket(2) and connect(2).
 */
int client__connect(struct client *c, const char *option, struct hs_error *err);

/*
 * Send a request (borrowed), with a descriptor unless passed_fd is -1; the descriptor
 * stays the caller's. Errors: -ENOMEM, -EMSGSIZE the request is too long, -EXDEV it has a
 * PID, and the daemon is in another PID namespace; those of sendmsg(2). A daemon that would not
 * read it all has perhaps said why: client__receive works after -EPIPE and -ECONNRESET.
 */
int client__send(struct client *c, const json_t *request, int passed_fd, struct hs_error *err);

/*
 * Take in what is there of a line, waiting only if nothing is. 0: not yet whole. 1:
 * *answer is the caller's, {"ok":true,…}, its texts without control characters. Errors, with a
 * text: those of an
 * {"ok":false} answer, with the daemon's words; -ECONNRESET the daemon has gone;
 * -EPROTO what came is no answer; -EMSGSIZE longer than CLIENT_ANSWER_MAX_BYTES;
 * -ENOMEM.
 */
int client__receive(struct client *c, json_t **answer, struct hs_error *err);

/* Send a request and wait for the answer. 0 or an error of either. */
int client__ask(struct client *c, const json_t *request, int passed_fd, json_t **answer,
		struct hs_error *err);

/* Connect, ask, close: for requests that have one answer. Errors as of these. */
int client__request(const char *option, const json_t *request, json_t **answer,
		    struct hs_error *err);

/* No more to say: for a bound profile, stop and discard it. */
void client__shutdown(struct client *c);

/* Harmless if it is not connected. */
void client__close(struct client *c);

#endif /* HEAPSONDE_CLIENT_H */
