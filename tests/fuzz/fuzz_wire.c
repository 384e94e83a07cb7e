/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests on the control socket, as the daemon and a worker read them.
 *
 * In:   a byte that chooses how they come, pieces (fuzz__piece): what is written at a time.
 * Out:  user/wire and user/daemon/requests.h.
 *
 * A request that is accepted keeps within all limits, and so does the answer to one that is
 * not.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/daemon/requests.h"
#include "user/wire/wire.h"

enum { BY_LINE, BY_PEEKING, BY_PACKET, BY_OUTPUT };

#define CHOICE_FDS 4 /* descriptors come with the first piece */

/* ---- what is asked for ---- */

static void check_request(const struct request *r)
{
	const struct attach_options *a = &r->options.attach;

	CHECK(a->tier.rate > 0 && a->tier.rate <= 1);
	CHECK(a->stack_depth <= SONDE_STACK_MAX);
	CHECK(a->ring_bytes >= 4096 && a->ring_bytes <= REQUEST_RING_BYTES_MAX);
	CHECK(!(a->ring_bytes & (a->ring_bytes - 1)));
	CHECK(a->max_blocks >= 1 && a->max_blocks <= REQUEST_TABLE_MAX);
	CHECK(a->max_stacks >= 1 && a->max_stacks <= REQUEST_TABLE_MAX);
	CHECK(a->n_domains <= REQUEST_DOMAINS_MAX);
	CHECK(r->duration_s >= 0 && r->duration_s <= REQUEST_DURATION_MAX);
	CHECK(r->top <= REQUEST_TOP_MAX && (!r->top || r->bound));
	CHECK(r->op != REQUEST_START || r->pid > 0);
	CHECK(request__memory(r) < 1ull << 32);
	CHECK(request__blocks(r) <= REQUEST_TABLE_MAX);
}

/* Text that clients get is one line of JSON, whatever they have sent. */
static void answer(int code, const struct hs_error *err)
{
	json_t *object = wire__error(code, err);
	size_t n;
	char *line;

	CHECK(object);
	CHECK(wire__code(object) == code);
	line = wire__line(object, &n);
	CHECK(line && memchr(line, '\n', n) == line + n - 1);
	free(line);
	json_decref(object);
}

static void take(const json_t *object)
{
	struct request r;
	struct hs_error err;
	int ret = request__parse_client(object, &r, &err);

	if (!ret) {
		check_request(&r);
		CHECK(!r.is_handed);
		request__deinit(&r);
	} else {
		answer(ret, &err);
	}
	ret = request__parse(object, &r, &err);
	if (!ret) {
		check_request(&r);
		request__deinit(&r);
	} else {
		answer(ret, &err);
	}
}

/* ---- how it comes ---- */

static void send_piece(int fd, struct fuzz_bytes piece, int n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)piece.at, piece.left };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n_fds) {
		const int fds[4] = { fd, fd, fd, fd };
		struct cmsghdr *c = &control.align;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)n_fds * sizeof(int));
	}
	/* What finds no room is lost; that is an input, too. */
	sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Returns whether the connection goes on. */
static bool receive(int fd, struct wire_message *m, unsigned int how)
{
	json_t *object = NULL;
	int ret;

	if (how == BY_PACKET)
		ret = wire__receive_packet(fd, m, &object);
	else if (how == BY_PEEKING)
		ret = wire__peek_line(fd, m, WIRE_REQUEST_MAX_BYTES, &object);
	else
		ret = wire__receive_line(fd, m, WIRE_REQUEST_MAX_BYTES, &object);
	CHECK(m->n_fds <= WIRE_FDS_MAX);
	CHECK(m->n_bytes <= WIRE_PACKET_MAX_BYTES);
	CHECK((ret == 1) == (object != NULL));
	if (ret == 1)
		take(object);
	json_decref(object);
	if (how == BY_PACKET)
		wire_message__deinit(m);
	if (how == BY_PEEKING && ret == 1)
		wire__drop(fd);
	return how == BY_PACKET ? ret != 0 && ret != -EAGAIN : !ret;
}

static void converse(int fds[2], unsigned int how, int n_fds, struct fuzz_bytes b)
{
	struct wire_message m;
	int output = -1;
	struct hs_error err;

	wire_message__init(&m);
	for (int i = 0; b.left && i < 64; i++) {
		send_piece(fds[1], fuzz__piece(&b), i ? 0 : n_fds);
		if (how == BY_OUTPUT)
			continue;
		while (receive(fds[0], &m, how))
			;
	}
	shutdown(fds[1], SHUT_WR);
	if (how == BY_OUTPUT && !request__take_output(fds[0], &output, &err) && output >= 0)
		close(output);
	wire_message__deinit(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = { data, size };
	unsigned int choice = (unsigned int)fuzz__number(&b, 1), how = choice & 3;
	int n_fds = choice & CHOICE_FDS ? 1 + (choice >> 3 & 3) : 0;
	int type = how == BY_PACKET ? SOCK_SEQPACKET : SOCK_STREAM, fds[2], lowest[2];

	CHECK(!socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
	converse(fds, how, n_fds, b);
	close(fds[1]);
	close(fds[0]);
	/* No descriptor that came is left open: these two are the lowest again. */
	CHECK(!pipe2(lowest, O_CLOEXEC));
	CHECK(lowest[0] == fds[0] && lowest[1] == fds[1]);
	close(lowest[0]);
	close(lowest[1]);
	return 0;
}
