/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For which process a BPF object of a heapsonde that has gone was made: the third part of
 * bpf_objects.h.
 *
 * In:   struct bpf_objects with its things and holders; what the programs were told before they
 * were loaded (cfg_tgid in bpf/maps.h), which is read-only ever since. Out:  the same with the
 * things' targets.
 */
#ifndef HEAPSONDE_BPF_TARGETS_H
#define HEAPSONDE_BPF_TARGETS_H

#include "user/attach/bpf_objects.h"

/*
 * Fill in `target` of the things that no heapsonde at work has. What cannot be found out stays 0: a
 * map that has outlived its programs bears no sign of it, and an object may go at any time. 0 or
 * -ENOMEM.
 */
int bpf_targets__find(struct bpf_objects *o);

#endif /* HEAPSONDE_BPF_TARGETS_H */
