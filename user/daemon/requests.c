/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The check of requests; see requests.h.
 *
 * In:   a JSON object.
 * Out:  struct request.
 */
#include "user/daemon/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "user/daemon/request_members.h"
#include "user/wire/wire.h"

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

/* ---- the whole ---- */

/* Returns how many of the supervisor's members there are, or an error. */
static int take_members(const json_t *object, struct request *r, bool is_client,
			struct hs_error *err)
{
	int n_handed = 0;
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)object, name, value) {
		const struct request_member *m = request_member__find(name, r->op, is_client);
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
	const char *name = request_member__missing(object, r->op);

	return name ? hs_error__set(err, -EBADMSG, "bad request: %s is missing", name) : 0;
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
