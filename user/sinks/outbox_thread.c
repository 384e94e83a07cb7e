/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of an outbox; see outbox.h.
 *
 * In:   the queue.
 * Out:  the descriptor, which only the thread touches.
 */
#include "user/sinks/outbox_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A second description of the same pipe, which does not block; the flag of the one
 * that we were given belongs to others too. (A terminal cannot be opened again like
 * this: /dev/tty and /dev/ptmx would give another one.)
 */
static void reopen(struct outbox *o)
{
	int flags = fcntl(o->fd, F_GETFL), fd;
	char path[64];

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || flags & O_NONBLOCK)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", o->fd);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	close(o->fd);
	o->fd = fd;
}

static void look_at_fd(struct outbox *o)
{
	struct stat st;

	if (fstat(o->fd, &st))
		return; /* writing will tell */
	o->is_socket = S_ISSOCK(st.st_mode);
	o->is_regular = S_ISREG(st.st_mode);
	if (S_ISFIFO(st.st_mode))
		reopen(o);
}

/* Wait for bytes. NULL: there will be none, or they are not wanted. */
static struct block *next_block(struct outbox *o)
{
	struct block *b = NULL;

	pthread_mutex_lock(&o->lock);
	while (!o->is_abandoned && !o->first && !o->is_finishing)
		pthread_cond_wait(&o->wanted, &o->lock);
	if (!o->is_abandoned && o->first) {
		b = o->first;
		o->first = b->next;
		if (!o->first)
			o->last = NULL;
	}
	pthread_mutex_unlock(&o->lock);
	return b;
}

static void note_lines(struct outbox *o, const char *bytes, size_t n)
{
	const char *newline = memrchr(bytes, '\n', n);

	o->n_partial = newline ? (size_t)(bytes + n - 1 - newline) : o->n_partial + n;
}

/* Returns whether the owner has gone. */
static bool note_written(struct outbox *o, size_t n)
{
	bool is_abandoned;

	pthread_mutex_lock(&o->lock);
	o->n_queued -= n;
	o->n_written += n;
	is_abandoned = o->is_abandoned;
	pthread_mutex_unlock(&o->lock);
	return is_abandoned;
}

/* Until there is room, or the owner has gone. */
static void wait_for_room(const struct outbox *o)
{
	struct pollfd fds[] = {
		{ .fd = o->fd, .events = POLLOUT },
		{ .fd = o->abandon_fd, .events = POLLIN },
	};

	poll(fds, 2, -1);
}

static ssize_t write_some(const struct outbox *o, const char *bytes, size_t n)
{
	if (o->is_socket)
		return send(o->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	return write(o->fd, bytes, n);
}

/* 0, a negative errno, or -ECANCELED: the owner has gone. */
static int write_block(struct outbox *o, const struct block *b)
{
	for (size_t at = 0; at < b->n_bytes;) {
		ssize_t n = write_some(o, b->bytes + at, b->n_bytes - at);

		if (n < 0 && errno == EAGAIN)
			wait_for_room(o);
		else if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			note_lines(o, b->bytes + at, (size_t)n);
			at += (size_t)n;
		}
		if (note_written(o, n > 0 ? (size_t)n : 0))
			return -ECANCELED;
	}
	return 0;
}

/* What follows the last newline is ours if the file ends where we stopped. */
static void cut_to_last_line(const struct outbox *o)
{
	off_t at = lseek(o->fd, 0, SEEK_CUR);
	struct stat st;

	if (at < (off_t)o->n_partial || fstat(o->fd, &st) || st.st_size != at)
		return;
	if (ftruncate(o->fd, at - (off_t)o->n_partial))
		return; /* then it stays cut within a line */
}

static void end(struct outbox *o, int err)
{
	if (o->is_lines && o->is_regular && o->n_partial)
		cut_to_last_line(o);
	if (close(o->fd) && !err)
		err = -errno;
	pthread_mutex_lock(&o->lock);
	o->error = err;
	outbox_shared__free_blocks(o->first);
	o->first = o->last = NULL;
	o->n_queued = 0;
	o->is_done = true;
	if (o->done_fd >= 0)
		outbox_shared__signal(o->done_fd);
	outbox_shared__leave(o);
}

void *outbox_thread__run(void *arg)
{
	struct outbox *o = arg;
	struct block *b;
	int err = 0;

	look_at_fd(o);
	while (!err && (b = next_block(o))) {
		err = write_block(o, b);
		free(b);
	}
	end(o, err);
	return NULL;
}
