/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock of all records.
 *
 * In:   /proc/self/timens_offsets.
 * Out:  the time.
 */
#ifndef HEAPSONDE_CLOCK_H
#define HEAPSONDE_CLOCK_H

#include <stdint.h>

/*
 * CLOCK_MONOTONIC of the host, ns: what bpf_ktime_get_ns() gives in the kernel, also where
 * we run in a time namespace, whose clocks are ahead or behind. Thread-safe.
 */
uint64_t clock__now_ns(void);

#endif /* HEAPSONDE_CLOCK_H */
