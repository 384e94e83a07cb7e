/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LD_PRELOAD=become.so: a program that changes its user ids when it has begun, and
 * then says whether it is dumpable, as BECOME="REAL EFFECTIVE SAVED DUMPABLE" has
 * it. exec would make the saved id the effective one, and the program dumpable, so
 * no command around it can do that.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

__attribute__((constructor)) static void become(void)
{
	const char *ids = getenv("BECOME");
	unsigned int real, effective, saved, dumpable;

	if (!ids || sscanf(ids, "%u %u %u %u", &real, &effective, &saved, &dumpable) != 4 ||
	    setresuid(real, effective, saved) || prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0)) {
		perror("become");
		_exit(127);
	}
}
