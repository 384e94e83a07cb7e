/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of clients; see supervisor.h.
 *
 * In:   requests with the peer's ids.
 * Out:  each is answered here (status, errors, profiles that have finished) or goes
 *       with its connection to the worker that has the profile.
 */
#include "user/daemon/supervisor.h"

#include <errno.h>
#include <string.h>

#include "user/daemon/log.h"
#include "user/daemon/requests.h"
#include "user/wire/wire.h"

static void answer_error(struct connection *c, int code, const struct hs_error *err)
{
	connection__answer(c, wire__error(code, err));
}

/* The request as a worker gets it: with the peer's ids. New reference or NULL. */
static json_t *with_peer(const json_t *request, const struct connection *c)
{
	json_t *o = json_copy((json_t *)request);

	if (o && !json_object_set_new(o, "uid", json_integer(connection__uid(c))) &&
	    !json_object_set_new(o, "gid", json_integer(connection__gid(c))))
		return o;
	json_decref(o);
	return NULL;
}

/* What sending to a worker has come to. */
static int send_failed(int code, pid_t target, struct hs_error *err)
{
	if (code == -EAGAIN)
		return hs_error__set(err, code, "the worker of PID %d does not respond", target);
	return hs_error__set(err, code, "cannot reach the worker of PID %d: %s", target,
			     strerror(-code));
}

/* ---- start ---- */

int supervisor__hand_start(struct supervisor *s, struct row *row, int connection,
			   struct hs_error *err)
{
	struct worker *w = workers__find(s->workers, row->pid);
	int ret = w ? worker__send(w, row->request, connection) : -EPIPE;

	/* There is none, or it has just died: another. */
	if (ret == -EPIPE) {
		ret = workers__begin(s->workers, row->pid, row->uid, &w, err);
		if (ret)
			return ret;
		ret = worker__send(w, row->request, connection);
		if (ret)
			worker__close(w);
	}
	if (ret)
		return send_failed(ret, row->pid, err);
	row->worker = w;
	return 0;
}

/* A worker that hangs in a file system counts until it has ended. */
static int check_workers(const struct supervisor *s, uid_t uid, struct hs_error *err)
{
	size_t n = workers__count_of(s->workers, uid);

	if (!uid || n < s->max_workers)
		return 0;
	return hs_error__set(err, -EDQUOT,
			     "%zu workers of user %u have not ended yet: wait, or see what keeps "
			     "their outputs",
			     n, uid);
}

static int hand_row(struct supervisor *s, struct row *row, const struct connection *c,
		    const json_t *request, struct hs_error *err)
{
	row->request = with_peer(request, c);
	if (!row->request || json_object_set_new(row->request, "profile", json_integer(row->id)))
		return hs_error__set(err, -ENOMEM, "out of memory");
	return supervisor__hand_start(s, row, connection__fd(c), err);
}

static void start(struct supervisor *s, struct connection *c, const json_t *request,
		  const struct request *r)
{
	uid_t uid = connection__uid(c);
	struct row *row = NULL;
	struct hs_error err;
	int ret = check_workers(s, uid, &err);

	if (!ret)
		ret = table__add(s->table, uid, r->pid, request__blocks(r), request__memory(r),
				 &row, &err);
	if (!ret)
		ret = hand_row(s, row, c, request, &err);
	if (!ret) {
		connection__free(c);
		return;
	}
	if (row)
		table__forget(s->table, row);
	if (ret == -EDQUOT || row)
		log__line(LOG_PRIORITY_WARNING, "no profile on PID %d for user %u: %s", r->pid, uid,
			  err.text);
	answer_error(c, ret, &err);
}

/* ---- requests about a profile ---- */

/* {"ok":true,"profile":7,"output_error":…}; the row goes. */
static json_t *discard_kept(struct supervisor *s, struct row *row)
{
	json_t *answer = wire__ok(), *error = json_object_get(row->status, "output_error");

	if (answer) {
		json_object_set_new(answer, "profile", json_integer(row->id));
		json_object_set_new(answer, "output_error",
				    error ? json_incref(error) : json_null());
	}
	log__line(LOG_PRIORITY_INFO, "profile %u has been discarded", row->id);
	table__discard(s->table, row);
	s->changed(s->ctx);
	return answer;
}

/* A profile that has finished: there is only its status. */
static void answer_kept(struct supervisor *s, struct connection *c, const struct request *r,
			struct row *row)
{
	const char *reason = json_string_value(json_object_get(row->status, "reason"));
	struct hs_error err;
	json_t *answer;

	switch (r->op) {
	case REQUEST_STATUS:
		answer = json_pack("{s:b, s:[O]}", "ok", 1, "profiles", row->status);
		break;
	case REQUEST_DISCARD:
		answer = discard_kept(s, row);
		break;
	default:
		hs_error__set(&err, -EALREADY, "profile %u has finished already (%s)", row->id,
			      reason ? reason : "error");
		answer = wire__error(-EALREADY, &err);
	}
	connection__answer(c, answer);
}

/* Let the worker do it. 0: it has the connection. -EPIPE: it has died, its profiles
 * have finished. */
static int hand_over(struct connection *c, const json_t *request, const struct row *row,
		     struct hs_error *err)
{
	json_t *packet = with_peer(request, c);
	pid_t target = row->pid;
	int ret;

	if (!packet)
		return hs_error__set(err, -ENOMEM, "out of memory");
	connection__drop_request(c);
	ret = worker__send(row->worker, packet, connection__fd(c));
	json_decref(packet);
	return ret ? send_failed(ret, target, err) : 0;
}

static void serve(struct supervisor *s, struct connection *c, const json_t *request,
		  const struct request *r)
{
	uid_t uid = connection__uid(c);
	struct hs_error err;
	struct row *row;
	int ret = table__find(s->table, r->profile, uid, &row, &err);

	if (!ret && row->state != ROW_FINISHED) {
		ret = hand_over(c, request, row, &err);
		if (!ret) {
			connection__free(c);
			return;
		}
		if (ret == -EPIPE)
			ret = table__find(s->table, r->profile, uid, &row, &err);
	}
	if (ret)
		answer_error(c, ret, &err);
	else
		answer_kept(s, c, r, row);
}

static void list(struct supervisor *s, struct connection *c)
{
	json_t *profiles = table__list(s->table, connection__uid(c));

	connection__answer(c, json_pack("{s:b, s:o}", "ok", 1, "profiles", profiles));
}

/* ---- all of them ---- */

void supervisor__on_request(void *ctx, struct connection *c, const json_t *request)
{
	struct supervisor *s = ctx;
	struct hs_error err;
	struct request r;
	int ret = request__parse_client(request, &r, &err);

	if (ret) {
		answer_error(c, ret, &err);
		return;
	}
	log__line(LOG_PRIORITY_DEBUG, "user %u asks: %s", connection__uid(c),
		  json_string_value(json_object_get(request, "op")));
	/* A client may come with what a worker has just told it. */
	workers__drain(s->workers);
	if (r.op == REQUEST_START)
		start(s, c, request, &r);
	else if (r.op == REQUEST_STATUS && !r.profile)
		list(s, c);
	else
		serve(s, c, request, &r);
	request__deinit(&r);
}

json_t *supervisor__snapshot(void *ctx)
{
	struct supervisor *s = ctx;
	json_t *targets = json_array(), *profiles = table__list(s->table, 0);

	for (struct worker *w = workers__first(s->workers); w; w = w->next)
		if (w->info)
			json_array_append(targets, w->info);
	return json_pack("{s:o, s:o}", "targets", targets, "profiles", profiles);
}
