/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between the commands, the daemon and its workers: JSON objects, with
 * descriptors beside them. In words: docs/protocol.md.
 *
 * In:   a connected Unix socket, of type SOCK_STREAM (clients: one object a line) or
 *       SOCK_SEQPACKET (workers: one object a packet).
 * Out:  a checked JSON object and its descriptors, all close-on-exec.
 *
 * What comes from a client is untrusted: sizes and numbers of descriptors are
 * bounded, nesting too, and a descriptor that is not expected is closed.
 */
#ifndef HEAPSONDE_WIRE_H
#define HEAPSONDE_WIRE_H

#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

#include "user/common/error.h"

/* Where the daemon listens. */
#define WIRE_SOCKET_DEFAULT "/run/heapsonde/control.sock"

/* The longest request, newline included; answers may be longer. */
#define WIRE_REQUEST_MAX_BYTES 65536
/* Descriptors with one message. */
#define WIRE_FDS_MAX 2

/* The longest packet, to and from a worker. What may be longer, a worker splits. */
#define WIRE_PACKET_MAX_BYTES 131072
/* Objects and arrays within each other. */
#define WIRE_DEPTH_MAX 16

/* A message that is being received. */
struct wire_message {
	char *bytes;
	size_t n_bytes, room;
	int fds[WIRE_FDS_MAX]; /* -1: not there, or taken */
	size_t n_fds;
};

void wire_message__init(struct wire_message *m);
/* Closes the descriptors that were not taken (set to -1). */
void wire_message__deinit(struct wire_message *m);

/*
 * Take in what a stream socket has now (non-blocking or not). Returns 1 if a whole
 * line is there: *object is the caller's then, m->fds its descriptors, and what
 * comes after the line is still in the socket (after a `follow` the records). 0:
 * more bytes are needed, call again. Errors: -EAGAIN nothing there now; -ECONNRESET
 * the other side has closed before a line was whole; -EMSGSIZE longer than
 * max_bytes; -EBADMSG not a JSON object, or too many descriptors; -ENOMEM.
 */
int wire__receive_line(int fd, struct wire_message *m, size_t max_bytes, json_t **object);

/*
 * The same without taking anything: the line and its descriptors stay in the
 * socket, for another process or for wire__drop. The descriptors are not even
 * opened here: closing one could block (a FUSE or NFS file is flushed then, and its
 * server answers when it likes). The socket must be non-blocking; if it is watched,
 * then edge-triggered, and until -EAGAIN.
 */
int wire__peek_line(int fd, struct wire_message *m, size_t max_bytes, json_t **object);

/* Take what is there and throw it away, descriptors included, without opening them. */
void wire__drop(int fd);

/*
 * As wire__receive_line for a packet socket: 1, or 0 at the end (the other side is
 * gone), or an error as above; -EBADMSG and -EMSGSIZE mean that packet only. m is
 * initialised here; deinit it in any case.
 */
int wire__receive_packet(int fd, struct wire_message *m, json_t **object);

/*
 * Send object (borrowed) as a line or a packet, with n_fds descriptors, which stay
 * the caller's. Never blocks on a non-blocking socket: -EAGAIN, with nothing sent,
 * or -EPIPE if a line could be sent in part only, after which the connection is to
 * be closed. Others: -EMSGSIZE a packet that is too long, -EPIPE and -ECONNRESET
 * nobody reads any more, -ENOMEM. No SIGPIPE.
 */
int wire__send_line(int fd, const json_t *object, const int *fds, size_t n_fds);
int wire__send_packet(int fd, const json_t *object, const int *fds, size_t n_fds);

/* The text of a line, newline included; *n: its length. malloc'ed, NULL if memory is short. */
char *wire__line(const json_t *object, size_t *n);

/*
 * Answers, new references, NULL if memory is short: {"ok":true} and
 * {"ok":false,"code":"ENOENT","error":TEXT}. code: a negative errno; one without a
 * name (the kernel has some) is told as EIO.
 */
json_t *wire__ok(void);
json_t *wire__error(int code, const struct hs_error *err);

/* The errno of an answer's code, negative; 0 if it is no error; -EPROTO if unknown. */
int wire__code(const json_t *answer);

#endif /* HEAPSONDE_WIRE_H */
