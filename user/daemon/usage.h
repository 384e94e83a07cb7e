/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this process has used, for the metrics: of the supervisor and of each worker.
 *
 * In:   getrusage(2), /proc/self/statm.
 * Out:  numbers.
 */
#ifndef HEAPSONDE_USAGE_H
#define HEAPSONDE_USAGE_H

#include <stdint.h>

/* CPU time of all its threads, in user and kernel mode, in ns. */
uint64_t usage__cpu_ns(void);

/* Resident memory in bytes; 0: unknown. */
uint64_t usage__resident_bytes(void);

#endif /* HEAPSONDE_USAGE_H */
