/* SPDX-License-Identifier: BSD-2-Clause */
/* See proc_maps.h. */
#include "user/symbolize/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_MAPPINGS (1u << 17)
#define MAX_FILES 256
#define MAX_SYMBOLS ((size_t)8 << 20) /* read, over all files */

#define MS ((uint64_t)1000000) /* nanoseconds */
#define REFRESH_MIN (100 * MS)
#define REFRESH_MAX (5000 * MS)
#define REFRESH_SHARE 20 /* spend at most 1/20 of the time on it */

/* A file that is mapped, whether it could be opened or not. */
struct mapped_file {
	uint64_t dev, ino;
	struct elf_image *image; /* NULL: could not be opened; tried again at a refresh */
};

/* A line of /proc/PID/maps with a file behind it. */
struct map_line {
	uint64_t start, end, offset, dev, ino;
	bool is_exec;
};

struct proc_maps {
	int proc_fd;              /* borrowed */
	FILE *maps;               /* bound to the address space, not to the PID */
	struct page_cache *pages; /* borrowed */
	char exe[PATH_MAX];       /* what /proc/PID/exe points to, as in the maps */
	uint64_t exe_ino;
	size_t n_files;
	struct mapped_file files[MAX_FILES];
	size_t n_mappings;
	struct mapping *mappings; /* sorted, disjoint: the kernel's order */
	size_t last;              /* where the last search ended */
	size_t symbols_left;
	uint64_t refresh_interval, no_refresh_before; /* ns */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Open a regular file for reading. O_PATH first: opening a device or a fifo can have
 * effects, or never return. ino: the file must have this inode number, 0: any.
 */
static int open_regular(int dirfd, const char *path, uint64_t ino)
{
	char again[32];
	struct stat st;
	int fd, path_fd = openat(dirfd, path, O_PATH | O_CLOEXEC);

	if (path_fd < 0)
		return -errno;
	if (fstat(path_fd, &st) || !S_ISREG(st.st_mode) || (ino && st.st_ino != ino)) {
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

static bool is_exe(const struct proc_maps *m, const struct map_line *l, const char *path)
{
	return m->exe_ino && l->ino == m->exe_ino && strcmp(path, m->exe) == 0;
}

/*
 * Open the file behind a line. map_files is the file itself, deleted or replaced as
 * it may be, but wants CAP_CHECKPOINT_RESTORE.
 */
static int open_mapped(const struct proc_maps *m, const struct map_line *l, const char *path)
{
	char name[PATH_MAX + 8];
	int fd;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, l->start, l->end);
	fd = open_regular(m->proc_fd, name, 0);
	if (fd < 0 && is_exe(m, l, path))
		fd = open_regular(m->proc_fd, "exe", l->ino);
	if (fd < 0 && path[0] == '/') {
		snprintf(name, sizeof(name), "root%s", path);
		fd = open_regular(m->proc_fd, name, l->ino);
	}
	return fd;
}

static struct mapped_file *find_file(struct proc_maps *m, const struct map_line *l)
{
	/* From the end: neighbouring lines are mostly of the same file. */
	for (size_t i = m->n_files; i-- > 0;)
		if (m->files[i].ino == l->ino && m->files[i].dev == l->dev)
			return &m->files[i];
	return NULL;
}

/* See to it that the file behind a line is open, if it can be. Errors: -ENOMEM. */
static int want_file(struct proc_maps *m, const struct map_line *l, const char *path)
{
	struct mapped_file *f = find_file(m, l);
	int fd;

	if (f && f->image)
		return 0;
	if (!f) {
		if (m->n_files == MAX_FILES)
			return 0;
		f = &m->files[m->n_files++];
		*f = (struct mapped_file){ .dev = l->dev, .ino = l->ino };
	}
	fd = open_mapped(m, l, path);
	if (fd < 0)
		return 0;
	/* Source 1 is the process's memory. */
	return elf_image__new(&f->image, fd, (uint32_t)(f - m->files) + 2, m->pages);
}

/* "start-end perms offset major:minor inode path"; false: no file. */
static bool parse_line(const char *text, struct map_line *l, const char **path)
{
	unsigned int major, minor;
	char perms[5];
	int at = 0;

	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &l->start,
		   &l->end, perms, &l->offset, &major, &minor, &l->ino, &at) < 7 ||
	    !at || !l->ino || l->start >= l->end)
		return false;
	l->dev = (uint64_t)major << 32 | minor;
	l->is_exec = perms[2] == 'x';
	*path = text + at;
	return true;
}

struct line_list {
	size_t n, cap;
	struct map_line *lines;
};

static int append(struct line_list *list, const struct map_line *l)
{
	if (list->n == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 256;
		void *grown = reallocarray(list->lines, cap, sizeof(*l));

		if (!grown)
			return -ENOMEM;
		list->lines = grown;
		list->cap = cap;
	}
	list->lines[list->n++] = *l;
	return 0;
}

/* Read all lines with files, open the files. *any: there was a line at all. */
static int read_lines(struct proc_maps *m, struct line_list *list, bool *any)
{
	char *text = NULL;
	size_t cap = 0;
	ssize_t len;
	int err = 0;

	*any = false;
	rewind(m->maps);
	while (!err && list->n < MAX_MAPPINGS && (len = getline(&text, &cap, m->maps)) > 0) {
		struct map_line l;
		const char *path;

		*any = true;
		if (text[len - 1] == '\n')
			text[len - 1] = '\0';
		if (!parse_line(text, &l, &path))
			continue;
		if (l.is_exec || is_exe(m, &l, path))
			err = want_file(m, &l, path);
		if (!err)
			err = append(list, &l);
	}
	free(text);
	return err;
}

/* Errors: -ESRCH (the process has ended; what is known stays), -ENOMEM. */
static int refresh(struct proc_maps *m)
{
	struct line_list list = { 0 };
	struct mapping *mappings = NULL;
	bool any;
	size_t n = 0;
	int err = read_lines(m, &list, &any);

	if (!err && !any)
		err = -ESRCH;
	if (!err && list.n) {
		mappings = malloc(list.n * sizeof(*mappings));
		if (!mappings)
			err = -ENOMEM;
	}
	for (size_t i = 0; !err && i < list.n; i++) {
		const struct map_line *l = &list.lines[i];
		const struct mapped_file *f = find_file(m, l);

		/* The order is the kernel's word; a search relies on it. */
		if (!f || !f->image || (n && l->start < mappings[n - 1].end))
			continue;
		mappings[n++] = (struct mapping){
			.start = l->start,
			.end = l->end,
			.offset = l->offset,
			.is_exec = l->is_exec,
			.image = f->image,
		};
	}
	free(list.lines);
	if (err)
		return err;
	free(m->mappings);
	m->mappings = mappings;
	m->n_mappings = n;
	m->last = 0;
	return 0;
}

static void find_exe(struct proc_maps *m)
{
	ssize_t len = readlinkat(m->proc_fd, "exe", m->exe, sizeof(m->exe) - 1);
	struct stat st;

	if (len <= 0 || fstatat(m->proc_fd, "exe", &st, 0))
		return;
	m->exe[len] = '\0';
	m->exe_ino = st.st_ino;
}

int proc_maps__new(struct proc_maps **out, int proc_fd, struct page_cache *pages)
{
	struct proc_maps *m = calloc(1, sizeof(*m));
	int fd, err;

	*out = NULL;
	if (!m)
		return -ENOMEM;
	m->proc_fd = proc_fd;
	m->pages = pages;
	m->symbols_left = MAX_SYMBOLS;
	/* The first refresh on demand is not delayed, and starts the back-off. */
	m->refresh_interval = REFRESH_MIN / 2;
	fd = openat(proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	err = fd < 0 ? -errno : 0;
	if (!err && !(m->maps = fdopen(fd, "r"))) {
		close(fd);
		err = -ENOMEM;
	}
	if (!err) {
		find_exe(m);
		err = refresh(m);
	}
	if (err) {
		proc_maps__free(m);
		return err == -ENOENT ? -ESRCH : err;
	}
	*out = m;
	return 0;
}

void proc_maps__free(struct proc_maps *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_files; i++)
		elf_image__free(m->files[i].image);
	free(m->mappings);
	if (m->maps)
		fclose(m->maps);
	free(m);
}

const struct mapping *proc_maps__find(struct proc_maps *m, uint64_t addr)
{
	size_t lo = 0, hi = m->n_mappings;

	if (m->last < hi && addr >= m->mappings[m->last].start && addr < m->mappings[m->last].end)
		return &m->mappings[m->last];
	while (lo < hi) { /* to the first mapping that ends beyond addr */
		size_t mid = lo + (hi - lo) / 2;

		if (m->mappings[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == m->n_mappings || addr < m->mappings[lo].start)
		return NULL;
	m->last = lo;
	return &m->mappings[lo];
}

const struct mapping *proc_maps__find_or_refresh(struct proc_maps *m, uint64_t addr)
{
	const struct mapping *found = proc_maps__find(m, addr);
	uint64_t start, end, pause;

	if (found)
		return found;
	start = now_ns();
	if (start < m->no_refresh_before)
		return NULL;
	if (!refresh(m))
		found = proc_maps__find(m, addr);
	end = now_ns();
	m->refresh_interval = found ? REFRESH_MIN : m->refresh_interval * 2;
	if (m->refresh_interval > REFRESH_MAX)
		m->refresh_interval = REFRESH_MAX;
	pause = (end - start) * REFRESH_SHARE;
	m->no_refresh_before = end + (pause > m->refresh_interval ? pause : m->refresh_interval);
	return found;
}

int proc_maps__image_function(struct proc_maps *m, struct elf_image *img, uint64_t vaddr, char *buf,
			      size_t cap)
{
	return elf_image__function(img, vaddr, &m->symbols_left, buf, cap);
}

int proc_maps__function(struct proc_maps *m, uint64_t pc, char *buf, size_t cap)
{
	const struct mapping *map = proc_maps__find(m, pc);
	uint64_t vaddr;

	if (!map || !map->is_exec ||
	    elf_image__vaddr(map->image, pc - map->start + map->offset, true, &vaddr))
		return -ENOENT;
	return proc_maps__image_function(m, map->image, vaddr, buf, cap);
}
