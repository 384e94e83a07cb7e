/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue and the thread that writes it; see outbox.h.
 *
 * In:   records, from the owner.
 * Out:  blocks of bytes, queued for the thread (outbox_thread.c).
 */
#include "user/sinks/outbox_shared.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Bytes are queued in blocks of this size, and written when there are so many. */
#define BLOCK_BYTES (64u << 10)
#define THREAD_STACK_BYTES (128u << 10)

/* ---- of both sides ---- */

void outbox_shared__free_blocks(struct block *b)
{
	while (b) {
		struct block *next = b->next;

		free(b);
		b = next;
	}
}

void outbox_shared__destroy(struct outbox *o)
{
	outbox_shared__free_blocks(o->first);
	if (o->abandon_fd >= 0)
		close(o->abandon_fd);
	if (o->done_fd >= 0)
		close(o->done_fd);
	pthread_cond_destroy(&o->wanted);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

void outbox_shared__leave(struct outbox *o)
{
	bool is_last = --o->n_users == 0;

	pthread_mutex_unlock(&o->lock);
	if (is_last)
		outbox_shared__destroy(o);
}

void outbox_shared__signal(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return;
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
		err = pthread_create(&thread, &attr, outbox_thread__run, o);
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
	pthread_cond_init(&o->wanted, NULL);
	o->abandon_fd = eventfd(0, EFD_CLOEXEC);
	o->done_fd = eventfd(0, EFD_CLOEXEC);
	err = o->abandon_fd < 0 || o->done_fd < 0 ? -errno : start_thread(o);
	if (err) {
		close(fd);
		outbox_shared__destroy(o);
		return err;
	}
	*out = o;
	return 0;
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
			pthread_cond_signal(&o->wanted);
	}
	pthread_mutex_unlock(&o->lock);
	return err;
}

void outbox__push(struct outbox *o)
{
	pthread_mutex_lock(&o->lock);
	if (o->first)
		pthread_cond_signal(&o->wanted);
	pthread_mutex_unlock(&o->lock);
}

int outbox__finish(struct outbox *o)
{
	pthread_mutex_lock(&o->lock);
	o->is_finishing = true;
	pthread_cond_signal(&o->wanted);
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
	pthread_cond_signal(&o->wanted);
	/* It may be waiting for the output instead. */
	outbox_shared__signal(o->abandon_fd);
	outbox_shared__leave(o);
}

bool outbox__is_done(struct outbox *o)
{
	bool is_done;

	pthread_mutex_lock(&o->lock);
	is_done = o->is_done;
	pthread_mutex_unlock(&o->lock);
	return is_done;
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
