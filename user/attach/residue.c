/* SPDX-License-Identifier: BSD-2-Clause */
/* See residue.h. */
#include "user/attach/residue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "user/common/clock.h"

#define PAUSE_NS (100 * 1000 * 1000)

bool bpf_holder__has(const struct bpf_holder *h, pid_t pid)
{
	for (size_t i = 0; i < h->n_targets; i++)
		if (h->targets[i] == pid)
			return true;
	return false;
}

/* Does one of the holder's processes run this executable? */
static bool has_file_open(const struct bpf_holder *h, const struct target *t)
{
	char path[64];
	struct stat st;

	for (size_t i = 0; i < h->n_targets; i++) {
		snprintf(path, sizeof(path), "/proc/%d/exe", (int)h->targets[i]);
		if (!stat(path, &st) && st.st_dev == t->exe_dev && st.st_ino == t->exe_ino)
			return true;
	}
	return false;
}

/*
 * A forked child has its parent's probes and semaphores, until the parent's heapsonde
 * detaches; so whoever is attached to the same executable counts.
 */
static bool is_attached(const struct bpf_objects *o, const struct target *t)
{
	for (size_t i = 0; i < o->n_holders; i++)
		if (bpf_holder__has(&o->holders[i], t->pid) || has_file_open(&o->holders[i], t))
			return true;
	return false;
}

/* ---- one look ----------------------------------------------------------------------- */

/* first: of all looks. Afterwards what has been untouched once is not left. */
static void look_at_process(struct residue_process *p, const struct bpf_objects *o, bool first)
{
	int n = probe_states__read(p->target, p->probes, &p->why);

	p->n_probes = n > 0 ? (size_t)n : 0;
	p->failed = n < 0 && n != -ESRCH ? n : 0;
	p->n_up = p->n_armed = 0;
	p->n_left = 0;
	p->attached = is_attached(o, p->target);
	for (size_t i = 0; i < p->n_probes; i++) {
		const struct probe_state *s = &p->probes[i];

		p->n_up += s->semaphore != 0;
		p->n_armed += s->is_armed;
		p->is_left[i] =
			probe_state__is_touched(s) && !p->attached && (first || p->is_left[i]);
		p->n_left += p->is_left[i];
	}
}

static bool was_left(const struct residue *before, const struct bpf_thing *t)
{
	for (size_t i = 0; i < before->objects.n_things; i++) {
		const struct bpf_thing *b = &before->objects.things[i];

		if (b->kind == t->kind && b->id == t->id)
			return before->is_left[i];
	}
	return false;
}

/*
 * Is it of interest? What was made for other processes than those that were asked about is not. A
 * heapsonde in a container knows a process by its PID in there.
 */
static bool concerns(const struct residue *r, const struct bpf_thing *t)
{
	for (size_t i = 0; i < r->n_processes; i++) {
		const struct target *p = r->processes[i].target;

		if (t->target == p->pid || t->target == p->inner_pid)
			return true;
	}
	return r->all || !t->target;
}

/* As look_at_process, for the kernel's objects. */
static int look_at_kernel(struct residue *r, bool first)
{
	struct residue before = *r;
	int ret;

	ret = bpf_objects__read(&r->objects, &r->objects_why);
	r->is_left = calloc(r->objects.n_things + 1, sizeof(*r->is_left));
	r->objects_failed = ret;
	if (!r->is_left)
		ret = -ENOMEM;
	for (size_t i = 0; r->is_left && i < r->objects.n_things; i++) {
		const struct bpf_thing *t = &r->objects.things[i];

		r->is_left[i] =
			!ret && !t->in_use && concerns(r, t) && (first || was_left(&before, t));
		r->n_left += r->is_left[i];
	}
	bpf_objects__free(&before.objects);
	free(before.is_left);
	return ret == -ENOMEM ? ret : 0;
}

static int look(struct residue *r, bool first)
{
	int ret;

	r->n_left = 0;
	ret = look_at_kernel(r, first);
	for (size_t i = 0; !ret && i < r->n_processes; i++) {
		look_at_process(&r->processes[i], &r->objects, first);
		r->n_left += r->processes[i].n_left;
	}
	return ret;
}

/* ---- all looks ------------------------------------------------------------------------ */

int residue__find(struct residue **out, struct target *const *targets, size_t n_targets, bool all,
		  double wait_s, struct hs_error *err)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct residue *r = calloc(1, sizeof(*r));
	uint64_t start = clock__now_ns();
	int ret;

	if (!r)
		return hs_error__set(err, -ENOMEM, "out of memory");
	r->all = all;
	r->processes = calloc(n_targets + 1, sizeof(*r->processes));
	ret = r->processes ? 0 : -ENOMEM;
	for (size_t i = 0; !ret && i < n_targets; i++)
		r->processes[r->n_processes++].target = targets[i];
	if (!ret)
		ret = look(r, true);
	/* Who cannot see the holders cannot tell what waiting is good for. */
	while (!ret && r->n_left && !r->objects_failed &&
	       (double)(clock__now_ns() - start) < wait_s * 1e9) {
		nanosleep(&pause, NULL);
		ret = look(r, false);
	}
	if (ret) {
		residue__free(r);
		return hs_error__set(err, ret, "out of memory");
	}
	*out = r;
	return 0;
}

void residue__free(struct residue *r)
{
	if (!r)
		return;
	bpf_objects__free(&r->objects);
	free(r->is_left);
	free(r->processes);
	free(r);
}
