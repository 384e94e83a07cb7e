/* SPDX-License-Identifier: BSD-2-Clause */
/* Events in the order of their times; see ctf_order.h. */
#include "user/export/ctf_order.h"

#include <errno.h>
#include <stdlib.h>

/* A binary heap: the earliest event is the first one. */
struct ctf_order {
	uint64_t n_put;
	size_t n;
	struct ctf_timed events[CTF_ORDER_EVENTS];
};

int ctf_order__new(struct ctf_order **out)
{
	struct ctf_order *o = malloc(sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->n_put = 0;
	o->n = 0;
	*out = o;
	return 0;
}

void ctf_order__free(struct ctf_order *o)
{
	free(o);
}

bool ctf_order__is_full(const struct ctf_order *o)
{
	return o->n == CTF_ORDER_EVENTS;
}

bool ctf_order__is_empty(const struct ctf_order *o)
{
	return !o->n;
}

static bool is_before(const struct ctf_timed *a, const struct ctf_timed *b)
{
	return a->time_us < b->time_us || (a->time_us == b->time_us && a->number < b->number);
}

void ctf_order__put(struct ctf_order *o, const struct ctf_timed *event)
{
	struct ctf_timed e = *event;
	size_t i = o->n++;

	e.number = o->n_put++;
	for (; i && is_before(&e, &o->events[(i - 1) / 2]); i = (i - 1) / 2)
		o->events[i] = o->events[(i - 1) / 2];
	o->events[i] = e;
}

void ctf_order__take(struct ctf_order *o, struct ctf_timed *event)
{
	const struct ctf_timed *last = &o->events[--o->n];
	size_t i = 0, child;

	*event = o->events[0];
	for (; (child = 2 * i + 1) < o->n; i = child) {
		if (child + 1 < o->n && is_before(&o->events[child + 1], &o->events[child]))
			child++;
		if (!is_before(&o->events[child], last))
			break;
		o->events[i] = o->events[child];
	}
	o->events[i] = *last;
}
