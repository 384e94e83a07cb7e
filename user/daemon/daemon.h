/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon: any number of profiles on any number of processes, for any user who
 * may profile them. docs/protocol.md is how it is talked to.
 *
 * In:   clients on a Unix socket.
 * Out:  worker processes (worker.h), one for each target, which do all the work.
 *
 * The process that runs this, the supervisor, has no threads, never waits for anybody
 * but in its event loop, and never looks into a target or opens a client's file.
 */
#ifndef HEAPSONDE_DAEMON_H
#define HEAPSONDE_DAEMON_H

#include <stdint.h>

#include "user/attach/kernel.h"
#include "user/common/error.h"

/* Limits for each user but root, by default. */
#define DAEMON_MAX_PROFILES 16
#define DAEMON_MAX_BLOCKS 4194304
#define DAEMON_MAX_MEMORY_BYTES (512ull << 20)

struct daemon_options {
	const char *socket_path;
	const char *metrics; /* ADDR:PORT, or NULL: no metrics */
	uint32_t max_profiles;
	uint64_t max_blocks;
	uint64_t max_memory_bytes;
};

/*
 * Listen, and serve until SIGTERM or SIGINT; then give the workers 5 s to finish.
 * kernel: probed before, and what is required is there. 0, or a negative errno with
 * a text: -EADDRINUSE another daemon listens there; others of the system.
 */
int daemon__run(const struct daemon_options *options, const struct kernel_features *kernel,
		struct hs_error *err);

#endif /* HEAPSONDE_DAEMON_H */
