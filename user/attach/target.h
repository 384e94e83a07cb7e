/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that can be attached to: what it runs, where its probes are, and
 * what its registry says.
 *
 * In:   a PID, /proc, the ELF notes of the executable (user/attach/notes.h).
 * Out:  struct target, for user/attach/attach.h (which attaches) and
 *       user/symbolize (which needs the frame-descriptor layout).
 */
#ifndef HEAPSONDE_TARGET_H
#define HEAPSONDE_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/abi.h"
#include "user/common/error.h"

/* One probe of the executable. Offsets are file offsets; 0: not there. */
struct probe_site {
	uint64_t offset;     /* of the nop */
	uint64_t sem_offset; /* of the 16-bit semaphore */
};

/* All the probes that a heapsonde runtime has. */
struct probe_set {
	struct probe_site alloc[SONDE_TIERS];
	struct probe_site stack[SONDE_STACK_CLASSES];
	struct probe_site minor_end, major_end, compact;
	struct probe_site domain_spawn, domain_terminate, exit;
	uint64_t registry_vaddr; /* link-time address of struct sonde_registry */
};

enum target_kind {
	TARGET_NOT_OCAML = 0,
	TARGET_PROBED,   /* native OCaml 5 with our probes: attachable */
	TARGET_NATIVE,   /* native OCaml without the probes */
	TARGET_BYTECODE, /* ocamlrun or a bytecode executable */
};

struct target {
	pid_t pid;
	int pidfd; /* readable when the process has ended */
	uid_t uid;
	enum target_kind kind;
	char *command;     /* command line, spaces between arguments */
	char *exe;         /* what /proc/PID/exe points to, for people */
	char exe_proc[64]; /* "/proc/PID/exe", for opening and attaching */
	dev_t exe_dev;
	ino_t exe_ino;
	uint64_t load_bias;             /* run-time address - link-time address */
	uint64_t entry;                 /* run-time address of the entry point: an exec moves it */
	struct probe_set probes;        /* if TARGET_PROBED */
	struct sonde_registry registry; /* if TARGET_PROBED */
};

/*
 * Look at process pid. On success *out (owned by the caller) has kind set; only
 * for TARGET_PROBED are probes and registry filled in, and then they have been
 * checked (ABI version, sizes, all probes there).
 * Errors: -ESRCH no such process (also: a thread's id, a zombie), -EACCES/-EPERM
 * not readable, -EPROTO probes damaged or of another ABI version, -ENOEXEC
 * executable unreadable, -ENOMEM.
 *
 * Before the program's first instruction (record -- CMD) the registry is what the
 * file says: its `domains` may still be unrelocated, which target__domains knows.
 */
int target__open(struct target **out, pid_t pid, struct hs_error *err);

struct exe_cache;

/*
 * As target__open, but each executable file is looked into only once per cache
 * (user/attach/exe.h; NULL: no cache). For looking at many processes.
 */
int target__open_cached(struct target **out, pid_t pid, struct exe_cache *cache,
			struct hs_error *err);

/*
 * As target__open, but any kind except TARGET_PROBED is an error whose text says
 * what to do: -ENOEXEC (not OCaml, bytecode) or -ENOENT (no probes: relink).
 */
int target__open_probed(struct target **out, pid_t pid, struct hs_error *err);

/* NULL is fine. */
void target__free(struct target *t);

/*
 * Read the domains that live now. *out: array owned by the caller (free()).
 * Returns their number or a negative errno. Racy by nature: a domain may come or
 * go while this reads.
 */
int target__domains(const struct target *t, struct sonde_domain_info **out);

/*
 * Read the counters of a domain out of target__domains, as of its last collection.
 * 0 or a negative errno (the domain may have gone).
 */
int target__counts(const struct target *t, const struct sonde_domain_info *domain,
		   struct sonde_gc *out);

/* Does the process still run the executable it ran at target__open? */
bool target__same_exe(const struct target *t);

/*
 * Does it certainly run another program by now (or the same one anew)? False
 * while it runs the same one, and also when it has ended.
 */
bool target__has_execed(const struct target *t);

/*
 * Read exactly len bytes at addr of the process without stopping it
 * (process_vm_readv). 0 or a negative errno; a short read is -EFAULT.
 */
int target__read(pid_t pid, uint64_t addr, void *buf, size_t len);

#endif /* HEAPSONDE_TARGET_H */
