/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue and the thread that writes it; see outbox.h. */
#include "user/sinks/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes are queued in blocks of this size, and written when there are so many. */
#define BLOCK_BYTES (64u << 10)
#define THREAD_STACK_BYTES (128u << 10)

struct block {
	struct block *next;
	size_t n_bytes, room;
	char bytes[];
};

struct outbox {
	/* The thread's alone. */
	int fd;
	bool is_lines, is_socket, is_regular;
	size_t n_partial; /* bytes written since the last newline */

	/* Both sides', under the lock. The last of them frees it all. */
	pthread_mutex_t lock;
	int n_users;
	int wake_fd; /* an eventfd that the thread reads when it has nothing to do */
	int done_fd; /* an eventfd; -1: the owner has gone */
	bool is_idle, is_finishing, is_abandoned;
	struct block *first, *last;
	uint64_t n_queued, n_written;
	int error;
};

static void free_blocks(struct block *b)
{
	while (b) {
		struct block *next = b->next;

		free(b);
		b = next;
	}
}

static void destroy(struct outbox *o)
{
	free_blocks(o->first);
	if (o->wake_fd >= 0)
		close(o->wake_fd);
	if (o->done_fd >= 0)
		close(o->done_fd);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* To be called with the lock, which is given back: one user less. */
static void leave(struct outbox *o)
{
	bool is_last = --o->n_users == 0;

	pthread_mutex_unlock(&o->lock);
	if (is_last)
		destroy(o);
}

/* Cannot block: nobody counts an eventfd up to its end. */
static void signal_eventfd(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

/* ---- the thread ---- */

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
	uint64_t count;

	pthread_mutex_lock(&o->lock);
	while (!o->is_abandoned && !o->first && !o->is_finishing) {
		o->is_idle = true;
		pthread_mutex_unlock(&o->lock);
		while (read(o->wake_fd, &count, sizeof(count)) < 0 && errno == EINTR)
			;
		pthread_mutex_lock(&o->lock);
	}
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

/* Until there is room, or somebody says something, which is that we shall end. */
static void wait_for_room(const struct outbox *o)
{
	struct pollfd fds[] = {
		{ .fd = o->fd, .events = POLLOUT },
		{ .fd = o->wake_fd, .events = POLLIN },
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
	free_blocks(o->first);
	o->first = o->last = NULL;
	o->n_queued = 0;
	if (o->done_fd >= 0)
		signal_eventfd(o->done_fd);
	leave(o);
}

static void *run(void *arg)
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

/* ---- the owner ---- */

/* Detached, because nobody may ever wait for it; no signal is its business. */
static int start_thread(struct outbox *o)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	sigfillset(&all);
	err = pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	if (!err)
		err = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!err)
		err = pthread_attr_setsigmask_np(&attr, &all);
	if (!err)
		err = pthread_create(&thread, &attr, run, o);
	pthread_attr_destroy(&attr);
	return -err;
}

int outbox__new(struct outbox **out, int fd, bool is_lines)
{
	struct outbox *o = calloc(1, sizeof(*o));
	int err;

	if (!o) {
		close(fd);
		return -ENOMEM;
	}
	o->fd = fd;
	o->is_lines = is_lines;
	o->n_users = 2;
	pthread_mutex_init(&o->lock, NULL);
	o->wake_fd = eventfd(0, EFD_CLOEXEC);
	o->done_fd = eventfd(0, EFD_CLOEXEC);
	err = o->wake_fd < 0 || o->done_fd < 0 ? -errno : start_thread(o);
	if (err) {
		close(fd);
		destroy(o);
		return err;
	}
	*out = o;
	return 0;
}

/* With the lock. */
static void wake(struct outbox *o)
{
	if (!o->is_idle)
		return;
	o->is_idle = false;
	signal_eventfd(o->wake_fd);
}

/* Room for n bytes at the end of the queue: in what is there and in one more block. */
static int make_room(struct outbox *o, size_t n)
{
	size_t left = o->last ? o->last->room - o->last->n_bytes : 0, room;
	struct block *b;

	if (n <= left)
		return 0;
	room = n - left > BLOCK_BYTES ? n - left : BLOCK_BYTES;
	b = malloc(sizeof(*b) + room);
	if (!b)
		return -ENOMEM;
	b->next = NULL;
	b->n_bytes = 0;
	b->room = room;
	if (o->last)
		o->last->next = b;
	else
		o->first = b;
	o->last = b;
	return 0;
}

/* Returns how many of n bytes found room in b. */
static size_t fill(struct block *b, const char *bytes, size_t n)
{
	size_t left = b->room - b->n_bytes;

	if (n > left)
		n = left;
	memcpy(b->bytes + b->n_bytes, bytes, n);
	b->n_bytes += n;
	return n;
}

int outbox__put(struct outbox *o, const void *bytes, size_t n)
{
	struct block *b;
	size_t n_put;
	int err = 0;

	if (!n)
		return 0;
	pthread_mutex_lock(&o->lock);
	if (!o->error && !o->is_finishing) {
		b = o->last;
		err = make_room(o, n);
		if (!err) {
			n_put = b ? fill(b, bytes, n) : 0;
			if (n_put < n)
				fill(o->last, (const char *)bytes + n_put, n - n_put);
			o->n_queued += n;
		}
		if (o->n_queued >= BLOCK_BYTES)
			wake(o);
	}
	pthread_mutex_unlock(&o->lock);
	return err;
}

void outbox__push(struct outbox *o)
{
	pthread_mutex_lock(&o->lock);
	if (o->first)
		wake(o);
	pthread_mutex_unlock(&o->lock);
}

int outbox__finish(struct outbox *o)
{
	pthread_mutex_lock(&o->lock);
	o->is_finishing = true;
	wake(o);
	pthread_mutex_unlock(&o->lock);
	return o->done_fd;
}

void outbox__free(struct outbox *o)
{
	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	o->is_abandoned = true;
	close(o->done_fd);
	o->done_fd = -1;
	/* It may be waiting for the output as well. */
	signal_eventfd(o->wake_fd);
	leave(o);
}

int outbox__error(struct outbox *o)
{
	int error;

	pthread_mutex_lock(&o->lock);
	error = o->error;
	pthread_mutex_unlock(&o->lock);
	return error;
}

uint64_t outbox__queued(struct outbox *o)
{
	uint64_t n;

	pthread_mutex_lock(&o->lock);
	n = o->n_queued;
	pthread_mutex_unlock(&o->lock);
	return n;
}

uint64_t outbox__written(struct outbox *o)
{
	uint64_t n;

	pthread_mutex_lock(&o->lock);
	n = o->n_written;
	pthread_mutex_unlock(&o->lock);
	return n;
}
