/* SPDX-License-Identifier: BSD-2-Clause */
/* See outlet.h. */
#include "user/top/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "user/common/clock.h"

/*
 * What is written at once to a terminal that would block: poll says that there is room, not
 * how much. Most terminals have more than this, or none.
 */
#define CAREFUL_BYTES 256u

int outlet__open(struct outlet *o, int fd)
{
	char path[64];
	int ret;

	*o = OUTLET_NONE;
	o->memory_fd = memfd_create("heapsonde-terminal", MFD_CLOEXEC);
	if (o->memory_fd < 0) {
		ret = -errno;
		*o = OUTLET_NONE;
		return ret;
	}
	/* O_NONBLOCK on fd itself would be the shell's and everybody's who shares it. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	o->terminal_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	o->is_own = o->terminal_fd >= 0;
	if (!o->is_own)
		o->terminal_fd = fd;
	return 0;
}

void outlet__close(struct outlet *o)
{
	if (o->memory_fd >= 0)
		close(o->memory_fd);
	if (o->is_own)
		close(o->terminal_fd);
	free(o->bytes);
	*o = OUTLET_NONE;
}

/* ---- in ---- */

/* Room for n bytes more. NULL: out of memory. */
static char *make_room(struct outlet *o, size_t n)
{
	char *grown;

	if (o->n_sent) {
		memmove(o->bytes, o->bytes + o->n_sent, o->n - o->n_sent);
		o->n -= o->n_sent;
		o->n_sent = 0;
	}
	grown = realloc(o->bytes, o->n + n + 1);
	if (!grown)
		return NULL;
	o->bytes = grown;
	return grown + o->n;
}

/* What the library has written since. */
static void take_written(struct outlet *o)
{
	off_t size = lseek(o->memory_fd, 0, SEEK_CUR);
	char *to = size > 0 ? make_room(o, (size_t)size) : NULL;
	ssize_t n = to ? pread(o->memory_fd, to, (size_t)size, 0) : 0;

	if (size <= 0)
		return;
	if (n > 0)
		o->n += (size_t)n;
	/* The offset is shared with the descriptor that is written to. */
	if (n != size || ftruncate(o->memory_fd, 0) || lseek(o->memory_fd, 0, SEEK_SET))
		o->has_dropped = true;
}

void outlet__add(struct outlet *o, const char *bytes, size_t n)
{
	char *to;

	take_written(o);
	to = make_room(o, n);
	if (!to) {
		o->has_dropped = true;
		return;
	}
	memcpy(to, bytes, n);
	o->n += n;
}

/* ---- out ---- */

static bool is_ready(const struct outlet *o)
{
	struct pollfd p = { .fd = o->terminal_fd, .events = POLLOUT };

	return poll(&p, 1, 0) > 0 && p.revents & POLLOUT;
}

/* 1: some went, 0: not now, or a negative errno. */
static int send_some(struct outlet *o)
{
	size_t n = o->n - o->n_sent;
	ssize_t sent;

	if (!o->is_own && !is_ready(o))
		return 0;
	if (!o->is_own && n > CAREFUL_BYTES)
		n = CAREFUL_BYTES;
	sent = write(o->terminal_fd, o->bytes + o->n_sent, n);
	if (sent < 0)
		return errno == EAGAIN ? 0 : errno == EINTR ? 1 : -errno;
	o->n_sent += (size_t)sent;
	return sent > 0;
}

bool outlet__send(struct outlet *o)
{
	int ret = 1;

	take_written(o);
	while (o->n_sent < o->n && ret > 0)
		ret = send_some(o);
	/* A terminal that has gone takes nothing more. */
	if (ret < 0)
		o->n_sent = o->n;
	if (o->n_sent == o->n)
		o->n = o->n_sent = 0;
	return !o->n;
}

bool outlet__send_within(struct outlet *o, int ms)
{
	uint64_t end_ns = clock__now_ns() + (uint64_t)ms * 1000000;
	bool is_sent;

	while (!(is_sent = outlet__send(o))) {
		struct pollfd p = { .fd = o->terminal_fd, .events = POLLOUT };
		uint64_t now_ns = clock__now_ns();

		if (now_ns >= end_ns)
			break;
		poll(&p, 1, (int)((end_ns - now_ns) / 1000000) + 1);
	}
	return is_sent;
}
