/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profiles that the daemon knows: whose they are, where they are, and how many
 * one may have.
 *
 * In:   starts, and what workers say of their profiles.
 * Out:  rows, for requests that name a profile; JSON for `status`.
 */
#ifndef HEAPSONDE_TABLE_H
#define HEAPSONDE_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/common/error.h"

/* Profiles that root may have, alive ones. */
#define TABLE_ROOT_PROFILES 1024
/* Finished profiles that are kept for each user; the one that finished first goes. */
#define TABLE_FINISHED_MAX 64
/* Discarded ones that are remembered. */
#define TABLE_DISCARDED_MAX 1024

/* What each user but root may have at once, over profiles that are alive. */
struct table_limits {
	uint32_t max_profiles;
	uint64_t max_blocks;       /* sum of their max_blocks */
	uint64_t max_memory_bytes; /* sum of their kernel memory */
};

enum row_state {
	ROW_STARTING, /* its worker has not said yet */
	ROW_LIVE,     /* sampling or stopped */
	ROW_FINISHED, /* there is only its status */
};

struct worker;

struct row {
	struct row *next; /* by number */
	uint32_t id;
	enum row_state state;
	uid_t uid;
	pid_t pid;             /* of the target */
	struct worker *worker; /* NULL: gone. The caller's */
	uint64_t n_blocks, memory_bytes;
	uint64_t finished_order;
	json_t *request; /* while starting: as handed over; owned, may be NULL */
	bool has_bounced;
	json_t *status; /* the last; NULL while starting */
};

struct table;

/* Errors: -ENOMEM. */
int table__new(struct table **out, const struct table_limits *limits);
/* NULL is fine. */
void table__free(struct table *t);

/*
 * Give a number to a profile of this user on process pid, ROW_STARTING, with room
 * reserved. The row is the table's. Errors, with a text: -EDQUOT, -ENOMEM,
 * -EOVERFLOW (no numbers left).
 */
int table__add(struct table *t, uid_t uid, pid_t pid, uint64_t n_blocks, uint64_t memory_bytes,
	       struct row **out, struct hs_error *err);

/* By number; NULL if it is not there. */
struct row *table__get(const struct table *t, uint64_t id);

/*
 * The row that this user means. Errors, with a text: -EALREADY it has been
 * discarded; -ENOENT there never was one, or it is not this user's to see, in the
 * same words.
 */
int table__find(const struct table *t, uint64_t id, uid_t uid, struct row **out,
		struct hs_error *err);

/*
 * Take in what its worker says of a row (status: borrowed). The row may be gone
 * after that: when it is discarded, or finished with too many others. -EPROTO: it
 * is not a status; nothing has changed then.
 */
int table__update(struct table *t, struct row *row, const json_t *status);

/* It ended without a word of its worker: finished with the reason "error". The row may be gone. */
void table__fail(struct table *t, struct row *row);

/* Take a row away and remember it as discarded. */
void table__discard(struct table *t, struct row *row);

/* Take a row away that never was a profile. */
void table__forget(struct table *t, struct row *row);

/* The first row by number; then row->next. */
struct row *table__first(const struct table *t);

/* How many profiles are alive or starting, of all users. */
size_t table__n_alive(const struct table *t);

/* What this user may see: an array of statuses by number, without `domains`. New
 * reference, NULL if memory is short. */
json_t *table__list(const struct table *t, uid_t uid);

#endif /* HEAPSONDE_TABLE_H */
