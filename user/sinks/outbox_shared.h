/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the two sides of an outbox share; of outbox.c (the owner's side) and
 * outbox_thread.c only.
 *
 * In:   whole blocks, queued by the owner.
 * Out:  what the thread makes of them: bytes written, an error, the end.
 */
#ifndef HEAPSONDE_OUTBOX_SHARED_H
#define HEAPSONDE_OUTBOX_SHARED_H

#include <pthread.h>

#include "user/sinks/outbox.h"

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
	pthread_cond_t wanted; /* there is something to do for the thread */
	int abandon_fd;        /* an eventfd, readable: what the thread waits for is not wanted */
	int done_fd;           /* an eventfd; -1: the owner has gone */
	bool is_finishing, is_abandoned, is_done;
	struct block *first, *last;
	uint64_t n_queued, n_written;
	int error;
};

/* The thread's function; arg is the outbox. */
void *outbox_thread__run(void *arg);

/* With the lock, which is given back: one user less. */
void outbox_shared__leave(struct outbox *o);

/* Release what no thread uses; without the lock. */
void outbox_shared__destroy(struct outbox *o);

void outbox_shared__free_blocks(struct block *b);

/* Make an eventfd readable. Cannot block: nobody counts one up to its end. */
void outbox_shared__signal(int fd);

#endif /* HEAPSONDE_OUTBOX_SHARED_H */
