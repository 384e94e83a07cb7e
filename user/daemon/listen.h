/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket that the daemon listens on.
 *
 * In:   a path, or what systemd hands over.
 * Out:  a listening socket.
 */
#ifndef HEAPSONDE_LISTEN_H
#define HEAPSONDE_LISTEN_H

#include "user/common/error.h"

struct listener {
	int fd;         /* -1: taken, or not there */
	int lock_fd;    /* PATH.lock, locked as long as the daemon lives; -1 with systemd's */
	char path[108]; /* empty with systemd's */
};

/*
 * Listen at path, mode 0666, in a folder that is made if it is missing; or, with
 * socket activation, on systemd's socket. l->fd is non-blocking, and the caller's to
 * take (set it to -1). Errors, with a text: -EADDRINUSE another daemon listens;
 * -EEXIST something else is at path; -ENAMETOOLONG; others of the system.
 */
int listener__open(struct listener *l, const char *path, struct hs_error *err);

/*
 * Closes what was not taken. The socket's file stays: nothing can be removed from
 * within the sandbox. Who connects to it is refused, and the next daemon replaces it.
 */
void listener__close(struct listener *l);

#endif /* HEAPSONDE_LISTEN_H */
