/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of heapsonde there is in the kernel: BPF programs, maps and links, of every
 * heapsonde that runs or has run, which processes hold them, and for which they were made.
 *
 * In:   the kernel's tables of BPF objects; /proc/PID/fdinfo.
 * Out:  struct bpf_objects, for user/attach/residue.h.
 *
 * An object is known by what it is and not by who made it, so that those of other
 * versions are found as well: a program by its name, a link by its program, a map by
 * the programs that use it or by its type information. A ring buffer without a program
 * has neither and is not found.
 */
#ifndef HEAPSONDE_BPF_OBJECTS_H
#define HEAPSONDE_BPF_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/common/error.h"

enum bpf_kind { BPF_KIND_PROGRAM, BPF_KIND_MAP, BPF_KIND_LINK };
#define BPF_KINDS 3

struct bpf_thing {
	enum bpf_kind kind;
	uint32_t id;   /* the kernel's; each kind has its own */
	uint32_t prog; /* a link's program */
	char name[16]; /* a link has that of its program */
	pid_t holder;  /* a process that has it open; 0: none was found */
	pid_t target;  /* the process that it was made for, as its maker knew it; 0: not known,
			  or in_use */
	bool in_use;   /* by a process that has a target open: a heapsonde at work */
};

/* Far more maps than one of our programs uses. */
#define BPF_MAPS_MAX 64

/* A process that has some of them open. */
struct bpf_holder {
	pid_t pid;
	char *command;  /* fit to be printed */
	pid_t *targets; /* the processes that it has a pidfd of; -1: one that has ended */
	size_t n_targets;
	unsigned n[BPF_KINDS]; /* how many of each kind */
};

struct bpf_objects {
	struct bpf_thing *things;
	size_t n_things;
	struct bpf_holder *holders;
	size_t n_holders;
};

/*
 * Look at the kernel and, if there is anything, for who holds it. *out is filled in
 * also on failure, as far as it went, and is to be freed by bpf_objects__free. What
 * comes or goes meanwhile may be missing. Errors: -EPERM only root may see them, -ENOMEM,
 * others of bpf(2), with a text.
 */
int bpf_objects__read(struct bpf_objects *out, struct hs_error *err);

/* Frees what is in it; a zeroed one is fine. */
void bpf_objects__free(struct bpf_objects *o);

/* "program", "map", "link". */
const char *bpf_kind__name(enum bpf_kind kind);

#endif /* HEAPSONDE_BPF_OBJECTS_H */
