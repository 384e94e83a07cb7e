/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages over sockets: whole, in pieces, too long, to and from a side that vanishes
 * or does not read; and answers there and back.
 */
#include "tests/unit/wire_pairs.h"

#include <signal.h>

/* What one line comes to, by both ways of reading. */
static void check_line(const char *line, int expected)
{
	int (*const ways[])(int, struct wire_message *, json_t **) = { receive, peek };

	for (size_t i = 0; i < COUNT(ways); i++) {
		struct pair p = pair_of(SOCK_STREAM);
		struct wire_message m;
		json_t *object = NULL;

		wire_message__init(&m);
		put(p.a, line);
		assert_int_equal(ways[i](p.b, &m, &object), expected);
		assert_true(expected == 1 ? json_is_object(object) : !object);
		json_decref(object);
		wire_message__deinit(&m);
		close_pair(&p);
	}
}

static void reads_objects_only(void **state)
{
	char deep[64] = "";

	(void)state;
	check_line("{}\n", 1);
	check_line("{\"op\":\"status\"}\n", 1);
	check_line("{\"text\":\"[[[[[[[[[[[[[[[[[[[[[[ \\\"{{{{{{{{{{\"}\n", 1);
	check_line("\n", -EBADMSG);
	check_line("[1]\n", -EBADMSG);
	check_line("7\n", -EBADMSG);
	check_line("{\"a\":1,\"a\":2}\n", -EBADMSG);
	check_line("{\"a\":1} {}\n", -EBADMSG);
	check_line("{\"a\":99999999999999999999}\n", -EBADMSG);
	check_line("{\"a\":1e999}\n", -EBADMSG);
	check_line("{\"a\":\"\xff\"}\n", -EBADMSG);
	check_line("{\"a\":\"\\u0000\"}\n", -EBADMSG);
	check_line("{\"a\":", -EAGAIN);
	check_line("", -EAGAIN);
	for (int i = 0; i < WIRE_DEPTH_MAX - 1; i++)
		strcat(deep, "[");
	memmove(deep + 5, deep, strlen(deep) + 1);
	memcpy(deep, "{\"a\":", 5);
	for (int i = 0; i < WIRE_DEPTH_MAX - 1; i++)
		strcat(deep, "]");
	strcat(deep, "}\n");
	check_line(deep, 1);
	/* One deeper. */
	memmove(deep + 6, deep + 5, strlen(deep + 5) + 1);
	deep[5] = '[';
	strcpy(deep + strlen(deep) - 2, "]}\n");
	check_line(deep, -EBADMSG);
}

static void reads_pieces(void **state)
{
	static const char line[] = "{\"op\":\"stop\",\"profile\":7}\n";
	struct pair p = pair_of(SOCK_STREAM);
	struct wire_message m[2];
	json_t *object[2] = { NULL, NULL };

	(void)state;
	wire_message__init(&m[0]);
	wire_message__init(&m[1]);
	for (size_t i = 0; i + 1 < sizeof(line); i++) {
		assert_int_equal(peek(p.b, &m[1], &object[1]), -EAGAIN);
		assert_int_equal(write(p.a, &line[i], 1), 1);
	}
	assert_int_equal(peek(p.b, &m[1], &object[1]), 1);
	/* All of it is still there. */
	assert_int_equal(receive(p.b, &m[0], &object[0]), 1);
	for (int i = 0; i < 2; i++) {
		assert_true(json_equal(object[0], object[i]));
		assert_int_equal(json_integer_value(json_object_get(object[i], "profile")), 7);
	}
	json_decref(object[0]);
	json_decref(object[1]);
	wire_message__deinit(&m[0]);
	wire_message__deinit(&m[1]);
	close_pair(&p);
}

static void leaves_what_follows(void **state)
{
	struct pair p = pair_of(SOCK_STREAM);
	struct wire_message m;
	json_t *object;
	char rest[32];

	(void)state;
	put(p.a, "{\"ok\":true}\n{\"type\":\"header\"}\n");
	wire_message__init(&m);
	assert_int_equal(receive(p.b, &m, &object), 1);
	assert_true(json_is_true(json_object_get(object, "ok")));
	json_decref(object);
	wire_message__deinit(&m);
	assert_int_equal(read(p.b, rest, sizeof(rest)), 18);
	assert_memory_equal(rest, "{\"type\":\"header\"}\n", 18);
	close_pair(&p);
}

static void refuses_long_lines(void **state)
{
	char *longest = line_of(MAX_BYTES), *longer = line_of(MAX_BYTES + 1);

	(void)state;
	check_line(longest, 1);
	check_line(longer, -EMSGSIZE);
	longer[MAX_BYTES] = ' ';
	check_line(longer, -EMSGSIZE);
	free(longest);
	free(longer);
}

static void notices_the_end(void **state)
{
	int (*const ways[])(int, struct wire_message *, json_t **) = { receive, peek };

	(void)state;
	for (size_t i = 0; i < COUNT(ways); i++) {
		struct pair p = pair_of(SOCK_STREAM);
		struct wire_message m;
		json_t *object;

		wire_message__init(&m);
		put(p.a, "{\"op\":");
		assert_int_equal(ways[i](p.b, &m, &object), -EAGAIN);
		close(p.a);
		p.a = -1;
		assert_int_equal(ways[i](p.b, &m, &object), -ECONNRESET);
		wire_message__deinit(&m);
		close_pair(&p);
	}
}

/* ---- packets, and sockets that are full ---- */

static void bounds_packets(void **state)
{
	struct pair p = pair_of(SOCK_SEQPACKET);
	char *text = line_of(WIRE_PACKET_MAX_BYTES);
	struct wire_message m;
	json_t *object;
	int size = 1 << 20;

	(void)state;
	assert_int_equal(setsockopt(p.a, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	assert_int_equal(wire__receive_packet(p.b, &m, &object), -EAGAIN);
	wire_message__deinit(&m);
	put(p.a, text);
	assert_int_equal(wire__receive_packet(p.b, &m, &object), 1);
	json_decref(object);
	wire_message__deinit(&m);
	free(text);

	text = line_of(WIRE_PACKET_MAX_BYTES + 1);
	put(p.a, text);
	assert_int_equal(wire__receive_packet(p.b, &m, &object), -EMSGSIZE);
	wire_message__deinit(&m);
	text[WIRE_PACKET_MAX_BYTES] = 0;
	object = json_pack("{s:s}", "a", text + 1);
	assert_int_equal(wire__send_packet(p.a, object, NULL, 0), -EMSGSIZE);
	json_decref(object);
	free(text);

	close(p.a);
	p.a = -1;
	assert_int_equal(wire__receive_packet(p.b, &m, &object), 0);
	wire_message__deinit(&m);
	close_pair(&p);
}

static void does_not_block(void **state)
{
	json_t *object = json_pack("{s:s}", "a", "bcdefghijklmnopqrstuvwxyz");
	struct pair p = pair_of(SOCK_SEQPACKET);
	char *text;
	int ret;

	(void)state;
	do {
		ret = wire__send_packet(p.b, object, NULL, 0);
	} while (!ret);
	assert_int_equal(ret, -EAGAIN);
	close_pair(&p);

	p = pair_of(SOCK_STREAM);
	do {
		ret = wire__send_line(p.b, object, NULL, 0);
	} while (!ret);
	assert_true(ret == -EAGAIN || ret == -EPIPE);
	close_pair(&p);
	json_decref(object);

	/* In part. */
	text = line_of(4 << 20);
	text[(4 << 20) - 2] = 0;
	object = json_pack("{s:s}", "a", text);
	p = pair_of(SOCK_STREAM);
	assert_int_equal(wire__send_line(p.b, object, NULL, 0), -EPIPE);
	close_pair(&p);
	/* Nobody there, and no signal. */
	p = pair_of(SOCK_STREAM);
	close(p.a);
	p.a = -1;
	assert_int_equal(wire__send_line(p.b, object, NULL, 0), -EPIPE);
	close_pair(&p);
	json_decref(object);
	free(text);
}

/* ---- answers ---- */

static void makes_answers(void **state)
{
	static const int codes[] = { -EBADMSG,  -EMSGSIZE,    -EPERM,  -ENOENT, -EBUSY,
				     -EALREADY, -EINPROGRESS, -EDQUOT, -ESRCH,  -EOPNOTSUPP };
	struct hs_error err;
	json_t *answer = wire__ok();

	(void)state;
	assert_int_equal(wire__code(answer), 0);
	json_decref(answer);
	hs_error__set(&err, 0, "no profile 7");
	for (size_t i = 0; i < COUNT(codes); i++) {
		answer = wire__error(codes[i], &err);
		assert_int_equal(wire__code(answer), codes[i]);
		assert_string_equal(json_string_value(json_object_get(answer, "error")),
				    "no profile 7");
		json_decref(answer);
	}
	answer = wire__error(-ENOENT, &err);
	assert_string_equal(json_string_value(json_object_get(answer, "code")), "ENOENT");
	json_decref(answer);
	/* ENOTSUPP, which the kernel has and libc has not. */
	answer = wire__error(-524, &err);
	assert_int_equal(wire__code(answer), -EIO);
	json_decref(answer);
	/* A text in no encoding. */
	hs_error__set(&err, 0, "no \xff\xfe here");
	answer = wire__error(-ENOENT, &err);
	assert_string_equal(json_string_value(json_object_get(answer, "error")), "no ?? here");
	json_decref(answer);
}

static void knows_no_answers(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"ok\":1}",
		"{\"ok\":false}",
		"{\"ok\":false,\"code\":7}",
		"{\"ok\":false,\"code\":\"ENOTHING\"}",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		json_t *o = json_loads(texts[i], 0, NULL);

		assert_int_equal(wire__code(o), -EPROTO);
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_objects_only),  cmocka_unit_test(reads_pieces),
		cmocka_unit_test(leaves_what_follows), cmocka_unit_test(refuses_long_lines),
		cmocka_unit_test(notices_the_end),     cmocka_unit_test(bounds_packets),
		cmocka_unit_test(does_not_block),      cmocka_unit_test(makes_answers),
		cmocka_unit_test(knows_no_answers),
	};

	/* A signal would be an error of its own; the default ends the test. */
	signal(SIGPIPE, SIG_DFL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
