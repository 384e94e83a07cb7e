/* SPDX-License-Identifier: BSD-2-Clause */
/* See start_request.h. */
#include "user/client/start_request.h"

static int set_integer(json_t *o, const char *name, uint64_t n)
{
	return n ? json_object_set_new(o, name, json_integer((json_int_t)n)) : 0;
}

static int add_domains(json_t *o, const struct attach_options *a)
{
	json_t *domains;

	if (!a->n_domains)
		return 0;
	domains = json_array();
	for (size_t i = 0; i < a->n_domains; i++)
		if (json_array_append_new(domains, json_integer(a->domains[i]))) {
			json_decref(domains);
			return -1;
		}
	return json_object_set_new(o, "domains", domains);
}

static int add_profile(json_t *o, const struct profile_options *p)
{
	const struct attach_options *a = &p->attach;
	json_t *rest = json_pack("{s:f, s:I, s:s}", "rate", a->tier.rate, "stack_depth",
				 (json_int_t)a->stack_depth, "track", p->track);
	int ret = rest ? json_object_update(o, rest) : -1;

	json_decref(rest);
	if (!ret)
		ret = add_domains(o, a);
	if (!ret)
		ret = set_integer(o, "ring_bytes", a->ring_bytes);
	if (!ret)
		ret = set_integer(o, "max_blocks", a->max_blocks);
	if (!ret)
		ret = set_integer(o, "max_stacks", a->max_stacks);
	return ret;
}

json_t *start_request__json(const struct start_request *r)
{
	json_t *o = json_pack("{s:s, s:I}", "op", "start", "pid", (json_int_t)r->pid);
	int ret = o ? 0 : -1;

	if (!ret && r->profile)
		ret = add_profile(o, r->profile);
	else if (!ret)
		ret = json_object_set_new(o, "counters_only", json_true());
	if (!ret && r->format != SINK_JSONL)
		ret = json_object_set_new(o, "format", json_string(sink_format__name(r->format)));
	if (!ret && r->is_bound)
		ret = json_object_set_new(o, "bound", json_true());
	if (!ret && r->duration_s > 0)
		ret = json_object_set_new(o, "duration", json_real(r->duration_s));
	if (!ret)
		ret = set_integer(o, "top", (uint64_t)r->top);
	if (ret) {
		json_decref(o);
		return NULL;
	}
	return o;
}
