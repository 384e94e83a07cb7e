/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `heapsonde stat` is made of.
 *
 *   cmd_stat.c       the command; the counters read by itself
 *   stat_daemon.c    the counters read by the daemon
 *   stat_columns.c   the lines
 */
#ifndef HEAPSONDE_STAT_H
#define HEAPSONDE_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/records.h"

struct stat_options {
	pid_t pid;
	double interval_s;
	int count;          /* 0: until interrupted */
	const char *socket; /* of the daemon, if it is to do it; in argv */
};

/* What an interval added to a domain. */
struct stat_line {
	uint32_t domain; /* unique id */
	bool is_terminated;
	struct hs_counts added;
};

/* What was added from *before to *now. */
struct hs_counts stat__difference(const struct hs_counts *now, const struct hs_counts *before);

/* Print a line; n_lines, 0 at first, counts them for the heading. */
void stat_columns__print(const struct stat_line *line, int *n_lines);

/* Flush stdout. 0 or a negative errno with a text. */
struct hs_error;
int stat_columns__flush(struct hs_error *err);

/* `stat` through the daemon. Returns the exit status; errors have been printed. */
int stat_daemon__run(const struct stat_options *o);

#endif /* HEAPSONDE_STAT_H */
