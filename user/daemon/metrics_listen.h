/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the metrics are to be had.
 *
 * In:   ADDR:PORT as the user writes it.
 * Out:  a listening socket.
 */
#ifndef HEAPSONDE_METRICS_LISTEN_H
#define HEAPSONDE_METRICS_LISTEN_H

#include "user/common/error.h"

/*
 * A non-blocking TCP socket that listens on addr_port, as metrics__new describes it;
 * the caller's to close. Or a negative errno, with a text.
 */
int metrics_listen(const char *addr_port, struct hs_error *err);

/* Has addr_port the form of an address and a port? 0 or -EINVAL. */
int metrics_listen__check(const char *addr_port);

/* The port of a socket, or a negative errno. */
int metrics_listen__port(int fd);

#endif /* HEAPSONDE_METRICS_LISTEN_H */
