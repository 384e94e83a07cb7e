/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registry of a process, and its memory: the reading half of target.h.
 *
 * In:   a target whose memory is open.
 * Out:  struct sonde_registry, checked, and what it points to, for target.c.
 */
#ifndef HEAPSONDE_REGISTRY_H
#define HEAPSONDE_REGISTRY_H

#include "user/attach/target.h"

#define HOW_TO_RELINK                                                                              \
	"install them with `heapsonde-variant --install`, then relink with "                       \
	"OCAMLPARAM='_,runtime-variant=_sonde' or `ocamlopt -runtime-variant _sonde`"

/*
 * Fill in t->registry and check it and the set of probes; t->probes and load_bias
 * are there already. in_file: the registry as the executable has it, which has to do
 * where memory may not be read (t->mem_fd is -1). Errors: -EPROTO damaged, or of
 * another version; -ESRCH the process has ended.
 */
int registry__read(struct target *t, const struct sonde_registry *in_file, struct hs_error *err);

/*
 * Has the kernel counted at the semaphore of a probe that has been attached? It puts
 * probes into a file, and says nothing if the process runs another one: on overlayfs a
 * change to the file, of its mode even, makes a copy in the upper layer, to which all
 * paths lead from then on, those in /proc/PID too. What runs already stays with the old
 * one. 0, also where the count cannot be read: the process has ended, which others
 * notice, or its memory is forbidden. -EOPNOTSUPP: it has not.
 */
int registry__check_counted(const struct target *t, const struct probe_site *site,
			    struct hs_error *err);

#endif /* HEAPSONDE_REGISTRY_H */
