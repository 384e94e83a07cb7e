/* SPDX-License-Identifier: BSD-2-Clause */
/* What an output lacks because its queue was full; see consumer_losses.h. */
#include "user/sinks/consumer_losses.h"

#include <errno.h>

#include "user/sinks/json.h"

void consumer_losses__count(struct consumer_losses *l, const struct hs_event *event)
{
	l->records++;
	if (!event)
		return;
	switch (event->type) {
	case HS_REC_ALLOC:
		l->samples += event->alloc->n_samples;
		break;
	case HS_REC_PROMOTE:
	case HS_REC_DEALLOC:
	case HS_REC_UNKNOWN:
		l->lives++;
		break;
	default:
		break;
	}
}

json_t *consumer_losses__record(const struct consumer_losses *l, uint64_t begin_ns, uint64_t end_ns)
{
	json_t *o = json__loss(UINT32_MAX, "output_full", l->records, begin_ns, end_ns);

	if (o && !json_object_set_new(o, "samples", json_integer((json_int_t)l->samples)) &&
	    !json_object_set_new(o, "lives", json_integer((json_int_t)l->lives)))
		return o;
	json_decref(o);
	return NULL;
}

int consumer_losses__to_json(const struct consumer_losses *l, json_t *lost)
{
	const struct {
		const char *name;
		uint64_t n;
	} parts[] = {
		{ "output_full", l->records },
		{ "output_full_samples", l->samples },
		{ "output_full_lives", l->lives },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].n &&
		    json_object_set_new(lost, parts[i].name, json_integer((json_int_t)parts[i].n)))
			return -ENOMEM;
	return 0;
}

json_t *consumer_losses__in_summary(const struct consumer_losses *l, json_t *summary)
{
	json_t *own, *lost;

	if (!l->records)
		return json_incref(summary);
	own = json_copy(summary);
	lost = json_object_get(summary, "lost");
	lost = json_is_object(lost) ? json_copy(lost) : json_object();
	if (!own || !lost || consumer_losses__to_json(l, lost)) {
		json_decref(lost);
		json_decref(own);
		return NULL;
	}
	json_object_set_new(own, "lost", lost);
	return own;
}
