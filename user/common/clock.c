/* SPDX-License-Identifier: BSD-2-Clause */
/* The clock of all records; see clock.h. */
#include "user/common/clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define NS_PER_S 1000000000

/* What a time namespace adds to the host's clock; 0 where there are none. */
static int64_t namespace_offset_ns;

/* "monotonic SECONDS NANOSECONDS", where the seconds may be negative. */
static void read_offset(void)
{
	FILE *f = fopen("/proc/self/timens_offsets", "re");
	int64_t seconds, ns;
	char line[128];

	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "monotonic %" SCNd64 " %" SCNd64, &seconds, &ns) == 2)
			namespace_offset_ns = seconds * NS_PER_S + ns;
	fclose(f);
}

uint64_t clock__now_ns(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct timespec ts;

	pthread_once(&once, read_offset);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)(ts.tv_sec * NS_PER_S + ts.tv_nsec - namespace_offset_ns);
}
