/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See symbolize.h. The parts, from the bottom up:
 *
 *	page_cache   bytes of files and of the process
 *	elf_image    one ELF file: segments, relocations; symtab its functions
 *	proc_maps    address to file
 *	proc_mem     address to bytes
 *	frametable   slot to positions, as numbers and addresses of strings
 *	ocaml_name   symbol to name
 *	text         strings, and memory for results
 *
 * and here the results, remembered by slot. A result once handed out stays where it
 * is; so the number of results is limited, and a target that makes up slots without
 * end gets "unknown" for the rest.
 */
#include "user/symbolize/symbolize.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/symbolize/build_id.h"
#include "user/symbolize/frametable.h"
#include "user/symbolize/ocaml_name.h"
#include "user/symbolize/page_cache.h"
#include "user/symbolize/proc_maps.h"
#include "user/symbolize/proc_mem.h"
#include "user/symbolize/text.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->was_added = false)
#include <uthash.h>

/* Of results: some 800,000 slots of ordinary programs. */
#define MAX_POOL_BYTES ((size_t)128 << 20)

/* What is known about one slot. */
struct known_slot {
	UT_hash_handle hh;
	uint64_t slot;
	const struct hs_location *locs; /* in the pool, or the unknown location */
	uint16_t n_locs;
	bool was_added;
};

struct symbolizer {
	struct frame_layout layout;
	struct proc_files files; /* duplicates of the target's; -1 if there is none */
	struct page_cache *pages;
	struct proc_maps *maps;
	struct proc_mem mem;
	struct text_pool *pool;
	struct known_slot *known;
};

static const struct hs_location unknown;

const struct hs_location *symbolizer__unknown(void)
{
	return &unknown;
}

int symbolizer__new_empty(struct symbolizer **out)
{
	struct symbolizer *s = calloc(1, sizeof(*s));

	*out = NULL;
	if (!s)
		return -ENOMEM;
	s->files = (struct proc_files){ .proc_fd = -1, .maps_fd = -1, .mem_fd = -1 };
	s->pool = text_pool__new();
	if (!s->pool) {
		symbolizer__free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

static int duplicate(int fd, int *to)
{
	if (fd < 0)
		return -EACCES; /* could not be opened when the target was */
	*to = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return *to < 0 ? -errno : 0;
}

static int open_process(struct symbolizer *s, const struct target *t)
{
	int err = duplicate(t->proc_fd, &s->files.proc_fd);

	if (!err)
		err = duplicate(t->maps_fd, &s->files.maps_fd);
	if (!err)
		err = duplicate(t->mem_fd, &s->files.mem_fd);
	if (err)
		return err;
	s->files.exe_dev = t->exe_dev;
	s->files.exe_ino = t->exe_ino;
	s->pages = page_cache__new();
	if (!s->pages)
		return -ENOMEM;
	err = proc_maps__new(&s->maps, &s->files, s->pages);
	proc_mem__init(&s->mem, s->files.mem_fd, s->maps, s->pages);
	return err;
}

int symbolizer__new(struct symbolizer **out, const struct target *t, struct hs_error *err)
{
	struct symbolizer *s;
	int code;

	*out = NULL;
	code = symbolizer__new_empty(&s);
	if (code)
		return hs_error__set(err, code, "out of memory");
	s->layout = (struct frame_layout){
		.retaddr_bytes = t->registry.fd_retaddr_bytes,
		.frame_data = t->registry.fd_frame_data,
		.num_live = t->registry.fd_num_live,
		.live_ofs = t->registry.fd_live_ofs,
	};
	if (frametable__check_layout(&s->layout)) {
		symbolizer__free(s);
		return hs_error__set(err, -EINVAL,
				     "process %d describes its frame tables in a way that this "
				     "version does not know",
				     (int)t->pid);
	}
	code = open_process(s, t);
	if (code) {
		symbolizer__free(s);
		if (code == -ESRCH)
			return target__gone(t, err);
		return hs_error__set(err, code, "cannot read the memory of process %d: %s%s",
				     (int)t->pid, strerror(-code),
				     code == -EACCES ? " (run as root)" : "");
	}
	*out = s;
	return 0;
}

void symbolizer__free(struct symbolizer *s)
{
	if (!s)
		return;
	HASH_CLEAR(hh, s->known);
	text_pool__free(s->pool);
	proc_maps__free(s->maps);
	page_cache__free(s->pages);
	const int fds[] = { s->files.proc_fd, s->files.maps_fd, s->files.mem_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(s);
}

/* Remember n locations for a slot: locs are in the pool, or &unknown. */
static int remember(struct symbolizer *s, uint64_t slot, const struct hs_location *locs, size_t n)
{
	struct known_slot *k;

	HASH_FIND(hh, s->known, &slot, sizeof(slot), k);
	if (!k) {
		k = text_pool__alloc(s->pool, sizeof(*k));
		if (!k)
			return -ENOMEM;
		k->slot = slot;
		k->was_added = true;
		HASH_ADD(hh, s->known, slot, sizeof(slot), k);
		if (!k->was_added)
			return -ENOMEM;
	}
	k->locs = locs;
	k->n_locs = (uint16_t)n;
	return 0;
}

/*
 * Read a string of the target's. *text: NULL if it is empty and that means "none".
 * -EFAULT: it cannot be read; -ENOMEM.
 */
static int read_string(struct symbolizer *s, uint64_t addr, bool empty_is_none, const char **text)
{
	char buf[TEXT_MAX];
	ssize_t len = proc_mem__read_text(&s->mem, addr, buf, sizeof(buf));

	*text = NULL;
	if (len < 0)
		return (int)len;
	if (!len && empty_is_none)
		return 0;
	*text = text_pool__intern(s->pool, buf, (size_t)len);
	return *text ? 0 : -ENOMEM;
}

/*
 * The positions of a frame as locations in out. Returns how many could be read, the
 * innermost first, or -ENOMEM.
 */
static int read_positions(struct symbolizer *s, const struct frame_info *info,
			  struct hs_location *out)
{
	int n = 0;

	for (size_t i = 0; i < info->n_positions; i++) {
		const struct frame_position *p = &info->positions[i];
		struct hs_location *l = &out[n];
		int err = read_string(s, p->function_addr, true, &l->function);

		/* What is on no line is in no file. */
		l->file = NULL;
		if (!err && p->line)
			err = read_string(s, p->file_addr, false, &l->file);
		if (err == -ENOMEM)
			return err;
		if (err)
			break;
		l->line = p->line;
		l->start_char = p->start_char;
		l->end_line = p->end_line;
		l->end_char = p->end_char;
		l->end_offset = p->end_offset;
		l->is_inlined = true;
		n++;
	}
	if (n)
		out[n - 1].is_inlined = false;
	return n;
}

/*
 * The symbol of the function that a frame descriptor belongs to. The return address
 * in it was relocated by the loader: take it from the process, or from the file with
 * its relocation. 0, -ENOENT, -ENOMEM.
 */
static int find_symbol(struct symbolizer *s, uint64_t descriptor, char *buf, size_t cap)
{
	const struct mapping *map;
	uint64_t retaddr;
	int err = -ENOENT;

	if (s->layout.retaddr_bytes == 4) {
		int32_t distance;

		if (proc_mem__read(&s->mem, descriptor, &distance, sizeof(distance)))
			return -ENOENT;
		retaddr = descriptor + (uint64_t)(int64_t)distance;
		return proc_maps__function(s->maps, retaddr - 1, buf, cap);
	}
	/* - 1: the call may be the last instruction of its function. */
	if (!proc_mem__read_live(&s->mem, descriptor, &retaddr, sizeof(retaddr)))
		err = proc_maps__function(s->maps, retaddr - 1, buf, cap);
	if (err != -ENOENT)
		return err;
	map = proc_maps__find(s->maps, descriptor);
	if (!map || elf_image__pointer(map->image, descriptor - map->start + map->offset, &retaddr))
		return -ENOENT;
	return proc_maps__image_function(s->maps, map->image, retaddr - 1, buf, cap);
}

/* As read_positions, for a frame without debug information. */
static int read_symbol(struct symbolizer *s, const struct frame_info *info, struct hs_location *out)
{
	char symbol[TEXT_MAX], name[TEXT_MAX];
	int err;

	if (!info->descriptor)
		return 0;
	err = find_symbol(s, info->descriptor, symbol, sizeof(symbol));
	if (err)
		return err == -ENOMEM ? err : 0;
	ocaml_name__demangle(symbol, name, sizeof(name));
	*out = unknown;
	out->function = text_pool__intern(s->pool, name, strlen(name));
	return out->function ? 1 : -ENOMEM;
}

/*
 * Ask the target. Returns the number of locations, 0 if nothing is known, or -ENOMEM.
 * *is_certain: asking again gives the same.
 */
static int look_up(struct symbolizer *s, uint64_t slot, struct hs_location *out, bool *is_certain)
{
	uint64_t addr = frametable__address(slot);
	struct frame_info info;
	int err, n;

	/* In a file nothing changes; elsewhere a table may yet appear. */
	*is_certain = proc_maps__find_or_refresh(s->maps, addr) != NULL;
	proc_mem__renew(&s->mem);
	err = frametable__decode(&s->mem, &s->layout, slot, &info);
	if (err == -EFAULT)
		*is_certain = false;
	n = read_positions(s, &info, out);
	return n ? n : read_symbol(s, &info, out);
}

int symbolizer__resolve(struct symbolizer *s, uint64_t slot, const struct hs_location **locs)
{
	struct hs_location found[FRAMETABLE_MAX_INLINED];
	const struct hs_location *kept = &unknown;
	struct known_slot *k;
	bool is_certain;
	int n, err;

	HASH_FIND(hh, s->known, &slot, sizeof(slot), k);
	if (k) {
		*locs = k->locs;
		return k->n_locs;
	}
	*locs = &unknown;
	if (!s->maps || text_pool__bytes(s->pool) > MAX_POOL_BYTES)
		return 1;
	n = look_up(s, slot, found, &is_certain);
	if (n < 0)
		return n;
	if (n) {
		struct hs_location *copy = text_pool__alloc(s->pool, (size_t)n * sizeof(*copy));

		if (!copy)
			return -ENOMEM;
		memcpy(copy, found, (size_t)n * sizeof(*copy));
		kept = copy;
	} else if (!is_certain) {
		return 1;
	} else {
		n = 1;
	}
	err = remember(s, slot, kept, (size_t)n);
	if (err)
		return err;
	*locs = kept;
	return n;
}

static int copy_string(struct symbolizer *s, const char *from, const char **to)
{
	*to = NULL;
	if (!from)
		return 0;
	*to = text_pool__intern(s->pool, from, strnlen(from, TEXT_MAX));
	return *to ? 0 : -ENOMEM;
}

int symbolizer__learn(struct symbolizer *s, uint64_t slot, const struct hs_location *locs,
		      size_t n_locs)
{
	struct hs_location *copy;

	if (!n_locs || n_locs > FRAMETABLE_MAX_INLINED)
		return -EINVAL;
	if (text_pool__bytes(s->pool) > MAX_POOL_BYTES)
		return 0; /* as when it was recorded: the rest is unknown */
	copy = text_pool__alloc(s->pool, n_locs * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < n_locs; i++) {
		copy[i] = locs[i];
		if (copy_string(s, locs[i].function, &copy[i].function) ||
		    copy_string(s, locs[i].file, &copy[i].file))
			return -ENOMEM;
	}
	return remember(s, slot, copy, n_locs);
}

int symbolizer__mappings(const struct symbolizer *s, size_t max,
			 int (*each)(void *ctx, const struct symbolizer_mapping *m), void *ctx)
{
	const struct mapping *all = NULL;
	size_t n = s->maps ? proc_maps__all(s->maps, &all) : 0;
	int ret = 0;

	for (size_t i = 0; i < n && max && !ret; i++) {
		struct symbolizer_mapping m = { all[i].start, all[i].end, all[i].offset,
						all[i].path,  NULL,       0 };
		uint8_t id[BUILD_ID_MAX_BYTES];

		if (!all[i].is_exec)
			continue;
		max--;
		m.build_id = id;
		m.n_build_id = build_id__read(all[i].image, id);
		ret = each(ctx, &m);
	}
	return ret;
}
