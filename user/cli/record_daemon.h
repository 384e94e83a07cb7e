/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `heapsonde record` through the daemon.
 *
 * In:   struct record_options; a daemon that listens.
 * Out:  the records, which the daemon writes itself to the output, and on stderr the
 *       same notes as without a daemon.
 */
#ifndef HEAPSONDE_RECORD_DAEMON_H
#define HEAPSONDE_RECORD_DAEMON_H

#include <stdbool.h>

#include "user/cli/record.h"
#include "user/wire/wire.h"

/* The help of --socket, for record and stat. */
#define RECORD_DAEMON_SOCKET_HELP                                                                  \
	"Through the daemon that listens there, also as root (for others the default is "          \
	"$HEAPSONDE_SOCKET, or " WIRE_SOCKET_DEFAULT ")"

/*
 * Is it the daemon's to do? Yes if --socket (NULL: not given) says so, or if we are not
 * root and a daemon listens where it does by default. Without a daemon somebody who is
 * not root but has the capabilities does it himself, or is told which ones are missing.
 */
bool record_daemon__is_wanted(const char *socket);

/*
 * Record, from connecting to the end of the command if there is one. Returns the exit
 * status; errors have been printed. A file that -o names is as it was before if the
 * daemon refuses (output_file.h).
 */
int record_daemon__run(const struct record_options *o);

#endif /* HEAPSONDE_RECORD_DAEMON_H */
