/* SPDX-License-Identifier: BSD-2-Clause */
/* What a worker tells the supervisor; see worker_events.h. */
#include "user/daemon/worker_events.h"

#include <errno.h>

#include "user/daemon/usage.h"
#include "user/sinks/json.h"
#include "user/wire/wire.h"

/* Send object, which this takes over. */
static int send(int channel, json_t *object, const int *fds, size_t n_fds)
{
	int ret = object ? wire__send_packet(channel, object, fds, n_fds) : -ENOMEM;

	json_decref(object);
	return ret;
}

/* A profile's status; of one that has ended all of it, because nobody else knows it
 * soon. What is too long for a packet goes without its lists. */
static json_t *status_packet(const struct held *h, json_t *target, bool is_full)
{
	json_t *status = held__status(h, is_full), *o;

	o = json_pack("{s:s, s:[o]}", "event", "status", "profiles", status);
	if (o && target)
		json_object_set(o, "target", target);
	return o;
}

static void tell(int channel, const struct held *h, json_t *target)
{
	bool is_full = h->state == HELD_FINISHED;

	if (send(channel, status_packet(h, target, is_full), NULL, 0) == -EMSGSIZE && is_full)
		send(channel, status_packet(h, target, false), NULL, 0);
}

void worker_events__profile(int channel, const struct held *h)
{
	tell(channel, h, NULL);
}

void worker_events__started(int channel, const struct held *h)
{
	send(channel,
	     json_pack("{s:s, s:I, s:o}", "event", "started", "profile",
		       (json_int_t)h->request.profile, "status", held__status(h, false)),
	     NULL, 0);
}

void worker_events__refused(int channel, uint32_t profile)
{
	send(channel, json_pack("{s:s, s:I}", "event", "refused", "profile", (json_int_t)profile),
	     NULL, 0);
}

void worker_events__bounce(int channel, json_t *request, int connection)
{
	send(channel, json_pack("{s:s, s:O}", "event", "bounce", "request", request), &connection,
	     1);
}

/* ---- the target, for the metrics ---- */

static void add(struct hs_counts *to, const struct hs_counts *c)
{
	to->minor_words += c->minor_words;
	to->promoted_words += c->promoted_words;
	to->major_words += c->major_words;
	to->minor_collections += c->minor_collections;
	to->major_collections += c->major_collections;
}

static json_t *counts(const char *name, json_int_t n, const struct hs_counts *c)
{
	json_t *o = json_pack("{s:I}", name, n);

	if (o)
		json__add_counts(o, "", c);
	return o;
}

/* All profiles of a process see all its domains: the oldest one knows most. */
static const struct held *oldest(const struct held *profiles)
{
	const struct held *found = NULL;

	for (const struct held *h = profiles; h; h = h->next)
		if (h->state == HELD_RUNNING &&
		    (!found || h->request.profile < found->request.profile))
			found = h;
	return found;
}

static void add_domains(json_t *o, const struct held *h)
{
	struct hs_counts other = { 0 };
	json_t *domains = json_array();
	size_t n_other = 0, n = 0;

	if (h) {
		const struct domain_entry *e;

		n = domain_book__entries(h->profile->book, &e);
		n_other = domain_book__folded(h->profile->book, &other);
		for (size_t i = 0; i < n; i++, e++) {
			if (e->unique_id == DOMAIN_NONE)
				continue;
			if (e->now.flags & HS_DOMAIN_TERMINATED ||
			    json_array_size(domains) == WORKER_DOMAINS_MAX) {
				add(&other, &e->now.now);
				n_other++;
				continue;
			}
			json_array_append_new(domains, counts("domain", e->unique_id, &e->now.now));
		}
	}
	json_object_set_new(o, "domains", domains);
	json_object_set_new(o, "other", counts("count", (json_int_t)n_other, &other));
}

static json_t *target_object(const struct target *t, const struct held *profiles)
{
	json_t *o = json_pack("{s:I, s:o, s:I, s:I}", "pid", (json_int_t)t->pid, "command",
			      held__command(t), "cpu_ns", (json_int_t)usage__cpu_ns(), "rss_bytes",
			      (json_int_t)usage__resident_bytes());

	if (o)
		add_domains(o, oldest(profiles));
	return o;
}

void worker_events__all(int channel, const struct target *t, const struct held *profiles)
{
	json_t *target = t ? target_object(t, profiles) : NULL;

	if (!target)
		return;
	if (!profiles)
		send(channel,
		     json_pack("{s:s, s:O, s:[]}", "event", "status", "target", target, "profiles"),
		     NULL, 0);
	for (const struct held *h = profiles; h; h = h->next)
		tell(channel, h, h == profiles ? target : NULL);
	json_decref(target);
}
