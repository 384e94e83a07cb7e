/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of docs/protocol.md, checked.
 *
 * In:   a JSON object, from a client or from the supervisor.
 * Out:  struct request: all members have their type and range, or the request is
 *       refused with a text that names the member.
 *
 * Members that are not described are refused as well: who misspells one would get
 * something else than he wished for.
 */
#ifndef HEAPSONDE_REQUESTS_H
#define HEAPSONDE_REQUESTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/common/error.h"
#include "user/profile/profile.h"
#include "user/sinks/consumer.h"

/* What a profile of the daemon has if the request does not say. */
#define REQUEST_RING_BYTES (2u << 20)
#define REQUEST_MAX_BLOCKS 65536u
#define REQUEST_MAX_STACKS 8192u

/* The most that can be asked for. */
#define REQUEST_RING_BYTES_MAX (1u << 30)
#define REQUEST_TABLE_MAX (1u << 22) /* blocks or stacks */
#define REQUEST_TOP_MAX 1000000
#define REQUEST_DURATION_MAX (366.0 * 24 * 3600) /* s */
#define REQUEST_DOMAINS_MAX 4096

enum request_op {
	REQUEST_START,
	REQUEST_STOP,
	REQUEST_DISCARD,
	REQUEST_RATE,
	REQUEST_STATUS,
	REQUEST_FOLLOW,
};

struct request {
	enum request_op op;
	uint32_t profile; /* 0: none given (start, status) */
	/* start */
	pid_t pid;
	struct profile_options options; /* attach.number: `profile` if given */
	enum sink_format format;
	bool counters_only; /* also in options.attach */
	bool bound;
	double duration_s; /* 0: until something else ends it */
	uint32_t top;
	/* rate */
	struct tier_choice tier;
	/* of the supervisor's only */
	bool is_handed; /* it has uid and gid, and `start` has a profile */
	uid_t uid;
	gid_t gid;
};

/*
 * Check object (borrowed), with or without the supervisor's members. 0, and *out is
 * to be deinited; or -EBADMSG or -ENOMEM with a text, and it is not.
 */
int request__parse(const json_t *object, struct request *out, struct hs_error *err);

/* The same for what a client says: the supervisor's members are unknown ones. */
int request__parse_client(const json_t *object, struct request *out, struct hs_error *err);

void request__deinit(struct request *r);

/* What a start asks the kernel for: blocks followed at once, and bytes, about. */
uint64_t request__blocks(const struct request *r);
uint64_t request__memory(const struct request *r);

/*
 * Take the request of a `start` out of the client's connection, where the
 * supervisor has left it, and the output's descriptor with it: *output, the
 * caller's, or -1. Errors, with a text: -EBADMSG more than one descriptor, or the
 * request is not there; -EBADF it is not open for writing; -ENOMEM.
 */
int request__take_output(int connection, int *output, struct hs_error *err);

#endif /* HEAPSONDE_REQUESTS_H */
