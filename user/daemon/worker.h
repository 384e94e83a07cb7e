/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker of one process: attaches, collects, decodes, symbolizes, writes.
 *
 * In:   requests, with connections of clients, on the channel to the supervisor.
 * Out:  answers on those connections, records; events on the channel.
 *
 * The channel is a SOCK_SEQPACKET socket, one JSON object a packet of at most
 * WIRE_PACKET_MAX_BYTES (user/wire/wire.h); the supervisor reads it always, so
 * that sending may block. A packet to the worker is a request of docs/protocol.md,
 * checked, with "uid" and "gid" of the peer, for `start` also "profile", the number
 * that it is to have; request__parse (requests.h) reads it. With it comes one
 * descriptor: the client's connection, non-blocking. In the case of `start` the
 * request is still unread in there, because the output may be with it:
 * request__take_output (requests.h).
 *
 * Events, each before the answer to the client that it concerns:
 *
 *   {"event":"started","profile":7,"status":{…}}   status: as below
 *   {"event":"refused","profile":7}                start has failed
 *   {"event":"bounce","request":{…}}               with the connection, its output not
 *                                                  taken: the target has gone, or has
 *                                                  executed another program
 *   {"event":"status","target":{…},"profiles":[…]} about once a second, and after each
 *                                                  change
 *
 * What `profiles` does not mention is as it was, so that many can be told in several
 * packets. Each is a status of docs/protocol.md without `domains`. One that is
 * discarded is told once so, and then no more.
 *
 * A worker does not end by itself: when none of its profiles is alive (sampling or
 * stopped) any more, and none is being started, the supervisor shuts the channel
 * down. The worker does what was asked of it before, reads the end of file, finishes
 * what it has, and returns. So no request is ever lost to a worker that is leaving.
 */
#ifndef HEAPSONDE_WORKER_H
#define HEAPSONDE_WORKER_H

#include <sys/types.h>

#include "user/attach/kernel.h"

/*
 * The child's main function; it exits with what this returns, 0 or 1. channel_fd is
 * blocking. Open are it, stderr, and /dev/null as stdin and stdout. SIGTERM is
 * blocked, to be read with a signalfd or to be left alone (it comes when the
 * supervisor has died, as does the end of the channel); SIGINT, SIGHUP and SIGPIPE
 * are ignored, all others as after exec.
 */
int worker__run(int channel_fd, pid_t pid, const struct kernel_features *kernel);

#endif /* HEAPSONDE_WORKER_H */
