/* SPDX-License-Identifier: BSD-2-Clause */
/* See proc_maps.h. */
#include "user/symbolize/proc_maps.h"

#include "user/common/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	char *path;              /* as of when it was opened; NULL: not opened, or no memory */
	bool is_new;             /* opened in this refresh, and not confirmed yet */
};

struct proc_maps {
	const struct proc_files *files; /* borrowed */
	struct page_cache *pages;       /* borrowed */
	char exe[PATH_MAX];             /* what /proc/PID/exe points to, as in the maps */
	uint64_t next_source;           /* of the page cache */
	size_t n_files;
	struct mapped_file mapped[MAX_FILES];
	size_t n_mappings;
	struct mapping *mappings; /* sorted, disjoint: the kernel's order */
	size_t last;              /* where the last search ended */
	size_t symbols_left;
	uint64_t refresh_interval, no_refresh_before; /* ns */
};

static struct mapped_file *find_file(struct proc_maps *m, const struct map_line *l)
{
	/* From the end: neighbouring lines are mostly of the same file. */
	for (size_t i = m->n_files; i-- > 0;)
		if (m->mapped[i].ino == l->ino && m->mapped[i].dev == l->dev)
			return &m->mapped[i];
	return NULL;
}

static void free_file(struct mapped_file *f)
{
	elf_image__free(f->image);
	free(f->path);
}

/* See to it that the file behind a line is open, if it can be. Errors: -ENOMEM. */
static int want_file(struct proc_maps *m, const struct map_line *l)
{
	struct mapped_file *f = find_file(m, l);
	int fd;

	if (f && f->image)
		return 0;
	if (!f) {
		if (m->n_files == MAX_FILES)
			return 0;
		f = &m->mapped[m->n_files++];
		*f = (struct mapped_file){ .dev = l->dev, .ino = l->ino };
	}
	fd = map_file__open(m->files, m->exe, l);
	if (fd < 0)
		return 0;
	f->is_new = true;
	free(f->path);
	f->path = strdup(l->path);
	return elf_image__new(&f->image, fd, m->next_source++, m->pages);
}

/* Open the files that can hold code. *any: some were opened. Errors: -ENOMEM. */
static int open_files(struct proc_maps *m, const struct map_lines *list, bool *any)
{
	int err = 0;

	for (size_t i = 0; !err && i < list->n; i++) {
		const struct map_line *l = &list->lines[i];

		if (l->is_exec || strcmp(l->path, m->exe) == 0)
			err = want_file(m, l);
	}
	*any = false;
	for (size_t i = 0; i < m->n_files; i++)
		*any |= m->mapped[i].is_new;
	return err;
}

/* Close the new files that are not mapped any more: see map_file.h. */
static void confirm_files(struct proc_maps *m, const struct map_lines *list)
{
	for (size_t i = 0; i < list->n; i++) {
		struct mapped_file *f = find_file(m, &list->lines[i]);

		if (f)
			f->is_new = false;
	}
	for (size_t i = 0; i < m->n_files; i++) {
		struct mapped_file *f = &m->mapped[i];

		if (f->is_new) {
			free_file(f);
			f->image = NULL;
			f->path = NULL;
			f->is_new = false;
		}
	}
}

/* Read the lines and open the files. The lines are read anew if any was opened. */
static int read_lines(struct proc_maps *m, struct map_lines *list)
{
	bool any;
	int err = map_lines__read(list, m->files->maps_fd);

	if (err)
		return err;
	err = open_files(m, list, &any);
	if (any) {
		int again;

		map_lines__free(list);
		again = map_lines__read(list, m->files->maps_fd);
		confirm_files(m, list);
		err = err ? err : again;
	}
	return err;
}

/* Errors: -ESRCH (the address space has gone; what is known stays), -ENOMEM, other. */
static int refresh(struct proc_maps *m)
{
	struct mapping *mappings = NULL;
	struct map_lines list;
	size_t n = 0;
	int err = read_lines(m, &list);

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
			.path = f->path,
		};
	}
	map_lines__free(&list);
	if (err)
		return err;
	free(m->mappings);
	m->mappings = mappings;
	m->n_mappings = n;
	m->last = 0;
	return 0;
}

int proc_maps__new(struct proc_maps **out, const struct proc_files *files, struct page_cache *pages)
{
	struct proc_maps *m = calloc(1, sizeof(*m));
	int err;

	*out = NULL;
	if (!m)
		return -ENOMEM;
	m->files = files;
	m->pages = pages;
	m->next_source = 2; /* source 1 is the process's memory */
	m->symbols_left = MAX_SYMBOLS;
	/* The first refresh on demand is not delayed, and starts the back-off. */
	m->refresh_interval = REFRESH_MIN / 2;
	/* A hint only, and fine to be empty: it says what "exe" may be worth trying for. */
	if (readlinkat(files->proc_fd, "exe", m->exe, sizeof(m->exe) - 1) < 0)
		m->exe[0] = '\0';
	err = refresh(m);
	if (err) {
		proc_maps__free(m);
		return err;
	}
	*out = m;
	return 0;
}

void proc_maps__free(struct proc_maps *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_files; i++)
		free_file(&m->mapped[i]);
	free(m->mappings);
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
	start = clock__now_ns();
	if (start < m->no_refresh_before)
		return NULL;
	if (!refresh(m))
		found = proc_maps__find(m, addr);
	end = clock__now_ns();
	m->refresh_interval = found ? REFRESH_MIN : m->refresh_interval * 2;
	if (m->refresh_interval > REFRESH_MAX)
		m->refresh_interval = REFRESH_MAX;
	pause = (end - start) * REFRESH_SHARE;
	m->no_refresh_before = end + (pause > m->refresh_interval ? pause : m->refresh_interval);
	return found;
}

size_t proc_maps__all(const struct proc_maps *m, const struct mapping **out)
{
	*out = m->mappings;
	return m->n_mappings;
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
