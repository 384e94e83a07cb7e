/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process has used; see usage.h. */
#include "user/daemon/usage.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t ns_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_usec * 1000u;
}

uint64_t usage__cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return ns_of(&u.ru_utime) + ns_of(&u.ru_stime);
}

uint64_t usage__resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%*u %lu", &pages) != 1)
		pages = 0;
	fclose(f);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
