/* SPDX-License-Identifier: BSD-2-Clause */
/* The clock of all records; see clock.h. */
#include "user/common/clock.h"

#include <time.h>

uint64_t clock__now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
