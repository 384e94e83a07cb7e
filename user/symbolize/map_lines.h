/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of /proc/PID/maps.
 *
 * In:   a descriptor of it. It is bound to the address space that the process had
 *       when it was opened, and can be read again and again.
 * Out:  the mappings that have a file behind them, for proc_maps.c and map_file.c.
 */
#ifndef HEAPSONDE_MAP_LINES_H
#define HEAPSONDE_MAP_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line with a file. The kernel numbers files here as it does in no other place. */
struct map_line {
	uint64_t start, end, offset;
	uint64_t dev, ino; /* dev: major number << 32 | minor number */
	bool is_exec;
	const char *path; /* as the kernel prints it; in map_lines.text */
};

struct map_lines {
	char *text;
	size_t n, cap;
	struct map_line *lines; /* by address */
};

/*
 * Read all of maps_fd, whose position does not matter and is not changed. *out is to
 * be freed with map_lines__free. Not by two threads at a time from one open file, not
 * even through duplicates: the kernel would tear the lines.
 * Errors (*out is empty then): -ESRCH the address space has gone, -ENOMEM, other errno.
 */
int map_lines__read(struct map_lines *out, int maps_fd);

/* Empties it; doing so twice is fine. */
void map_lines__free(struct map_lines *l);

#endif /* HEAPSONDE_MAP_LINES_H */
