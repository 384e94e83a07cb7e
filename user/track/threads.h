/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which domain an OS thread runs for.
 *
 * In:   the thread and the domain of each event.
 * Out:  whether that is news: the thread is new, or has changed sides. The kernel
 *       numbers threads anew when they are gone, so one number may run for several
 *       domains one after the other.
 *
 * The table holds at most THREADS_MAX threads; then it is emptied, and what was
 * known is news again. Those of domains that have ended are forgotten before that, so it
 * grows with the threads of a program that live, and not with all that ever did.
 */
#ifndef HEAPSONDE_THREADS_H
#define HEAPSONDE_THREADS_H

#include <stdint.h>

#define THREADS_MAX 65536

struct thread_table;

/* Errors: -ENOMEM. */
int thread_table__new(struct thread_table **out);

/* NULL is fine. */
void thread_table__free(struct thread_table *t);

/*
 * Thread tid runs for domain now. 1: that is news; 0: known, or tid is 0, which is
 * no thread. Errors: -ENOMEM.
 */
int thread_table__see(struct thread_table *t, uint32_t tid, uint32_t domain);

/*
 * Domain has terminated: no event of it will come. Its threads are forgotten, if not at
 * once. NULL is fine.
 */
void thread_table__end_domain(struct thread_table *t, uint32_t domain);

#endif /* HEAPSONDE_THREADS_H */
