/* SPDX-License-Identifier: BSD-2-Clause */
/* See metrics_view.h. */
#include "user/daemon/metrics_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/daemon/metrics_read.h"

/* ---- counts and texts ---- */

static void add_counts(struct metrics_counts *to, const struct metrics_counts *c)
{
	for (int i = 0; i < METRICS_COUNTS; i++)
		to->n[i] = metrics_add(to->n[i], c->n[i]);
}

static struct metrics_counts read_counts(const json_t *o)
{
	struct metrics_counts c = { {
		[COUNT_MINOR_WORDS] = metrics_number(o, "minor_words"),
		[COUNT_PROMOTED_WORDS] = metrics_number(o, "promoted_words"),
		[COUNT_MAJOR_WORDS] = metrics_growth(metrics_number(o, "major_words"),
						     metrics_number(o, "promoted_words")),
		[COUNT_MINOR_COLLECTIONS] = metrics_number(o, "minor_collections"),
		[COUNT_MAJOR_COLLECTIONS] = metrics_number(o, "major_collections"),
	} };

	return c;
}

/* Copy as much as fits of a UTF-8 text, whole characters, none that control anything. */
static void copy_text(char *to, size_t size, const char *from)
{
	size_t len = from ? strlen(from) : 0;

	if (len > size - 1) {
		len = size - 1;
		while (len && ((unsigned char)from[len] & 0xc0) == 0x80)
			len--;
	}
	for (size_t i = 0; i < len; i++)
		to[i] = (unsigned char)from[i] < ' ' || from[i] == 0x7f ? '?' : from[i];
	to[len] = 0;
}

/* ---- the domains of a target ---- */

static const struct metrics_domain *find_domain(const struct metrics_domain *domains, size_t n,
						uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (domains[i].id == id)
			return &domains[i];
	return NULL;
}

/* What a reading of a target's domains is made of. */
struct reading {
	struct metrics_counts total;
	struct metrics_counts shown; /* the growth of domains that have a place */
	size_t n;
	struct metrics_domain domains[METRICS_DOMAINS_MAX];
	uint64_t n_other;
};

static void read_domain(const struct metrics_target *t, struct reading *r, const json_t *o)
{
	struct metrics_domain d = { .id = metrics_number(o, "domain"), .now = read_counts(o) };
	const struct metrics_domain *before = find_domain(t->domains, t->n_domains, d.id);

	if (find_domain(r->domains, r->n, d.id))
		return;
	add_counts(&r->total, &d.now);
	if (r->n == METRICS_DOMAINS_MAX) {
		r->n_other++;
		return;
	}
	for (int i = 0; i < METRICS_COUNTS; i++)
		r->shown.n[i] = metrics_add(
			r->shown.n[i], metrics_growth(d.now.n[i], before ? before->now.n[i] : 0));
	r->domains[r->n++] = d;
}

static void read_domains(const struct metrics_target *t, struct reading *r, const json_t *o)
{
	const json_t *domain, *other = json_object_get(o, "other");
	struct metrics_counts c = read_counts(other);
	size_t i;

	json_array_foreach(json_object_get(o, "domains"), i, domain) read_domain(t, r, domain);
	add_counts(&r->total, &c);
	r->n_other = metrics_add(r->n_other, metrics_number(other, "count"));
}

/* What its other domains have grown by: all that the target has, but for what is
 * shown. A domain that ended is one of them now, and was shown before. */
static void update_other(struct metrics_target *t, const struct reading *r)
{
	for (int i = 0; i < METRICS_COUNTS; i++) {
		uint64_t grown = metrics_growth(r->total.n[i], t->is_known ? t->total.n[i] : 0);

		t->other.n[i] = metrics_add(t->other.n[i], metrics_growth(grown, r->shown.n[i]));
	}
}

/* ---- targets ---- */

static struct metrics_target *find_target(const struct metrics_view *v, int64_t pid)
{
	struct metrics_target *t;

	HASH_FIND(hh, v->targets, &pid, sizeof(pid), t);
	return t;
}

static int64_t pid_of(const json_t *o)
{
	return (int64_t)metrics_number(o, "pid");
}

/* Note which targets there are. */
static int find_targets(struct metrics_view *v, const json_t *array)
{
	struct metrics_target *t, *next;
	const json_t *o;
	size_t i;

	HASH_ITER (hh, v->targets, t, next)
		t->is_there = t->has_been_read = false;
	json_array_foreach(array, i, o)
	{
		t = find_target(v, pid_of(o));
		if (!t && HASH_COUNT(v->targets) < METRICS_MEMBERS_MAX) {
			t = calloc(1, sizeof(*t));
			if (!t)
				return -ENOMEM;
			t->pid = pid_of(o);
			HASH_ADD(hh, v->targets, pid, sizeof(t->pid), t);
			if (!t->hh.tbl) {
				free(t);
				return -ENOMEM;
			}
		}
		if (t)
			t->is_there = true;
	}
	return 0;
}

/* Let those go that have gone; give their places to others. */
static void place_targets(struct metrics_view *v)
{
	struct metrics_target *t, *next;
	size_t n_placed = 0;

	HASH_ITER (hh, v->targets, t, next) {
		if (!t->is_there) {
			HASH_DEL(v->targets, t);
			free(t);
		} else if (t->has_place) {
			n_placed++;
		}
	}
	HASH_ITER (hh, v->targets, t, next) {
		if (t->has_place || n_placed == METRICS_TARGETS_MAX)
			continue;
		t->has_place = true;
		t->is_known = false; /* what is shown begins with all it has */
		n_placed++;
	}
	v->n_targets = HASH_COUNT(v->targets);
	v->n_other_targets = v->n_targets - n_placed;
}

static void read_target(struct metrics_view *v, struct metrics_target *t, const json_t *o)
{
	struct reading r = { 0 };

	read_domains(t, &r, o);
	if (!r.n && !r.n_other) { /* it does not know any more, or not yet */
		t->n_domains = 0;
		return;
	}
	if (t->has_place) {
		update_other(t, &r);
		copy_text(t->command, sizeof(t->command),
			  json_string_value(json_object_get(o, "command")));
		t->n_domains = r.n;
		memcpy(t->domains, r.domains, r.n * sizeof(r.domains[0]));
		t->n_other = r.n_other;
	} else if (t->is_known) {
		/* Not when it is new: it may have allocated for days. */
		for (int i = 0; i < METRICS_COUNTS; i++)
			v->other_targets.n[i] = metrics_add(
				v->other_targets.n[i], metrics_growth(r.total.n[i], t->total.n[i]));
	}
	t->total = r.total;
	t->is_known = true;
}

static void read_targets(struct metrics_view *v, const json_t *array)
{
	struct metrics_target *t, *next;
	const json_t *o;
	size_t i;

	v->workers_rss_bytes = 0;
	json_array_foreach(array, i, o)
	{
		t = find_target(v, pid_of(o));
		if (!t)
			continue;
		if (!t->has_been_read) {
			read_target(v, t, o);
			t->cpu_ns = 0;
		}
		/* There may be a second worker, of the program that it ran before. */
		t->has_been_read = true;
		t->cpu_ns = metrics_add(t->cpu_ns, metrics_number(o, "cpu_ns"));
		v->workers_rss_bytes =
			metrics_add(v->workers_rss_bytes, metrics_number(o, "rss_bytes"));
	}
	HASH_ITER (hh, v->targets, t, next) {
		v->workers_cpu_ns =
			metrics_add(v->workers_cpu_ns, metrics_growth(t->cpu_ns, t->last_cpu_ns));
		t->last_cpu_ns = t->cpu_ns;
	}
}

/* ---- all of it ---- */

void metrics_view__deinit(struct metrics_view *v)
{
	struct metrics_profile *p, *next_profile;
	struct metrics_target *t, *next;

	HASH_ITER (hh, v->targets, t, next) {
		HASH_DEL(v->targets, t);
		free(t);
	}
	HASH_ITER (hh, v->profiles, p, next_profile) {
		HASH_DEL(v->profiles, p);
		free(p);
	}
	memset(v, 0, sizeof(*v));
}

static void read_daemon(struct metrics_view *v, const json_t *o)
{
	v->cpu_ns = metrics_number(o, "cpu_ns");
	v->rss_bytes = metrics_number(o, "rss_bytes");
	v->n_workers = metrics_number(o, "workers");
}

int metrics_view__update(struct metrics_view *v, const json_t *snapshot)
{
	const json_t *targets = json_object_get(snapshot, "targets");
	int err = find_targets(v, targets);

	place_targets(v);
	read_targets(v, targets);
	if (!err)
		err = metrics_profiles__update(v, json_object_get(snapshot, "profiles"));
	read_daemon(v, json_object_get(snapshot, "daemon"));
	return err;
}
