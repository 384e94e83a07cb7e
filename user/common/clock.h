/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock of all records.
 *
 * In:   nothing.
 * Out:  the time.
 */
#ifndef HEAPSONDE_CLOCK_H
#define HEAPSONDE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC, ns: what bpf_ktime_get_ns() gives in the kernel. */
uint64_t clock__now_ns(void);

#endif /* HEAPSONDE_CLOCK_H */
