/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles, owners, limits; see table.h.
 *
 * In:   starts, statuses.
 * Out:  rows.
 *
 * There are some thousands of rows at most, so a list in the order of their numbers
 * does, and what a user has is added up when it is asked for.
 */
#include "user/daemon/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct discarded {
	uint32_t id;
	uid_t uid;
};

struct table {
	struct table_limits limits;
	struct row *first, **end;
	uint32_t last_id;
	uint64_t finished_order;
	struct discarded discarded[TABLE_DISCARDED_MAX]; /* a ring */
	size_t n_discarded;                              /* ever */
};

/* What a user has, alive or starting. */
struct use {
	uint64_t n_profiles, n_blocks, memory_bytes;
};

int table__new(struct table **out, const struct table_limits *limits)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->limits = *limits;
	t->end = &t->first;
	*out = t;
	return 0;
}

static void row__free(struct row *row)
{
	json_decref(row->request);
	json_decref(row->status);
	free(row);
}

void table__free(struct table *t)
{
	if (!t)
		return;
	for (struct row *row = t->first, *next; row; row = next) {
		next = row->next;
		row__free(row);
	}
	free(t);
}

/* ---- limits ---- */

static void add_up(const struct table *t, uid_t uid, struct use *use)
{
	memset(use, 0, sizeof(*use));
	for (const struct row *row = t->first; row; row = row->next) {
		if (row->uid != uid || row->state == ROW_FINISHED)
			continue;
		use->n_profiles++;
		use->n_blocks += row->n_blocks;
		use->memory_bytes += row->memory_bytes;
	}
}

#define ULL(n) ((unsigned long long)(n))
/* Kernel memory as a person reads it. */
#define MIB(bytes) ((double)(bytes) / (1 << 20))

static int check_limits(const struct table *t, uid_t uid, uint64_t n_blocks, uint64_t memory_bytes,
			struct hs_error *err)
{
	const struct table_limits *max = &t->limits;
	uint64_t max_profiles = uid ? max->max_profiles : TABLE_ROOT_PROFILES;
	struct use use;

	add_up(t, uid, &use);
	if (use.n_profiles >= max_profiles)
		return hs_error__set(err, -EDQUOT,
				     "user %u has %llu of %llu profiles%s: discard one first", uid,
				     ULL(use.n_profiles), ULL(max_profiles),
				     uid ? " (the daemon's --max-profiles)" : "");
	if (!uid)
		return 0;
	if (use.n_blocks + n_blocks > max->max_blocks)
		return hs_error__set(err, -EDQUOT,
				     "user %u follows %llu of %llu blocks (the daemon's "
				     "--max-blocks) and asks for %llu more: discard a profile, or "
				     "ask for fewer with max_blocks",
				     uid, ULL(use.n_blocks), ULL(max->max_blocks), ULL(n_blocks));
	if (use.memory_bytes + memory_bytes > max->max_memory_bytes)
		return hs_error__set(err, -EDQUOT,
				     "user %u has %.1f of %.1f MiB kernel memory (the daemon's "
				     "--max-memory) and asks for %.1f more: discard a profile, or "
				     "ask for less with ring_bytes, max_blocks and max_stacks",
				     uid, MIB(use.memory_bytes), MIB(max->max_memory_bytes),
				     MIB(memory_bytes));
	return 0;
}

/* ---- rows come and go ---- */

int table__add(struct table *t, uid_t uid, pid_t pid, uint64_t n_blocks, uint64_t memory_bytes,
	       struct row **out, struct hs_error *err)
{
	struct row *row;
	int ret = check_limits(t, uid, n_blocks, memory_bytes, err);

	if (ret)
		return ret;
	if (t->last_id == UINT32_MAX)
		return hs_error__set(err, -EOVERFLOW,
				     "no numbers left for profiles: restart the daemon");
	row = calloc(1, sizeof(*row));
	if (!row)
		return hs_error__set(err, -ENOMEM, "out of memory");
	row->id = ++t->last_id;
	row->uid = uid;
	row->pid = pid;
	row->n_blocks = n_blocks;
	row->memory_bytes = memory_bytes;
	*t->end = row;
	t->end = &row->next;
	*out = row;
	return 0;
}

void table__forget(struct table *t, struct row *row)
{
	struct row **at = &t->first;

	while (*at != row)
		at = &(*at)->next;
	*at = row->next;
	if (t->end == &row->next)
		t->end = at;
	row__free(row);
}

void table__discard(struct table *t, struct row *row)
{
	struct discarded *d = &t->discarded[t->n_discarded++ % TABLE_DISCARDED_MAX];

	d->id = row->id;
	d->uid = row->uid;
	table__forget(t, row);
}

struct row *table__get(const struct table *t, uint64_t id)
{
	for (struct row *row = t->first; row && row->id <= id; row = row->next)
		if (row->id == id)
			return row;
	return NULL;
}

static bool was_discarded(const struct table *t, uint64_t id, uid_t uid)
{
	size_t n = t->n_discarded < TABLE_DISCARDED_MAX ? t->n_discarded : TABLE_DISCARDED_MAX;

	if (!uid)
		return id >= 1 && id <= t->last_id;
	for (size_t i = 0; i < n; i++)
		if (t->discarded[i].id == id && t->discarded[i].uid == uid)
			return true;
	return false;
}

int table__find(const struct table *t, uint64_t id, uid_t uid, struct row **out,
		struct hs_error *err)
{
	struct row *row = table__get(t, id);

	if (row && (!uid || row->uid == uid)) {
		*out = row;
		return 0;
	}
	if (!row && was_discarded(t, id, uid))
		return hs_error__set(err, -EALREADY, "profile %llu has been discarded already",
				     ULL(id));
	return hs_error__set(err, -ENOENT, "no profile %llu", ULL(id));
}

/* ---- what workers say ---- */

/* A copy that says no other owner, number or process than is true, for a worker may
 * have been taken over by its target. */
static json_t *take_status(const struct row *row, const json_t *status)
{
	json_t *copy = json_copy((json_t *)status);

	if (!copy || json_object_set_new(copy, "profile", json_integer(row->id)) ||
	    json_object_set_new(copy, "pid", json_integer(row->pid)) ||
	    json_object_set_new(copy, "uid", json_integer(row->uid))) {
		json_decref(copy);
		return NULL;
	}
	return copy;
}

/* The finished profile of this user that finished first, if there are too many. */
static struct row *superfluous(const struct table *t, uid_t uid)
{
	struct row *oldest = NULL;
	size_t n = 0;

	for (struct row *row = t->first; row; row = row->next) {
		if (row->uid != uid || row->state != ROW_FINISHED)
			continue;
		n++;
		if (!oldest || row->finished_order < oldest->finished_order)
			oldest = row;
	}
	return n > TABLE_FINISHED_MAX ? oldest : NULL;
}

static void finish(struct table *t, struct row *row)
{
	struct row *oldest;

	if (row->state == ROW_FINISHED)
		return;
	row->state = ROW_FINISHED;
	row->finished_order = ++t->finished_order;
	oldest = superfluous(t, row->uid);
	if (oldest)
		table__discard(t, oldest);
}

int table__update(struct table *t, struct row *row, const json_t *status)
{
	const char *state = json_string_value(json_object_get(status, "state"));
	bool is_finished;
	json_t *copy;

	if (!state)
		return -EPROTO;
	if (!strcmp(state, "discarded")) {
		table__discard(t, row);
		return 0;
	}
	is_finished = !strcmp(state, "finished");
	if (!is_finished && strcmp(state, "sampling") && strcmp(state, "stopped"))
		return -EPROTO;
	if (row->state == ROW_FINISHED && !is_finished)
		return -EPROTO;
	copy = take_status(row, status);
	if (copy) {
		json_decref(row->status);
		row->status = copy;
	}
	json_decref(row->request);
	row->request = NULL;
	if (is_finished)
		finish(t, row);
	else
		row->state = ROW_LIVE;
	return 0;
}

void table__fail(struct table *t, struct row *row)
{
	if (row->state == ROW_FINISHED)
		return;
	json_object_set_new(row->status, "state", json_string("finished"));
	json_object_set_new(row->status, "reason", json_string("error"));
	finish(t, row);
}

/* ---- looking ---- */

struct row *table__first(const struct table *t)
{
	return t->first;
}

size_t table__n_alive(const struct table *t)
{
	size_t n = 0;

	for (const struct row *row = t->first; row; row = row->next)
		n += row->state != ROW_FINISHED;
	return n;
}

static int append_brief(json_t *list, json_t *status)
{
	json_t *brief;

	if (!json_object_get(status, "domains"))
		return json_array_append(list, status);
	brief = json_copy(status);
	json_object_del(brief, "domains");
	return json_array_append_new(list, brief);
}

json_t *table__list(const struct table *t, uid_t uid)
{
	json_t *list = json_array();

	for (const struct row *row = t->first; list && row; row = row->next) {
		if (!row->status || (uid && row->uid != uid))
			continue;
		if (append_brief(list, row->status)) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}
