/* SPDX-License-Identifier: BSD-2-Clause */
/* See map_file.h. */
#include "user/symbolize/map_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PAGE_BYTES 4096u

static bool stat_is(const struct stat *st, const struct map_line *l)
{
	return st->st_ino == l->ino &&
	       ((uint64_t)major(st->st_dev) << 32 | minor(st->st_dev)) == l->dev;
}

/*
 * Open a regular file for reading. O_PATH first: opening a device or a fifo can have
 * effects, or never return. l: stat must say the same as this line; NULL: need not.
 */
static int open_regular(int dirfd, const char *path, const struct map_line *l)
{
	char again[32];
	struct stat st;
	int fd, path_fd = openat(dirfd, path, O_PATH | O_CLOEXEC);

	if (path_fd < 0)
		return -errno;
	if (fstat(path_fd, &st) || !S_ISREG(st.st_mode) || (l && !stat_is(&st, l))) {
		close(path_fd);
		return -ENOENT;
	}
	snprintf(again, sizeof(again), "/proc/self/fd/%d", path_fd);
	fd = open(again, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		fd = -errno;
	close(path_fd);
	return fd;
}

/* The line of our own maps that holds addr: does it show the same file as l? */
static bool own_line_is(uint64_t addr, const struct map_line *l)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct map_lines own;
	bool same = false;

	if (fd < 0)
		return false;
	if (!map_lines__read(&own, fd)) {
		for (size_t i = 0; i < own.n; i++)
			if (own.lines[i].start <= addr && addr < own.lines[i].end)
				same = own.lines[i].dev == l->dev && own.lines[i].ino == l->ino;
		map_lines__free(&own);
	}
	close(fd);
	return same;
}

/* Does the kernel number the open file in maps as in the line? Map it, and look. */
static bool maps_say(int fd, const struct map_line *l)
{
	struct stat st;
	void *page;
	bool same;

	if (!fstat(fd, &st) && stat_is(&st, l))
		return true; /* mostly they agree, which spares us that */
	page = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
	if (page == MAP_FAILED)
		return false;
	same = own_line_is((uint64_t)(uintptr_t)page, l);
	munmap(page, PAGE_BYTES);
	return same;
}

/* Open one of /proc's links that lead to a file whatever its path is. */
static int open_link(const struct proc_files *files, const char *name, const struct map_line *l)
{
	int fd = open_regular(files->proc_fd, name, NULL);

	if (fd < 0 || maps_say(fd, l))
		return fd;
	close(fd);
	return -ENOENT;
}

static int open_exe(const struct proc_files *files, const struct map_line *l)
{
	int fd = open_link(files, "exe", l);
	struct stat st;

	if (fd < 0)
		return fd;
	if (!fstat(fd, &st) && st.st_dev == files->exe_dev && st.st_ino == files->exe_ino)
		return fd;
	close(fd);
	return -ENOENT;
}

int map_file__open(const struct proc_files *files, const char *exe_path, const struct map_line *l)
{
	char name[PATH_MAX + 8];
	int fd;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, l->start, l->end);
	fd = open_link(files, name, l);
	if (fd < 0 && strcmp(l->path, exe_path) == 0)
		fd = open_exe(files, l);
	if (fd < 0 && l->path[0] == '/' && strlen(l->path) < PATH_MAX) {
		snprintf(name, sizeof(name), "root%s", l->path);
		fd = open_regular(files->proc_fd, name, l);
	}
	return fd;
}
