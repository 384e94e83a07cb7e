/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The check of requests; see requests.h.
 *
 * In:   a JSON object.
 * Out:  struct request.
 *
 * Each member has an entry in a table: which requests have it, and what takes it in.
 */
#include "user/daemon/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "user/wire/wire.h"

#define PAGE_BYTES 4096u

/* Kernel memory, about: an entry of each table, and the programs and other maps. */
#define BLOCK_BYTES 24u
#define STACK_BYTES 64u
#define BASE_BYTES (3u << 20)

static int wrong(struct hs_error *err, const char *what)
{
	return hs_error__set(err, -EBADMSG, "bad request: %s", what);
}

static int out_of_memory(struct hs_error *err)
{
	return hs_error__set(err, -ENOMEM, "out of memory");
}

/* ---- members ---- */

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

	if (!text || (strcmp(text, "jsonl") && strcmp(text, "raw")))
		return -EBADMSG;
	r->format = strcmp(text, "raw") ? CONSUMER_JSONL : CONSUMER_RAW;
	return 0;
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

static const struct member {
	const char *name;
	unsigned int ops;    /* that may have it */
	unsigned int needed; /* those that must */
	unsigned int handed; /* those where only the supervisor may say it */
	int (*take)(struct request *r, const json_t *value);
	const char *wish;
} members[] = {
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
	  "a comma-separated list of all, alloc, minor, major, normal, marshal, custom, map_file, size=MIN-MAX" },
	{ "format", OP(START), 0, 0, take_format, "jsonl or raw" },
	{ "ring_bytes", OP(START), 0, 0, take_ring_bytes, "a power of two from 4096 to 2^30" },
	{ "max_blocks", OP(START), 0, 0, take_max_blocks, "an integer from 1 to 4194304" },
	{ "max_stacks", OP(START), 0, 0, take_max_stacks, "an integer from 1 to 4194304" },
	{ "counters_only", OP(START), 0, 0, take_counters_only, "true or false" },
	{ "bound", OP(START), 0, 0, take_bound, "true or false" },
	{ "duration", OP(START), 0, 0, take_duration, "seconds, more than 0, at most a year" },
	{ "top", OP(START), 0, 0, take_top, "an integer from 0 to 1000000" },
};

#define N_MEMBERS (sizeof(members) / sizeof(members[0]))

static const struct member *find_member(const char *name, enum request_op op, bool is_client)
{
	for (size_t i = 0; i < N_MEMBERS; i++) {
		const struct member *m = &members[i];
		unsigned int ops = is_client ? m->ops & ~m->handed : m->ops;

		if (ops & 1u << op && !strcmp(m->name, name))
			return m;
	}
	return NULL;
}

/* ---- the whole ---- */

/* Returns how many of the supervisor's members there are, or an error. */
static int take_members(const json_t *object, struct request *r, bool is_client,
			struct hs_error *err)
{
	int n_handed = 0;
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)object, name, value) {
		const struct member *m = find_member(name, r->op, is_client);
		int ret;

		if (!m)
			return hs_error__set(err, -EBADMSG, "bad request: unknown member %s", name);
		if (m->handed & 1u << r->op)
			n_handed++;
		ret = m->take(r, value);
		if (ret == -ENOMEM)
			return out_of_memory(err);
		if (ret)
			return hs_error__set(err, ret, "bad request: %s must be %s", name, m->wish);
	}
	return n_handed;
}

static int check_needed(const json_t *object, const struct request *r, struct hs_error *err)
{
	for (size_t i = 0; i < N_MEMBERS; i++)
		if (members[i].needed & 1u << r->op && !json_object_get(object, members[i].name))
			return hs_error__set(err, -EBADMSG, "bad request: %s is missing",
					     members[i].name);
	return 0;
}

/* All of the supervisor's members are there, or none. */
static int check_handed(struct request *r, int n_handed, struct hs_error *err)
{
	int n_all = r->op == REQUEST_START ? 3 : 2;

	if (n_handed && n_handed != n_all)
		return wrong(err, "profile, uid and gid come together");
	r->is_handed = n_handed;
	return 0;
}

static int take_op_name(const json_t *object, struct request *r, struct hs_error *err)
{
	static const char *const names[] = {
		[REQUEST_START] = "start",     [REQUEST_STOP] = "stop",
		[REQUEST_DISCARD] = "discard", [REQUEST_RATE] = "rate",
		[REQUEST_STATUS] = "status",   [REQUEST_FOLLOW] = "follow",
	};
	const char *op = json_string_value(json_object_get(object, "op"));

	for (size_t i = 0; op && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(op, names[i]))
			continue;
		r->op = (enum request_op)i;
		return 0;
	}
	return wrong(err, "op must be start, stop, discard, rate, status or follow");
}

static int parse(const json_t *object, struct request *r, bool is_client, struct hs_error *err)
{
	struct attach_options *a = &r->options.attach;
	int n_handed, ret = take_op_name(object, r, err);

	if (ret)
		return ret;
	n_handed = take_members(object, r, is_client, err);
	if (n_handed < 0)
		return n_handed;
	ret = check_needed(object, r, err);
	if (!ret)
		ret = check_handed(r, n_handed, err);
	if (!ret && r->top && !r->bound)
		ret = wrong(err, "top needs bound");
	a->counters_only = r->counters_only;
	a->tier = r->tier;
	if (r->profile)
		a->number = r->profile;
	return ret;
}

static int parse_from(const json_t *object, struct request *out, bool is_client,
		      struct hs_error *err)
{
	int ret;

	memset(out, 0, sizeof(*out));
	profile_options__init(&out->options);
	out->options.attach.ring_bytes = REQUEST_RING_BYTES;
	out->options.attach.max_blocks = REQUEST_MAX_BLOCKS;
	out->options.attach.max_stacks = REQUEST_MAX_STACKS;
	out->tier = out->options.attach.tier;
	ret = parse(object, out, is_client, err);
	if (ret)
		request__deinit(out);
	return ret;
}

int request__parse(const json_t *object, struct request *out, struct hs_error *err)
{
	return parse_from(object, out, false, err);
}

int request__parse_client(const json_t *object, struct request *out, struct hs_error *err)
{
	return parse_from(object, out, true, err);
}

void request__deinit(struct request *r)
{
	profile_options__deinit(&r->options);
}

uint64_t request__blocks(const struct request *r)
{
	/* Without lifetimes no block is followed (user/attach/attach.c). */
	if (r->counters_only || !r->options.attach.lifetimes)
		return 0;
	return r->options.attach.max_blocks;
}

uint64_t request__memory(const struct request *r)
{
	const struct attach_options *a = &r->options.attach;

	if (r->counters_only)
		return BASE_BYTES;
	return BASE_BYTES + (uint64_t)a->ring_bytes + request__blocks(r) * BLOCK_BYTES +
	       (uint64_t)a->max_stacks * STACK_BYTES;
}

/* ---- the output ---- */

static int check_output(int fd, struct hs_error *err)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || flags & O_PATH || (flags & O_ACCMODE) == O_RDONLY)
		return hs_error__set(err, -EBADF, "the output is not open for writing");
	return 0;
}

int request__take_output(int connection, int *output, struct hs_error *err)
{
	struct wire_message m;
	json_t *object = NULL;
	int ret;

	*output = -1;
	wire_message__init(&m);
	do {
		ret = wire__receive_line(connection, &m, WIRE_REQUEST_MAX_BYTES, &object);
	} while (!ret);
	json_decref(object);
	if (ret == -ENOMEM)
		ret = out_of_memory(err);
	else if (ret < 0 || m.n_fds > 1)
		ret = wrong(err, m.n_fds > 1 ? "more than one descriptor" : "it cannot be read");
	else
		ret = m.n_fds ? check_output(m.fds[0], err) : 0;
	if (!ret && m.n_fds) {
		*output = m.fds[0];
		m.fds[0] = -1;
	}
	wire_message__deinit(&m);
	return ret;
}
