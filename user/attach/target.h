/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that can be attached to: what it runs, where its probes are, and
 * what its registry says.
 *
 * In:   a PID, /proc, the ELF notes of the executable (user/attach/notes.h).
 * Out:  struct target, for user/attach/attach.h (which attaches), user/symbolize
 *       (which reads names), and user/daemon/peer.h (which asks whose it is).
 *
 * A process can execute another program at any time, perhaps with the rights of
 * another user, and its PID can pass to another process. So it is opened once, and
 * everything later goes through the descriptors in struct target, which keep to what
 * was opened:
 *
 *	pidfd, proc_fd     the process; nothing once it has gone
 *	exe_fd             the executable file
 *	mem_fd, maps_fd    the address space, which an exec leaves behind: from then
 *	                   on they give nothing. (Another process may share it,
 *	                   clone(CLONE_VM), and keep it alive; it is still the
 *	                   address space that was opened.)
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
	uint64_t sem_vaddr;  /* the same as a link-time address */
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
	int pidfd;       /* readable when the process has ended */
	int proc_fd;     /* /proc/PID, O_PATH: the process, whatever it runs by now */
	int exe_fd;      /* the executable, open for reading; -1: a kernel thread */
	int mem_fd;      /* its memory, if TARGET_PROBED; -1: may not be read */
	int maps_fd;     /* /proc/PID/maps of the same address space; -1 as mem_fd. Use pread. */
	uid_t uid;       /* effective */
	pid_t inner_pid; /* its PID in its own PID namespace, mostly the same; 0: unknown */
	enum target_kind kind;
	char *command;     /* command line, spaces between arguments */
	char *exe;         /* what /proc/PID/exe points to, for people */
	char exe_proc[64]; /* a path to exe_fd, for attaching; good in this process only */
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
 * executable unreadable, -ENODEV /proc is not usable, -ENOMEM.
 *
 * Before the program's first instruction (record -- CMD) the registry is what the
 * file says: its `domains` may still be unrelocated, which target__domains knows.
 */
int target__open(struct target **out, pid_t pid, struct hs_error *err);

struct exe_cache;

/*
 * As target__open, but each executable file is looked into only once per cache
 * (user/attach/exe.h; NULL: no cache). For looking at many processes. With a cache /proc
 * is not checked each time: call proc__check_mounted before.
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
 * Why t is not there any more, once that was noticed: sets *err, "process N has ended" or "has
 * executed another program", and returns its code, -ESRCH.
 */
int target__gone(const struct target *t, struct hs_error *err);

/*
 * Is mem_fd the memory that the process has now? False after any exec since
 * target__open, even of the same program at the same addresses, and also if it
 * cannot be found out.
 */
bool target__same_memory(const struct target *t);

/*
 * Read exactly len bytes at addr of the address space that was opened, without
 * stopping anybody. 0 or a negative errno: -EFAULT not all of it is there, -ESRCH
 * the address space has gone (the process has ended or executed something), -EPERM
 * reading its memory is forbidden.
 */
int target__read(const struct target *t, uint64_t addr, void *buf, size_t len);

#endif /* HEAPSONDE_TARGET_H */
