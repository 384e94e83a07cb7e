/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Detaching several probes at once.
 *
 * In:   links that are not to be any more.
 * Out:  no probe of theirs in the target, when detach_list__run returns.
 *
 * Closing a link waits until the kernel is certain that no CPU runs its program: tens
 * of milliseconds, nearly all of it spent waiting. Threads that wait together wait for
 * the same thing, so all links together take about as long as one. (Perf links take
 * turns in the kernel, and are no slower for it.)
 */
#include <pthread.h>
#include <signal.h>

#include "user/attach/attachment.h"

#define THREAD_STACK_BYTES (64u << 10)

static void *close_link(void *link)
{
	bpf_link__destroy(link);
	return NULL;
}

/* 0 or a positive errno. No signal is the thread's business. */
static int start_thread(pthread_t *thread, struct bpf_link *link)
{
	pthread_attr_t attr;
	sigset_t all;
	int err = pthread_attr_init(&attr);

	if (err)
		return err;
	sigfillset(&all);
	err = pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	if (!err)
		err = pthread_attr_setsigmask_np(&attr, &all);
	if (!err)
		err = pthread_create(thread, &attr, close_link, link);
	pthread_attr_destroy(&attr);
	return err;
}

void detach_list__add(struct detach_list *l, struct bpf_link **link)
{
	if (*link)
		l->links[l->n++] = *link;
	*link = NULL;
}

void detach_list__run(struct detach_list *l)
{
	pthread_t threads[ATTACHMENT_LINKS];
	size_t n_threads = 0;

	/* The last is ours, and so is one for which there is no thread to be had. */
	for (size_t i = 0; i < l->n; i++)
		if (i == l->n - 1 || start_thread(&threads[n_threads], l->links[i]))
			bpf_link__destroy(l->links[i]);
		else
			n_threads++;
	for (size_t i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	l->n = 0;
}
