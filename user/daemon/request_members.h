/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The members that requests have, one by one; of requests.c only.
 *
 * In:   the name of a member and the request that it is in; its value.
 * Out:  the value in struct request, if it has the type and the range for it.
 */
#ifndef HEAPSONDE_REQUEST_MEMBERS_H
#define HEAPSONDE_REQUEST_MEMBERS_H

#include "user/daemon/requests.h"

struct request_member {
	const char *name;
	/* Sets of requests, as 1 << enum request_op. */
	unsigned int ops;    /* that may have it */
	unsigned int needed; /* those that must */
	unsigned int handed; /* those where only the supervisor may say it */
	/* Take it into r. 0, -EBADMSG or -ENOMEM. */
	int (*take)(struct request *r, const json_t *value);
	const char *wish; /* what the value must be, for people */
};

/* NULL: no such request has it, or not from a client. */
const struct request_member *request_member__find(const char *name, enum request_op op,
						  bool is_client);

/* A member that such a request must have and object has not; NULL if there is none. */
const char *request_member__missing(const json_t *object, enum request_op op);

#endif /* HEAPSONDE_REQUEST_MEMBERS_H */
