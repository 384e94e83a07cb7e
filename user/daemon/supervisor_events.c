/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of workers (worker.h); see supervisor.h.
 *
 * In:   packets, and the ends of workers.
 * Out:  the table of profiles.
 *
 * A worker may have been taken over by its target. So it speaks for its own profiles
 * only, and a request that it gives back is the one that it was given.
 */
#include "user/daemon/supervisor.h"

#include <errno.h>
#include <string.h>

#include "user/daemon/log.h"
#include "user/wire/wire.h"

/* The row of this worker that object names. */
static struct row *named_row(const struct supervisor *s, const struct worker *w,
			     const json_t *object)
{
	json_int_t id = json_integer_value(json_object_get(object, "profile"));
	struct row *row = id > 0 ? table__get(s->table, (uint64_t)id) : NULL;

	return row && row->worker == w ? row : NULL;
}

/* A worker with nothing that is alive may go. */
static void let_go_if_idle(const struct supervisor *s, struct worker *w)
{
	for (const struct row *row = table__first(s->table); row; row = row->next)
		if (row->worker == w && row->state != ROW_FINISHED)
			return;
	worker__close(w);
}

/* ---- one profile ---- */

static void log_change(const struct row *row, const json_t *status)
{
	const char *state = json_string_value(json_object_get(status, "state"));
	const char *reason = json_string_value(json_object_get(status, "reason"));

	if (!state)
		return;
	if (row->state == ROW_STARTING && strcmp(state, "discarded"))
		log__line(LOG_PRIORITY_INFO, "profile %u on PID %d for user %u: started", row->id,
			  row->pid, row->uid);
	if (row->state == ROW_LIVE && !strcmp(state, "finished"))
		log__line(LOG_PRIORITY_INFO, "profile %u on PID %d has finished: %s", row->id,
			  row->pid, reason ? reason : "error");
	if (!strcmp(state, "discarded"))
		log__line(LOG_PRIORITY_INFO, "profile %u has been discarded", row->id);
}

static void update(struct supervisor *s, struct worker *w, struct row *row, const json_t *status)
{
	uint32_t id = row->id;

	log_change(row, status);
	if (table__update(s->table, row, status))
		log__line(LOG_PRIORITY_WARNING,
			  "worker of PID %d: no status that profile %u may have", w->target, id);
}

static void on_started(struct supervisor *s, struct worker *w, const json_t *event)
{
	struct row *row = named_row(s, w, event);

	if (row && row->state == ROW_STARTING)
		update(s, w, row, json_object_get(event, "status"));
}

static void on_refused(struct supervisor *s, struct worker *w, const json_t *event)
{
	struct row *row = named_row(s, w, event);

	if (!row || row->state != ROW_STARTING)
		return;
	log__line(LOG_PRIORITY_INFO, "profile %u on PID %d for user %u: refused", row->id, row->pid,
		  row->uid);
	table__forget(s->table, row);
}

/* Its target has gone or runs another program: a new worker may have more luck. */
static void on_bounce(struct supervisor *s, struct worker *w, const json_t *event,
		      struct wire_message *m)
{
	struct row *row = named_row(s, w, json_object_get(event, "request"));
	struct hs_error err;
	int connection, ret;

	if (!row || row->state != ROW_STARTING)
		return;
	w->is_closed = true;
	row->worker = NULL;
	if (m->n_fds < 1) {
		table__forget(s->table, row);
		return;
	}
	connection = m->fds[0];
	if (row->has_bounced)
		ret = hs_error__set(&err, -ESRCH, "PID %d has gone", row->pid);
	else
		ret = supervisor__hand_start(s, row, connection, &err);
	row->has_bounced = true;
	if (!ret)
		return;
	table__forget(s->table, row);
	m->fds[0] = -1;
	connections__answer_on(s->connections, connection, wire__error(ret, &err));
}

/* ---- all profiles of a process ---- */

static void set_info(struct worker *w, const json_t *target)
{
	json_t *info;

	if (!json_is_object(target))
		return;
	info = json_copy((json_t *)target);
	if (!info)
		return;
	json_object_set_new(info, "pid", json_integer(w->target));
	json_decref(w->info);
	w->info = info;
}

static void on_status(struct supervisor *s, struct worker *w, const json_t *event)
{
	const json_t *status;
	size_t i;

	set_info(w, json_object_get(event, "target"));
	json_array_foreach(json_object_get(event, "profiles"), i, status)
	{
		struct row *row = named_row(s, w, status);

		if (row)
			update(s, w, row, status);
	}
}

/* ---- for workers.h ---- */

static void on_event(void *ctx, struct worker *w, const json_t *event, struct wire_message *m)
{
	const char *name = json_string_value(json_object_get(event, "event"));
	struct supervisor *s = ctx;

	if (name && !strcmp(name, "started"))
		on_started(s, w, event);
	else if (name && !strcmp(name, "refused"))
		on_refused(s, w, event);
	else if (name && !strcmp(name, "bounce"))
		on_bounce(s, w, event, m);
	else if (name && !strcmp(name, "status"))
		on_status(s, w, event);
	else
		log__line(LOG_PRIORITY_WARNING, "worker of PID %d: an unknown event", w->target);
	let_go_if_idle(s, w);
	s->changed(s->ctx);
}

/* A row of this worker that nobody will tell about any more. */
static struct row *orphan(const struct supervisor *s, const struct worker *w)
{
	struct row *row = table__first(s->table);

	while (row && row->worker != w)
		row = row->next;
	return row;
}

/* Rows may go while this goes on, so it begins anew each time. */
static void on_end(void *ctx, struct worker *w)
{
	struct supervisor *s = ctx;
	struct row *row;

	while ((row = orphan(s, w))) {
		row->worker = NULL;
		if (row->state == ROW_FINISHED)
			continue;
		log__line(LOG_PRIORITY_ERR, "profile %u on PID %d has lost its worker", row->id,
			  row->pid);
		if (row->state == ROW_STARTING)
			table__forget(s->table, row);
		else
			table__fail(s->table, row);
	}
	s->changed(s->ctx);
}

static void on_gone(void *ctx, struct worker *w)
{
	struct supervisor *s = ctx;

	(void)w;
	s->changed(s->ctx);
}

const struct workers_ops supervisor_workers_ops = {
	.event = on_event,
	.end = on_end,
	.gone = on_gone,
};
