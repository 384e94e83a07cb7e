/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is anything left of heapsondes that have gone: in processes, in the kernel?
 *
 * In:   bpf_objects.h (the kernel's objects and who holds them), probe_state.h (what
 *       stands at the probes of a process).
 * Out:  struct residue, for `heapsonde residue`.
 *
 * What a heapsonde at work holds is none. And the kernel takes its time to clear away after
 * one that was killed: what is there at the first look counts as left only if it is still there at
 * all the later ones, for as long as one cares to wait.
 */
#ifndef HEAPSONDE_RESIDUE_H
#define HEAPSONDE_RESIDUE_H

#include <stdbool.h>
#include <stddef.h>

#include "user/attach/bpf_objects.h"
#include "user/attach/probe_state.h"
#include "user/attach/target.h"
#include "user/common/error.h"

/* Clearing away eight links takes a second on a busy machine. */
#define RESIDUE_WAIT_S 10.0

/* A process that was looked at. */
struct residue_process {
	const struct target *target; /* borrowed */
	struct probe_state probes[PROBE_STATES_MAX];
	size_t n_probes;  /* 0: it ended, or could not be read: see `failed` */
	unsigned n_up;    /* semaphores that are not 0 */
	unsigned n_armed; /* probes whose code is not the file's */
	bool attached;    /* so that is somebody's who is attached to it, or to another process
			     of the same executable, whose child it may be */
	bool is_left[PROBE_STATES_MAX]; /* it was touched at each look, with nobody attached */
	size_t n_left;
	int failed; /* why its memory could not be read, a negative errno */
	struct hs_error why;
};

struct residue {
	struct residue_process *processes;
	size_t n_processes;
	bool all;                   /* whatever process it was made for */
	struct bpf_objects objects; /* as at the last look */
	bool *is_left;              /* of objects.things, in their order */
	size_t n_left;              /* things and probes together */
	int objects_failed;         /* why the kernel's objects could not be seen, or 0 */
	struct hs_error objects_why;
};

/*
 * Look at n_targets processes (borrowed, they must outlive *out) and at the kernel,
 * again and again for wait_s seconds while there is something left. Of what is in the kernel all is
 * of interest, or without `all` only what was made for these processes, or for who knows which.
 * *out is owned by the caller.
 * What could not be looked at is in *out with its reason; a process that has ended is no failure.
 * Errors: -ENOMEM.
 */
int residue__find(struct residue **out, struct target *const *targets, size_t n_targets, bool all,
		  double wait_s, struct hs_error *err);

/* NULL is fine. */
void residue__free(struct residue *r);

/* Has holder h this process open? */
bool bpf_holder__has(const struct bpf_holder *h, pid_t pid);

#endif /* HEAPSONDE_RESIDUE_H */
