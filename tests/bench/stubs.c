/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the benchmark programs need from C: clocks, and the identity of the thread.
 *
 * In:   nothing.
 * Out:  numbers as OCaml integers; none of these functions allocates.
 */
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>

#include <caml/mlvalues.h>

static value clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return Val_long(t.tv_sec * 1000000000L + t.tv_nsec);
}

/* CPU time of the calling thread. */
value bench_thread_cpu_ns(value unit)
{
	(void)unit;
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* CPU time of the process, all threads. */
value bench_process_cpu_ns(value unit)
{
	(void)unit;
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* The clock of the records. */
value bench_now_ns(value unit)
{
	(void)unit;
	return clock_ns(CLOCK_MONOTONIC);
}

value bench_gettid(value unit)
{
	(void)unit;
	return Val_long(gettid());
}
