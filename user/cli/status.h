/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a daemon says about its profiles, read and shown.
 *
 * In:   JSON of the answer to `status` (docs/protocol.md). Members that are missing or
 *       of another type count as 0 and "": the daemon may be another version.
 * Out:  text.
 */
#ifndef HEAPSONDE_STATUS_H
#define HEAPSONDE_STATUS_H

#include <jansson.h>
#include <stddef.h>

#include "user/common/error.h"

/*
 * Ask the daemon that listens on socket (as of client__connect) for profile; 0: for all.
 * *answer is the caller's and has an array `profiles`, of one if it was for one.
 * Errors, with a text: those of client__request; -ENOENT no such profile; -EPROTO.
 */
int status__ask(const char *socket, int profile, json_t **answer, struct hs_error *err);

/* Members of an object. The text is borrowed. */
const char *status__string(const json_t *object, const char *name);
long long status__integer(const json_t *object, const char *name);

/* All that is lost, whatever the cause; LLONG_MAX if it is more. */
long long status__lost(const json_t *profile);

/* The user's name, or number; the rate, or "-" if there is none. */
void status__user(const json_t *profile, char *text, size_t size);
void status__rate(const json_t *object, char *text, size_t size);

/* All about one profile, on stdout. */
void status_detail__print(const json_t *profile);

#endif /* HEAPSONDE_STATUS_H */
