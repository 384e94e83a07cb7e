/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes hold BPF objects of heapsonde, and which processes they have open
 * as targets: the other half of bpf_objects.h.
 *
 * In:   struct bpf_objects with its things; /proc/PID/fdinfo.
 * Out:  the same with holders.
 */
#ifndef HEAPSONDE_BPF_HOLDERS_H
#define HEAPSONDE_BPF_HOLDERS_H

#include "user/attach/bpf_objects.h"

/*
 * Fill in o->holders, and holder and in_use of o->things. Processes that end
 * meanwhile, or may not be looked at, hold nothing. 0, -ENOMEM, or a negative errno: /proc cannot
 * be read.
 */
int bpf_holders__find(struct bpf_objects *o);

#endif /* HEAPSONDE_BPF_HOLDERS_H */
