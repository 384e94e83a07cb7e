/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The members of requests; see request_members.h.
 *
 * Each has an entry in a table: which requests have it, and what takes it in.
 */
#include "user/daemon/request_members.h"

#include <errno.h>
#include <string.h>

#define PAGE_BYTES 4096u

/* An integer between min and max, or -EBADMSG. */
static int get_integer(const json_t *value, json_int_t min, json_int_t max, json_int_t *out)
{
	if (!json_is_integer(value) || json_integer_value(value) < min ||
	    json_integer_value(value) > max)
		return -EBADMSG;
	*out = json_integer_value(value);
	return 0;
}

static int get_u32(const json_t *value, uint32_t min, uint32_t max, uint32_t *out)
{
	json_int_t n;

	if (get_integer(value, min, max, &n))
		return -EBADMSG;
	*out = (uint32_t)n;
	return 0;
}

static int get_bool(const json_t *value, bool *out)
{
	if (!json_is_boolean(value))
		return -EBADMSG;
	*out = json_is_true(value);
	return 0;
}

/* op itself has been read before. */
static int take_op(struct request *r, const json_t *value)
{
	(void)r;
	(void)value;
	return 0;
}

static int take_profile(struct request *r, const json_t *value)
{
	return get_u32(value, 1, UINT32_MAX, &r->profile);
}

static int take_uid(struct request *r, const json_t *value)
{
	return get_u32(value, 0, UINT32_MAX, &r->uid);
}

static int take_gid(struct request *r, const json_t *value)
{
	return get_u32(value, 0, UINT32_MAX, &r->gid);
}

static int take_pid(struct request *r, const json_t *value)
{
	json_int_t n;

	if (get_integer(value, 1, INT32_MAX, &n))
		return -EBADMSG;
	r->pid = (pid_t)n;
	return 0;
}

static int take_domains(struct request *r, const json_t *value)
{
	size_t n = json_array_size(value), i;
	const json_t *item;

	if (!json_is_array(value) || !n || n > REQUEST_DOMAINS_MAX)
		return -EBADMSG;
	json_array_foreach(value, i, item)
	{
		uint32_t id;

		if (get_u32(item, 0, UINT32_MAX - 1, &id))
			return -EBADMSG;
		if (profile_options__add_domain(&r->options, id))
			return -ENOMEM;
	}
	return 0;
}

static int take_rate(struct request *r, const json_t *value)
{
	if (!json_is_number(value))
		return -EBADMSG;
	return tier_choice__make(json_number_value(value), &r->tier) ? -EBADMSG : 0;
}

static int take_stack_depth(struct request *r, const json_t *value)
{
	return get_u32(value, 0, SONDE_STACK_MAX, &r->options.attach.stack_depth);
}

static int take_track(struct request *r, const json_t *value)
{
	const char *text = json_string_value(value);

	return text && !profile_options__set_track(&r->options, text) ? 0 : -EBADMSG;
}

static int take_format(struct request *r, const json_t *value)
{
	const char *text = json_string_value(value);

	return text && !sink_format__parse(text, &r->format) ? 0 : -EBADMSG;
}

static int take_ring_bytes(struct request *r, const json_t *value)
{
	uint32_t n;

	if (get_u32(value, PAGE_BYTES, REQUEST_RING_BYTES_MAX, &n) || (n & (n - 1)))
		return -EBADMSG;
	r->options.attach.ring_bytes = n;
	return 0;
}

static int take_max_blocks(struct request *r, const json_t *value)
{
	return get_u32(value, 1, REQUEST_TABLE_MAX, &r->options.attach.max_blocks);
}

static int take_max_stacks(struct request *r, const json_t *value)
{
	return get_u32(value, 1, REQUEST_TABLE_MAX, &r->options.attach.max_stacks);
}

static int take_counters_only(struct request *r, const json_t *value)
{
	return get_bool(value, &r->counters_only);
}

static int take_bound(struct request *r, const json_t *value)
{
	return get_bool(value, &r->bound);
}

static int take_duration(struct request *r, const json_t *value)
{
	r->duration_s = json_number_value(value);
	return r->duration_s > 0 && r->duration_s <= REQUEST_DURATION_MAX ? 0 : -EBADMSG;
}

static int take_top(struct request *r, const json_t *value)
{
	return get_u32(value, 0, REQUEST_TOP_MAX, &r->top);
}

#define OP(op) (1u << REQUEST_##op)
#define OPS_ALL (OP(START) | OP(STOP) | OP(DISCARD) | OP(RATE) | OP(STATUS) | OP(FOLLOW))
#define OPS_PROFILE (OP(STOP) | OP(DISCARD) | OP(RATE) | OP(FOLLOW))

static const struct request_member members[] = {
	{ "op", OPS_ALL, OPS_ALL, 0, take_op, "" },
	{ "profile", OPS_ALL, OPS_PROFILE, OP(START), take_profile, "an integer from 1 on" },
	{ "uid", OPS_ALL, 0, OPS_ALL, take_uid, "a user id" },
	{ "gid", OPS_ALL, 0, OPS_ALL, take_gid, "a group id" },
	{ "pid", OP(START), OP(START), 0, take_pid, "a process id" },
	{ "domains", OP(START), 0, 0, take_domains, "an array of 1 to 4096 domain ids" },
	{ "rate", OP(START) | OP(RATE), OP(RATE), 0, take_rate,
	  "a number in (0, 1], and at least 2^-56" },
	{ "stack_depth", OP(START), 0, 0, take_stack_depth, "an integer from 0 to 1024" },
	{ "track", OP(START), 0, 0, take_track,
	  "a comma-separated list of all, alloc, minor, major, normal, marshal, custom, map_file, "
	  "size=MIN-MAX" },
	{ "format", OP(START) | OP(FOLLOW), 0, 0, take_format, "jsonl, raw or hsd" },
	{ "ring_bytes", OP(START), 0, 0, take_ring_bytes, "a power of two from 4096 to 2^30" },
	{ "max_blocks", OP(START), 0, 0, take_max_blocks, "an integer from 1 to 4194304" },
	{ "max_stacks", OP(START), 0, 0, take_max_stacks, "an integer from 1 to 4194304" },
	{ "counters_only", OP(START), 0, 0, take_counters_only, "true or false" },
	{ "bound", OP(START), 0, 0, take_bound, "true or false" },
	{ "duration", OP(START), 0, 0, take_duration, "seconds, more than 0, at most a year" },
	{ "top", OP(START), 0, 0, take_top, "an integer from 0 to 1000000" },
};

#define N_MEMBERS (sizeof(members) / sizeof(members[0]))

const struct request_member *request_member__find(const char *name, enum request_op op,
						  bool is_client)
{
	for (size_t i = 0; i < N_MEMBERS; i++) {
		const struct request_member *m = &members[i];
		unsigned int ops = is_client ? m->ops & ~m->handed : m->ops;

		if (ops & 1u << op && !strcmp(m->name, name))
			return m;
	}
	return NULL;
}

const char *request_member__missing(const json_t *object, enum request_op op)
{
	for (size_t i = 0; i < N_MEMBERS; i++)
		if (members[i].needed & 1u << op && !json_object_get(object, members[i].name))
			return members[i].name;
	return NULL;
}
