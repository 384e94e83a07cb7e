/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening the file that a target has mapped, and no other.
 *
 * In:   a line of the target's maps; its directory in /proc.
 * Out:  an open file, for proc_maps.c.
 *
 * We may read any file, the target's owner may not, and what we read is shown to him.
 * He chooses what is mapped, where, and what stands at a path. But a file that the
 * target has mapped is one that he could open. So before a file is looked at it must
 * be certain that it is the one in the line:
 *
 *	map_files/RANGE   of the address space that the process has now, which is
 *	exe               another one after an exec. They lead to a file without its
 *	                  path. Compared as the kernel numbers files in maps: stat has
 *	                  other numbers on btrfs, and on overlayfs sometimes.
 *	root/PATH         for those who may not use map_files (it wants
 *	                  CAP_CHECKPOINT_RESTORE). At the path may be anything by now.
 *	                  Compared by the numbers of stat: on btrfs those in maps are
 *	                  not unique, and everybody can make subvolumes there.
 *
 * A line is as of when it was read, and numbers are reused: proc_maps.c reads the maps
 * again while the file is held open. If the line is still there, both exist at one
 * time, and equal numbers mean one file.
 */
#ifndef HEAPSONDE_MAP_FILE_H
#define HEAPSONDE_MAP_FILE_H

#include <sys/types.h>

#include "user/symbolize/map_lines.h"

/* A target's files; see struct target in user/attach/target.h. */
struct proc_files {
	int proc_fd, maps_fd, mem_fd;
	dev_t exe_dev;
	ino_t exe_ino;
};

/*
 * Open the file behind a line for reading. exe_path: what /proc/PID/exe points to.
 * Returns a descriptor of a regular file, owned by the caller, or a negative errno
 * (-ENOENT: there is one, but not that one).
 */
int map_file__open(const struct proc_files *files, const char *exe_path, const struct map_line *l);

#endif /* HEAPSONDE_MAP_FILE_H */
