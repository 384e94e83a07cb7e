/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages over Unix sockets; see wire.h.
 *
 * In:   bytes of whoever is at the other end.
 * Out:  JSON objects and descriptors, or an error.
 */
#include "user/wire/wire.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM_MIN_BYTES 4096
/* No errno of the kernel's interface is higher. */
#define ERRNO_MAX 255

#define DUMP_FLAGS (JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17))

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(WIRE_FDS_MAX * sizeof(int))];
};

void wire_message__init(struct wire_message *m)
{
	memset(m, 0, sizeof(*m));
	for (size_t i = 0; i < WIRE_FDS_MAX; i++)
		m->fds[i] = -1;
}

void wire_message__deinit(struct wire_message *m)
{
	for (size_t i = 0; i < m->n_fds; i++)
		if (m->fds[i] >= 0)
			close(m->fds[i]);
	free(m->bytes);
	wire_message__init(m);
}

/* ---- receiving ---- */

/* Room for at least one byte more, and never for more than max bytes. */
static int make_room(struct wire_message *m, size_t max)
{
	size_t room = m->room ? m->room * 2 : ROOM_MIN_BYTES;
	char *grown;

	if (m->n_bytes >= max)
		return -EMSGSIZE;
	if (m->n_bytes < m->room)
		return 0;
	if (room > max)
		room = max;
	grown = realloc(m->bytes, room);
	if (!grown)
		return -ENOMEM;
	m->bytes = grown;
	m->room = room;
	return 0;
}

/* Keep the descriptors of one read; close those that are too many. */
static int take_fds(struct wire_message *m, struct msghdr *msg)
{
	int ret = msg->msg_flags & MSG_CTRUNC ? -EBADMSG : 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (m->n_fds < WIRE_FDS_MAX) {
				m->fds[m->n_fds++] = fd;
				continue;
			}
			close(fd);
			ret = -EBADMSG;
		}
	}
	return ret;
}

static ssize_t receive_again(int fd, void *buf, size_t len, int flags)
{
	ssize_t n;

	do {
		n = recv(fd, buf, len, flags);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Read up to len bytes behind those that are there, with descriptors. */
static ssize_t receive_with_fds(int fd, struct wire_message *m, size_t len)
{
	union control control;
	struct iovec iov = { .iov_base = m->bytes + m->n_bytes, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;
	int ret;

	do {
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	ret = take_fds(m, &msg);
	if (msg.msg_flags & MSG_TRUNC)
		ret = -EMSGSIZE;
	m->n_bytes += (size_t)n;
	return ret ? ret : n;
}

/* The parser recurses, and so does whoever walks over the result. */
static bool too_deep(const char *bytes, size_t n)
{
	bool in_string = false;
	int depth = 0;

	for (size_t i = 0; i < n; i++) {
		char c = bytes[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > WIRE_DEPTH_MAX)
				return true;
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	return false;
}

static int parse(const struct wire_message *m, json_t **object)
{
	json_t *o;

	if (too_deep(m->bytes, m->n_bytes))
		return -EBADMSG;
	o = json_loadb(m->bytes, m->n_bytes, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(o)) {
		json_decref(o);
		return -EBADMSG;
	}
	*object = o;
	return 1;
}

/* How many of the n bytes belong to the line; *whole: its end is among them. */
static size_t line_part(const char *bytes, size_t n, bool *whole)
{
	const char *end = memchr(bytes, '\n', n);

	*whole = end;
	return end ? (size_t)(end - bytes) + 1 : n;
}

int wire__receive_line(int fd, struct wire_message *m, size_t max_bytes, json_t **object)
{
	size_t len, want;
	ssize_t n;
	bool whole;
	int ret = make_room(m, max_bytes);

	if (ret)
		return ret;
	/* Look first, so as not to take what comes after the line. */
	n = receive_again(fd, m->bytes + m->n_bytes, m->room - m->n_bytes, MSG_PEEK);
	if (n <= 0)
		return n ? (int)n : -ECONNRESET;
	len = m->n_bytes;
	want = line_part(m->bytes + len, (size_t)n, &whole);
	n = receive_with_fds(fd, m, want);
	if (n <= 0)
		return n ? (int)n : -ECONNRESET;
	if (!whole || (size_t)n < want)
		return m->n_bytes >= max_bytes ? -EMSGSIZE : 0;
	return parse(m, object);
}

static int set_peek_offset(int fd, int offset)
{
	return setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof(offset)) ? -errno : 0;
}

int wire__peek_line(int fd, struct wire_message *m, size_t max_bytes, json_t **object)
{
	size_t part;
	ssize_t n;
	bool whole;
	int ret = make_room(m, max_bytes);

	if (!ret && !m->n_bytes)
		ret = set_peek_offset(fd, 0);
	if (ret)
		return ret;
	n = receive_again(fd, m->bytes + m->n_bytes, m->room - m->n_bytes, MSG_PEEK | MSG_DONTWAIT);
	if (n <= 0)
		return n ? (int)n : -ECONNRESET;
	part = line_part(m->bytes + m->n_bytes, (size_t)n, &whole);
	m->n_bytes += part;
	if (!whole)
		return m->n_bytes >= max_bytes ? -EMSGSIZE : 0;
	ret = set_peek_offset(fd, -1);
	return ret ? ret : parse(m, object);
}

void wire__drop(int fd)
{
	char bytes[ROOM_MIN_BYTES];

	/* Not for ever: the other side may write as fast as this reads. */
	for (int i = 0; i < 4 * WIRE_REQUEST_MAX_BYTES / ROOM_MIN_BYTES; i++)
		if (receive_again(fd, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0)
			return;
}

int wire__receive_packet(int fd, struct wire_message *m, json_t **object)
{
	ssize_t n;

	wire_message__init(m);
	/* The length first: with MSG_TRUNC that of the packet, not of the buffer. */
	n = receive_again(fd, NULL, 0, MSG_PEEK | MSG_TRUNC);
	if (n <= 0)
		return n == -ECONNRESET ? 0 : (int)n;
	m->room = n > WIRE_PACKET_MAX_BYTES ? 1 : (size_t)n;
	m->bytes = malloc(m->room);
	if (!m->bytes)
		return -ENOMEM;
	n = receive_with_fds(fd, m, m->room);
	if (n <= 0)
		return (int)n;
	return parse(m, object);
}

/* ---- sending ---- */

char *wire__line(const json_t *object, size_t *n)
{
	size_t len = json_dumpb(object, NULL, 0, DUMP_FLAGS);
	char *line = len ? malloc(len + 1) : NULL;

	if (!line)
		return NULL;
	if (json_dumpb(object, line, len, DUMP_FLAGS) != len) {
		free(line);
		return NULL;
	}
	line[len] = '\n';
	*n = len + 1;
	return line;
}

static ssize_t send_with_fds(int fd, const char *bytes, size_t len, const int *fds, size_t n_fds)
{
	union control control = { 0 };
	struct iovec iov = { .iov_base = (char *)bytes, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (n_fds > WIRE_FDS_MAX)
		return -EINVAL;
	if (n_fds) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do {
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int wire__send_line(int fd, const json_t *object, const int *fds, size_t n_fds)
{
	size_t len, sent = 0;
	ssize_t n = 0;
	char *line = wire__line(object, &len);

	if (!line)
		return -ENOMEM;
	while (sent < len) {
		n = send_with_fds(fd, line + sent, len - sent, fds, sent ? 0 : n_fds);
		if (n < 0)
			break;
		sent += (size_t)n;
	}
	free(line);
	if (n < 0)
		return sent && n == -EAGAIN ? -EPIPE : (int)n;
	return 0;
}

int wire__send_packet(int fd, const json_t *object, const int *fds, size_t n_fds)
{
	size_t len;
	ssize_t n;
	char *line = wire__line(object, &len);

	if (!line)
		return -ENOMEM;
	n = len > WIRE_PACKET_MAX_BYTES ? -EMSGSIZE : send_with_fds(fd, line, len, fds, n_fds);
	free(line);
	return n < 0 ? (int)n : 0;
}

/* ---- answers ---- */

json_t *wire__ok(void)
{
	return json_pack("{s:b}", "ok", 1);
}

json_t *wire__error(int code, const struct hs_error *err)
{
	const char *name = strerrorname_np(-code);
	struct hs_error ascii;
	json_t *text = json_string(err->text);

	if (!text) {
		/* A name out of a request or of /proc, cut short or in any encoding. */
		ascii = *err;
		for (char *p = ascii.text; *p; p++)
			if ((unsigned char)*p > '~')
				*p = '?';
		text = json_string(ascii.text);
	}
	return json_pack("{s:b, s:s, s:o}", "ok", 0, "code", name ? name : "EIO", "error", text);
}

int wire__code(const json_t *answer)
{
	const char *code = json_string_value(json_object_get(answer, "code"));
	json_t *ok = json_object_get(answer, "ok");

	if (json_is_true(ok))
		return 0;
	if (!json_is_false(ok) || !code)
		return -EPROTO;
	for (int e = 1; e <= ERRNO_MAX; e++) {
		const char *name = strerrorname_np(e);

		if (name && !strcmp(name, code))
			return -e;
	}
	return -EPROTO;
}
