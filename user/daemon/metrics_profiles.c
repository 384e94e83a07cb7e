/* SPDX-License-Identifier: BSD-2-Clause */
/* The profiles in metrics_view.h. */
#include "user/daemon/metrics_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/daemon/metrics_read.h"
#include "user/sinks/json.h"

static struct metrics_profile *find(const struct metrics_view *v, uint64_t id)
{
	struct metrics_profile *p;

	HASH_FIND(hh, v->profiles, &id, sizeof(id), p);
	return p;
}

/* Note which profiles there are. */
static int find_profiles(struct metrics_view *v, const json_t *array)
{
	struct metrics_profile *p, *next;
	const json_t *o;
	size_t i;

	HASH_ITER (hh, v->profiles, p, next)
		p->is_there = p->has_been_read = false;
	json_array_foreach(array, i, o)
	{
		uint64_t id = metrics_number(o, "profile");

		p = find(v, id);
		if (!p && HASH_COUNT(v->profiles) < METRICS_MEMBERS_MAX) {
			p = calloc(1, sizeof(*p));
			if (!p)
				return -ENOMEM;
			p->id = id;
			HASH_ADD(hh, v->profiles, id, sizeof(p->id), p);
			if (!p->hh.tbl) {
				free(p);
				return -ENOMEM;
			}
		}
		if (p)
			p->is_there = true;
	}
	return 0;
}

/* Let those go that have gone; give their places to others. */
static void place_profiles(struct metrics_view *v)
{
	struct metrics_profile *p, *next;
	size_t n_placed = 0;

	HASH_ITER (hh, v->profiles, p, next) {
		if (!p->is_there) {
			HASH_DEL(v->profiles, p);
			free(p);
		} else if (p->has_place) {
			n_placed++;
		}
	}
	HASH_ITER (hh, v->profiles, p, next) {
		if (p->has_place || n_placed == METRICS_PROFILES_MAX)
			continue;
		p->has_place = true;
		n_placed++;
	}
	v->n_profiles = HASH_COUNT(v->profiles);
	v->n_other_profiles = v->n_profiles - n_placed;
}

static enum metrics_state read_state(const json_t *o)
{
	const char *name = json_string_value(json_object_get(o, "state"));

	if (name && !strcmp(name, "sampling"))
		return METRICS_SAMPLING;
	return name && !strcmp(name, "stopped") ? METRICS_STOPPED : METRICS_FINISHED;
}

static bool is_cause(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz_");

	return len > 0 && !name[len] && len < sizeof(((struct metrics_loss *)0)->cause);
}

static struct metrics_loss *loss_of(struct metrics_profile *p, const char *cause)
{
	for (size_t i = 0; i < p->n_losses; i++)
		if (!strcmp(p->losses[i].cause, cause))
			return &p->losses[i];
	if (p->n_losses == METRICS_CAUSES_MAX)
		return NULL;
	strcpy(p->losses[p->n_losses].cause, cause);
	return &p->losses[p->n_losses++];
}

/* A cause that is there once stays there. One with a strange name is "other". */
static void read_losses(struct metrics_profile *p, const json_t *o)
{
	uint64_t other = 0;
	const char *cause;
	json_t *n;

	p->lost = 0;
	json_object_foreach ((json_t *)o, cause, n) {
		uint64_t lost = json_integer_value(n) > 0 ? (uint64_t)json_integer_value(n) : 0;
		struct metrics_loss *l =
			is_cause(cause) && strcmp(cause, "other") ? loss_of(p, cause) : NULL;

		if (!json__loss_is_part(cause))
			p->lost = metrics_add(p->lost, lost);
		if (l)
			l->n = lost;
		else
			other = metrics_add(other, lost);
	}
	p->other_lost = other;
}

static void read_profile(struct metrics_profile *p, const json_t *o)
{
	const json_t *bytes = json_object_get(o, "output_bytes");

	p->pid = (int64_t)metrics_number(o, "pid");
	p->uid = (int64_t)metrics_number(o, "uid");
	p->state = read_state(o);
	p->rate = metrics_real(o, "rate");
	p->live_words = metrics_real(o, "live_words");
	p->records = metrics_number(o, "records");
	p->samples = metrics_number(o, "samples");
	p->followers = metrics_number(o, "followers");
	p->has_output = json_is_integer(bytes);
	p->output_bytes = metrics_number(o, "output_bytes");
	p->has_failed = json_is_string(json_object_get(o, "output_error"));
	read_losses(p, json_object_get(o, "lost"));
}

/* One without a place: counters by what they have grown by, gauges as they are. */
static void add_other(struct metrics_profile *sum, const struct metrics_profile *before,
		      const struct metrics_profile *now)
{
	sum->records = metrics_add(sum->records, metrics_growth(now->records, before->records));
	sum->samples = metrics_add(sum->samples, metrics_growth(now->samples, before->samples));
	sum->lost = metrics_add(sum->lost, metrics_growth(now->lost, before->lost));
	sum->output_bytes = metrics_add(sum->output_bytes,
					metrics_growth(now->output_bytes, before->output_bytes));
	sum->live_words += now->live_words;
	sum->followers = metrics_add(sum->followers, now->followers);
}

int metrics_profiles__update(struct metrics_view *v, const json_t *array)
{
	int err = find_profiles(v, array);
	const json_t *o;
	size_t i;

	place_profiles(v);
	memset(v->in_state, 0, sizeof(v->in_state));
	v->other_profiles.live_words = 0;
	v->other_profiles.followers = 0;
	json_array_foreach(array, i, o)
	{
		struct metrics_profile *p = find(v, metrics_number(o, "profile")), before;

		if (!p || p->has_been_read)
			continue;
		before = *p;
		read_profile(p, o);
		p->has_been_read = true;
		v->in_state[p->state]++;
		if (!p->has_place)
			add_other(&v->other_profiles, &before, p);
	}
	return err;
}
