/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors with messages: taken, left where they are, too many; none is left open.
 */
#include "tests/unit/wire_pairs.h"

#include <sys/stat.h>

static void passes_descriptors(void **state)
{
	const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };
	json_t *sent = json_pack("{s:s}", "op", "start");

	(void)state;
	for (size_t i = 0; i < COUNT(types); i++) {
		struct pair p = pair_of(types[i]);
		struct wire_message m;
		json_t *object = NULL;
		struct stat st[2];
		int fds[2] = { open("/dev/null", O_WRONLY | O_CLOEXEC), p.a }, taken;

		if (types[i] == SOCK_STREAM) {
			wire_message__init(&m);
			assert_int_equal(wire__send_line(p.a, sent, fds, 2), 0);
			assert_int_equal(receive(p.b, &m, &object), 1);
		} else {
			assert_int_equal(wire__send_packet(p.a, sent, fds, 2), 0);
			assert_int_equal(wire__receive_packet(p.b, &m, &object), 1);
		}
		assert_true(json_equal(object, sent));
		json_decref(object);
		assert_int_equal(m.n_fds, 2);
		taken = m.fds[0];
		m.fds[0] = -1;
		wire_message__deinit(&m);
		assert_int_equal(fcntl(taken, F_GETFD), FD_CLOEXEC);
		assert_int_equal(fstat(taken, &st[0]), 0);
		assert_int_equal(fstat(fds[0], &st[1]), 0);
		assert_int_equal(st[0].st_rdev, st[1].st_rdev);
		close(taken);
		close(fds[0]);
		close_pair(&p);
	}
	json_decref(sent);
}

/* As send_line, with more descriptors than it lets one pass. */
static void send_many(int fd, const char *text, int n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(16 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (char *)text, .iov_len = strlen(text) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (int i = 0; i < n; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
	assert_int_equal(sendmsg(fd, &msg, 0), strlen(text));
}

static void closes_too_many_descriptors(void **state)
{
	struct wire_message m;
	json_t *object = NULL;
	struct pair p;

	(void)state;
	p = pair_of(SOCK_STREAM);
	wire_message__init(&m);
	send_many(p.a, "{}\n", WIRE_FDS_MAX + 1);
	assert_int_equal(receive(p.b, &m, &object), -EBADMSG);
	wire_message__deinit(&m);
	close_pair(&p);

	/* One with each byte. */
	p = pair_of(SOCK_STREAM);
	send_many(p.a, "{", 1);
	send_many(p.a, "\"", 1);
	send_many(p.a, "a", 1);
	assert_int_equal(receive(p.b, &m, &object), -EBADMSG);
	wire_message__deinit(&m);
	close_pair(&p);

	/* A bad packet is not the end of the socket. */
	p = pair_of(SOCK_SEQPACKET);
	send_many(p.a, "{}", WIRE_FDS_MAX + 1);
	put(p.a, "{\"b\":1}");
	assert_int_equal(wire__receive_packet(p.b, &m, &object), -EBADMSG);
	wire_message__deinit(&m);
	assert_int_equal(wire__receive_packet(p.b, &m, &object), 1);
	json_decref(object);
	wire_message__deinit(&m);
	close_pair(&p);
}

/* Looking does not open descriptors, even over several messages with some. */
static void peeks_without_opening(void **state)
{
	struct pair p = pair_of(SOCK_STREAM);
	struct wire_message m, again;
	json_t *object = NULL;
	int n;

	(void)state;
	wire_message__init(&m);
	n = n_open();
	send_many(p.a, "{\"op\":", 1);
	assert_int_equal(peek(p.b, &m, &object), -EAGAIN);
	send_many(p.a, "\"start\"}", 1);
	assert_int_equal(peek(p.b, &m, &object), -EAGAIN);
	put(p.a, "\n");
	assert_int_equal(peek(p.b, &m, &object), 1);
	assert_int_equal(n_open(), n);
	assert_int_equal(m.n_fds, 0);
	json_decref(object);
	wire_message__deinit(&m);

	/* Who reads it then gets them. */
	wire_message__init(&again);
	assert_int_equal(receive(p.b, &again, &object), 1);
	assert_string_equal(json_string_value(json_object_get(object, "op")), "start");
	assert_int_equal(again.n_fds, 2);
	json_decref(object);
	wire_message__deinit(&again);
	close_pair(&p);
}

static void drops_without_opening(void **state)
{
	struct pair p = pair_of(SOCK_STREAM);
	char byte;

	(void)state;
	send_many(p.a, "{\"op\":1}\n", 5);
	wire__drop(p.b);
	assert_int_equal(recv(p.b, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_descriptors),
		cmocka_unit_test(closes_too_many_descriptors),
		cmocka_unit_test(peeks_without_opening),
		cmocka_unit_test(drops_without_opening),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
