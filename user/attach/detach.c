/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Detaching several probes at once, whatever happens to us meanwhile.
 *
 * In:   links that are not to be any more.
 * Out:  no probe of theirs in the target, when detach_list__run returns.
 *
 * To take a probe out the kernel writes to pages of the target, which it refuses to a
 * thread that has been killed: a SIGKILL while a link is closed leaves breakpoint and
 * semaphore behind ("failed to unregister, leaking uprobe"). A process that is ending
 * already cannot be killed any more, and what it holds is closed on the way. So each link
 * is given up by a child that does nothing but hold it and end: a holder.
 *
 * Closing a link also waits until the kernel is certain that no CPU runs its program: tens of
 * milliseconds, nearly all of it spent waiting. Holders that end together wait for the
 * same thing, so all links together take about as long as one. (Perf links take turns
 * in the kernel, and are no slower for one holder of all of them.)
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "user/attach/attachment.h"

void detach_list__add(struct detach_list *l, struct bpf_link **link)
{
	if (*link)
		l->links[l->n++] = *link;
	*link = NULL;
}

static void close_all_but(unsigned int a, unsigned int b)
{
	unsigned int low = a < b ? a : b, high = a < b ? b : a;

	if (low > 0)
		close_range(0, low - 1, 0);
	if (low + 1 < high)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, ~0u, 0);
}

/*
 * In a holder: keep one descriptor, or all if it is negative, until `go` has come to its end,
 * which it does too if we are killed. System calls only: there may have been other threads.
 */
static _Noreturn void hold(int keep, const int go[2], const int ready[2])
{
	char byte;

	if (keep < 0) {
		close(go[1]);
		close(ready[1]);
	} else {
		close_all_but((unsigned int)keep, (unsigned int)go[0]);
	}
	while (read(go[0], &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

/*
 * A holder for each link, or one for all where a link has descriptors that only libbpf knows.
 * Returns how many there are: fewer, if there are no processes to be had.
 */
static size_t start_holders(const struct detach_list *l, bool multi, const int go[2],
			    const int ready[2], pid_t *holders)
{
	size_t wanted = multi ? l->n : 1, n = 0;
	sigset_t all, before;

	/* Ctrl-C is for the whole group, and no business of theirs. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	for (size_t i = 0; i < wanted; i++) {
		long pid = syscall(SYS_clone, HOLDER_CLONE_FLAGS, NULL, NULL, NULL, 0);

		if (!pid)
			hold(multi ? bpf_link__fd(l->links[i]) : -1, go, ready);
		if (pid > 0)
			holders[n++] = (pid_t)pid;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return n;
}

static void close_links(struct detach_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		bpf_link__destroy(l->links[i]);
	l->n = 0;
}

void detach_list__run(struct detach_list *l, bool multi)
{
	pid_t holders[ATTACHMENT_LINKS];
	int go[2], ready[2];
	size_t n = 0;
	char byte;

	if (!l->n)
		return;
	if (pipe2(go, O_CLOEXEC)) {
		close_links(l);
		return;
	}
	if (!pipe2(ready, O_CLOEXEC)) {
		n = start_holders(l, multi, go, ready, holders);
		close(ready[1]);
		/* At its end when each of them holds nothing but its own. */
		while (read(ready[0], &byte, 1) < 0 && errno == EINTR)
			;
		close(ready[0]);
	}
	/* What nobody holds goes here and now. */
	close_links(l);
	close(go[0]);
	close(go[1]);
	for (size_t i = 0; i < n; i++)
		while (waitpid(holders[i], NULL, __WALL) < 0 && errno == EINTR)
			;
}
