/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request `start` of docs/protocol.md, as `start`, `record`, `top` and `stat` make it.
 *
 * In:   what is wished for.
 * Out:  JSON; what the daemon says by default is left out.
 */
#ifndef HEAPSONDE_START_REQUEST_H
#define HEAPSONDE_START_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "user/profile/profile.h"

struct start_request {
	pid_t pid;
	const struct profile_options *profile; /* NULL: counters only */
	enum sink_format format;
	bool is_bound;
	double duration_s; /* 0: without end */
	int top;
};

/* A new reference; NULL if memory is short. */
json_t *start_request__json(const struct start_request *r);

#endif /* HEAPSONDE_START_REQUEST_H */
