/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests: defaults and all members, each out of range and of another type; members
 * of the supervisor's that a client may not say; and the output that waits in the
 * connection.
 */
#include "tests/unit/records_make.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "user/daemon/requests.h"
#include "user/wire/wire.h"

static int parse(const char *text, struct request *r, struct hs_error *err, bool is_client)
{
	json_t *o = json_loads(text, 0, NULL);
	int ret;

	assert_non_null(o);
	ret = (is_client ? request__parse_client : request__parse)(o, r, err);
	json_decref(o);
	return ret;
}

static void take(const char *text, struct request *r)
{
	struct hs_error err = { "" };

	if (parse(text, r, &err, true))
		fail_msg("%s: %s", text, err.text);
	assert_false(r->is_handed);
}

/* Refused, and the text has this word. */
static void refuse(const char *text, const char *word)
{
	struct hs_error err = { "" };
	struct request r;

	if (parse(text, &r, &err, true) != -EBADMSG)
		fail_msg("taken: %s", text);
	if (!strstr(err.text, word))
		fail_msg("%s: %s", text, err.text);
}

static void has_defaults(void **state)
{
	const struct attach_options *a;
	struct request r;

	(void)state;
	take("{\"op\":\"start\",\"pid\":4711}", &r);
	a = &r.options.attach;
	assert_int_equal(r.op, REQUEST_START);
	assert_int_equal(r.pid, 4711);
	assert_int_equal(r.profile, 0);
	assert_true(a->tier.rate == 0x1p-20);
	assert_int_equal(a->tier.tier, 20);
	assert_int_equal(a->stack_depth, 64);
	assert_int_equal(a->ring_bytes, 2 << 20);
	assert_int_equal(a->max_blocks, 65536);
	assert_int_equal(a->max_stacks, 8192);
	assert_true(a->lifetimes);
	assert_false(a->counters_only);
	assert_null(a->domains);
	assert_string_equal(r.options.track, "all");
	assert_int_equal(r.format, SINK_JSONL);
	assert_false(r.bound);
	assert_int_equal(r.top, 0);
	request__deinit(&r);
}

static void takes_all_members(void **state)
{
	const struct attach_options *a;
	struct request r;

	(void)state;
	take("{\"op\":\"start\",\"pid\":1,\"domains\":[0,7,4294967294],\"rate\":1,"
	     "\"stack_depth\":1024,\"track\":\"major,alloc\",\"format\":\"raw\","
	     "\"ring_bytes\":4096,\"max_blocks\":1,\"max_stacks\":4194304,"
	     "\"counters_only\":true,\"bound\":true,\"top\":20}",
	     &r);
	a = &r.options.attach;
	assert_int_equal(a->n_domains, 3);
	assert_int_equal(a->domains[0], 0);
	assert_int_equal(a->domains[1], 7);
	assert_int_equal(a->domains[2], 4294967294u);
	assert_int_equal(a->tier.tier, 0);
	assert_true(r.tier.rate == 1);
	assert_int_equal(a->stack_depth, 1024);
	assert_false(a->lifetimes);
	assert_int_equal(a->heaps, 1 << HS_HEAP_MAJOR);
	assert_int_equal(r.format, SINK_RAW);
	assert_int_equal(a->ring_bytes, 4096);
	assert_int_equal(a->max_blocks, 1);
	assert_int_equal(a->max_stacks, 4194304);
	assert_true(a->counters_only && r.counters_only && r.bound);
	assert_int_equal(r.top, 20);
	request__deinit(&r);

	take("{\"op\":\"rate\",\"profile\":4294967295,\"rate\":0.25}", &r);
	assert_int_equal(r.op, REQUEST_RATE);
	assert_int_equal(r.profile, 4294967295u);
	assert_int_equal(r.tier.tier, 2);
	request__deinit(&r);

	take("{\"op\":\"start\",\"pid\":1,\"format\":\"hsd\"}", &r);
	assert_int_equal(r.format, SINK_HSD);
	request__deinit(&r);
	take("{\"op\":\"follow\",\"profile\":1}", &r);
	assert_int_equal(r.format, SINK_JSONL);
	request__deinit(&r);
	take("{\"op\":\"follow\",\"profile\":1,\"format\":\"hsd\"}", &r);
	assert_int_equal(r.format, SINK_HSD);
	request__deinit(&r);
}

static void knows_operations(void **state)
{
	struct request r;

	(void)state;
	take("{\"op\":\"status\"}", &r);
	assert_int_equal(r.profile, 0);
	request__deinit(&r);
	take("{\"op\":\"status\",\"profile\":7}", &r);
	assert_int_equal(r.profile, 7);
	request__deinit(&r);
	take("{\"op\":\"stop\",\"profile\":7}", &r);
	assert_int_equal(r.op, REQUEST_STOP);
	request__deinit(&r);
	take("{\"op\":\"discard\",\"profile\":7}", &r);
	assert_int_equal(r.op, REQUEST_DISCARD);
	request__deinit(&r);
	take("{\"op\":\"follow\",\"profile\":7}", &r);
	assert_int_equal(r.op, REQUEST_FOLLOW);
	request__deinit(&r);
	refuse("{}", "op must be");
	refuse("{\"op\":1}", "op must be");
	refuse("{\"op\":\"fly\"}", "op must be");
	refuse("{\"op\":\"start\"}", "pid is missing");
	refuse("{\"op\":\"stop\"}", "profile is missing");
	refuse("{\"op\":\"discard\"}", "profile is missing");
	refuse("{\"op\":\"follow\"}", "profile is missing");
	refuse("{\"op\":\"rate\",\"profile\":1}", "rate is missing");
}

static void refuses_unknown_members(void **state)
{
	(void)state;
	refuse("{\"op\":\"start\",\"pid\":1,\"Rate\":1}", "unknown member Rate");
	refuse("{\"op\":\"stop\",\"profile\":1,\"rate\":1}", "unknown member rate");
	refuse("{\"op\":\"status\",\"pid\":1}", "unknown member pid");
	refuse("{\"op\":\"rate\",\"profile\":1,\"rate\":1,\"top\":1}", "unknown member top");
	/* The supervisor's. */
	refuse("{\"op\":\"start\",\"pid\":1,\"profile\":7}", "unknown member profile");
	refuse("{\"op\":\"start\",\"pid\":1,\"uid\":0}", "unknown member uid");
	refuse("{\"op\":\"start\",\"pid\":1,\"profile\":7,\"uid\":0,\"gid\":0}", "unknown member");
	refuse("{\"op\":\"stop\",\"profile\":1,\"gid\":0}", "unknown member gid");
}

static void refuses_wrong_values(void **state)
{
	static const struct {
		const char *name, *values[10];
	} wrong[] = {
		{ "pid", { "0", "-1", "2147483648", "1.0", "\"1\"", "null" } },
		{ "domains", { "[]", "1", "[-1]", "[4294967295]", "[1.5]", "[\"1\"]", "[[1]]" } },
		{ "rate", { "0", "-0.5", "1.0000001", "1e-20", "\"1\"", "null", "2" } },
		{ "stack_depth", { "-1", "1025", "1.0", "true" } },
		{ "track", { "\"\"", "\"all,\"", "\"everything\"", "1", "[]" } },
		{ "format", { "\"\"", "\"json\"", "1" } },
		{ "ring_bytes", { "0", "2048", "4097", "12288", "2147483648", "4294971392" } },
		{ "max_blocks", { "0", "4194305", "-1", "4294967297" } },
		{ "max_stacks", { "0", "4194305", "-1", "4294967297" } },
		{ "counters_only", { "0", "\"true\"", "null" } },
		{ "bound", { "1", "[]" } },
		{ "top", { "-1", "1000001", "true" } },
	};
	char text[256], word[64];

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++)
		for (const char *const *value = wrong[i].values; *value; value++) {
			bool is_pid = !strcmp(wrong[i].name, "pid");

			snprintf(text, sizeof(text), "{\"op\":\"start\",%s\"%s\":%s}",
				 is_pid ? "" : "\"pid\":1,", wrong[i].name, *value);
			snprintf(word, sizeof(word), "%s must be", wrong[i].name);
			refuse(text, word);
		}
	refuse("{\"op\":\"start\",\"pid\":1,\"top\":5}", "top needs bound");
	refuse("{\"op\":\"stop\",\"profile\":0}", "profile must be");
	refuse("{\"op\":\"stop\",\"profile\":4294967296}", "profile must be");
	refuse("{\"op\":\"stop\",\"profile\":7.0}", "profile must be");
}

static void bounds_domains(void **state)
{
	json_t *o = json_pack("{s:s, s:i, s:[]}", "op", "start", "pid", 1, "domains");
	struct hs_error err;
	struct request r;

	(void)state;
	for (int i = 0; i < REQUEST_DOMAINS_MAX; i++)
		json_array_append_new(json_object_get(o, "domains"), json_integer(i));
	assert_int_equal(request__parse_client(o, &r, &err), 0);
	assert_int_equal(r.options.attach.n_domains, REQUEST_DOMAINS_MAX);
	request__deinit(&r);
	json_array_append_new(json_object_get(o, "domains"), json_integer(5));
	assert_int_equal(request__parse_client(o, &r, &err), -EBADMSG);
	json_decref(o);
}

static void reads_what_the_supervisor_says(void **state)
{
	struct hs_error err;
	struct request r;

	(void)state;
	assert_int_equal(parse("{\"op\":\"start\",\"pid\":1,\"profile\":7,\"uid\":4294967295,"
			       "\"gid\":100}",
			       &r, &err, false),
			 0);
	assert_true(r.is_handed);
	assert_int_equal(r.profile, 7);
	assert_int_equal(r.options.attach.number, 7);
	assert_int_equal(r.uid, 4294967295u);
	assert_int_equal(r.gid, 100);
	request__deinit(&r);
	assert_int_equal(
		parse("{\"op\":\"stop\",\"profile\":7,\"uid\":1,\"gid\":2}", &r, &err, false), 0);
	assert_true(r.is_handed);
	request__deinit(&r);
	/* All or none. */
	assert_int_equal(parse("{\"op\":\"stop\",\"profile\":7,\"uid\":1}", &r, &err, false),
			 -EBADMSG);
	assert_int_equal(parse("{\"op\":\"start\",\"pid\":1,\"profile\":7}", &r, &err, false),
			 -EBADMSG);
	assert_int_equal(parse("{\"op\":\"start\",\"pid\":1,\"uid\":7,\"gid\":1}", &r, &err, false),
			 -EBADMSG);
}

static void adds_up_memory(void **state)
{
	struct request r;

	(void)state;
	take("{\"op\":\"start\",\"pid\":1,\"ring_bytes\":8192,\"max_blocks\":100,"
	     "\"max_stacks\":10}",
	     &r);
	assert_int_equal(request__blocks(&r), 100);
	assert_int_equal(request__memory(&r), (3 << 20) + 8192 + 2400 + 640);
	request__deinit(&r);
	take("{\"op\":\"start\",\"pid\":1,\"track\":\"alloc\",\"ring_bytes\":8192}", &r);
	assert_int_equal(request__blocks(&r), 0);
	request__deinit(&r);
	take("{\"op\":\"start\",\"pid\":1,\"counters_only\":true}", &r);
	assert_int_equal(request__blocks(&r), 0);
	assert_int_equal(request__memory(&r), 3 << 20);
	request__deinit(&r);
	take("{\"op\":\"start\",\"pid\":1,\"ring_bytes\":1073741824,\"max_blocks\":4194304,"
	     "\"max_stacks\":4194304}",
	     &r);
	assert_true(request__memory(&r) == (1ull << 30) + (88ull << 22) + (3 << 20));
	request__deinit(&r);
}

/* ---- the output ---- */

/* What a request with these descriptors comes to. */
static int take_output(const int *fds, size_t n_fds, int *output)
{
	json_t *o = json_pack("{s:s, s:i}", "op", "start", "pid", 1);
	struct hs_error err = { "" };
	int pair[2], ret;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(wire__send_line(pair[0], o, fds, n_fds), 0);
	ret = request__take_output(pair[1], output, &err);
	assert_true(!ret || (err.text[0] && *output == -1));
	json_decref(o);
	close(pair[0]);
	close(pair[1]);
	return ret;
}

static void takes_the_output(void **state)
{
	int write_only = open("/dev/null", O_WRONLY), both = open("/dev/null", O_RDWR);
	int read_only = open("/dev/null", O_RDONLY), path = open("/dev/null", O_PATH);
	const int two[] = { write_only, both };
	struct hs_error err;
	int output, pair[2];

	(void)state;
	assert_int_equal(take_output(NULL, 0, &output), 0);
	assert_int_equal(output, -1);
	assert_int_equal(take_output(&write_only, 1, &output), 0);
	assert_int_equal(write(output, "x", 1), 1);
	close(output);
	assert_int_equal(take_output(&both, 1, &output), 0);
	close(output);
	assert_int_equal(take_output(&read_only, 1, &output), -EBADF);
	assert_int_equal(take_output(&path, 1, &output), -EBADF);
	assert_int_equal(take_output(two, 2, &output), -EBADMSG);
	/* Nothing there: does not wait. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(request__take_output(pair[1], &output, &err), -EBADMSG);
	close(pair[0]);
	close(pair[1]);
	close(write_only);
	close(both);
	close(read_only);
	close(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_defaults),
		cmocka_unit_test(takes_all_members),
		cmocka_unit_test(knows_operations),
		cmocka_unit_test(refuses_unknown_members),
		cmocka_unit_test(refuses_wrong_values),
		cmocka_unit_test(bounds_domains),
		cmocka_unit_test(reads_what_the_supervisor_says),
		cmocka_unit_test(adds_up_memory),
		cmocka_unit_test(takes_the_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
