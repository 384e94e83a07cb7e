/* SPDX-License-Identifier: BSD-2-Clause */
/* See bpf_objects.h: the kernel's half. */
#include "user/attach/bpf_objects.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/attach/bpf_holders.h"
#include "user/attach/bpf_targets.h"

/* All our programs are called so, but for those that user/attach/kernel.c tries out. */
#define PREFIX "hs_"
#define TRIAL "hs_probe"

/* A type of bpf/tables.h that is in the type information of our maps. */
#define OUR_STRUCT "hs_profile"

struct search {
	struct bpf_objects *out;
	uint32_t *used; /* ids of maps that our programs use */
	size_t n_used;
	uint32_t btf_id; /* the last one that was looked at, and what it was */
	bool btf_is_ours;
};

const char *bpf_kind__name(enum bpf_kind kind)
{
	static const char names[BPF_KINDS][8] = { "program", "map", "link" };

	return names[kind];
}

static int add(struct search *s, enum bpf_kind kind, uint32_t id, const char *name, uint32_t prog)
{
	struct bpf_objects *o = s->out;
	struct bpf_thing *things = reallocarray(o->things, o->n_things + 1, sizeof(*things));

	if (!things)
		return -ENOMEM;
	o->things = things;
	things[o->n_things] = (struct bpf_thing){ .kind = kind, .id = id, .prog = prog };
	strncpy(things[o->n_things].name, name, sizeof(things->name) - 1);
	o->n_things++;
	return 0;
}

static int add_program(struct search *s, uint32_t id, int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t maps[BPF_MAPS_MAX], *used, len = sizeof(info);

	info.map_ids = (uintptr_t)maps;
	info.nr_map_ids = BPF_MAPS_MAX;
	if (bpf_prog_get_info_by_fd(fd, &info, &len))
		return -errno;
	if (info.type != BPF_PROG_TYPE_KPROBE || strncmp(info.name, PREFIX, strlen(PREFIX)) ||
	    !strcmp(info.name, TRIAL))
		return 0;
	if (info.nr_map_ids > BPF_MAPS_MAX)
		info.nr_map_ids = BPF_MAPS_MAX;
	used = reallocarray(s->used, s->n_used + info.nr_map_ids + 1, sizeof(*used));
	if (!used)
		return -ENOMEM;
	s->used = used;
	memcpy(used + s->n_used, maps, info.nr_map_ids * sizeof(*maps));
	s->n_used += info.nr_map_ids;
	return add(s, BPF_KIND_PROGRAM, id, info.name, 0);
}

/* Is the type information with this id ours? The maps of one program follow each other. */
static bool is_our_btf(struct search *s, uint32_t id)
{
	struct btf *btf;

	if (!id || id == s->btf_id)
		return id && s->btf_is_ours;
	btf = btf__load_from_kernel_by_id(id);
	s->btf_id = id;
	s->btf_is_ours = btf && btf__find_by_name_kind(btf, OUR_STRUCT, BTF_KIND_STRUCT) > 0;
	btf__free(btf);
	return s->btf_is_ours;
}

static int add_map(struct search *s, uint32_t id, int fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info);
	bool ours = false;

	if (bpf_map_get_info_by_fd(fd, &info, &len))
		return -errno;
	for (size_t i = 0; !ours && i < s->n_used; i++)
		ours = s->used[i] == id;
	return ours || is_our_btf(s, info.btf_id) ? add(s, BPF_KIND_MAP, id, info.name, 0) : 0;
}

static int add_link(struct search *s, uint32_t id, int fd)
{
	struct bpf_link_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_link_get_info_by_fd(fd, &info, &len))
		return -errno;
	for (size_t i = 0; i < s->out->n_things; i++) {
		const struct bpf_thing t = s->out->things[i]; /* a copy, as adding moves them */

		if (t.kind == BPF_KIND_PROGRAM && t.id == info.prog_id)
			return add(s, BPF_KIND_LINK, id, t.name, info.prog_id);
	}
	return 0;
}

/* All objects of one kind, by id. One that goes before it was opened is none. */
static int each(struct search *s, int (*next)(uint32_t, uint32_t *), int (*open_id)(uint32_t),
		int (*look)(struct search *, uint32_t, int))
{
	uint32_t id = 0;
	int fd, ret;

	while (!next(id, &id)) {
		fd = open_id(id);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return -errno;
		ret = look(s, id, fd);
		close(fd);
		if (ret)
			return ret;
	}
	return errno == ENOENT ? 0 : -errno;
}

static int failed(int code, struct hs_error *err)
{
	if (code == -EPERM || code == -EACCES)
		return hs_error__set(
			err, -EPERM,
			"not permitted to see the BPF objects in the kernel: that needs "
			"the capability CAP_SYS_ADMIN (%s)",
			geteuid() ? "run as root" : "taken from root here");
	if (code == -ENOMEM)
		return hs_error__set(err, code, "out of memory");
	return hs_error__set(err, code, "cannot list the BPF objects in the kernel: %s",
			     strerror(-code));
}

int bpf_objects__read(struct bpf_objects *out, struct hs_error *err)
{
	struct search s = { .out = out };
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	int ret;

	memset(out, 0, sizeof(*out));
	ret = each(&s, bpf_prog_get_next_id, bpf_prog_get_fd_by_id, add_program);
	if (!ret)
		ret = each(&s, bpf_map_get_next_id, bpf_map_get_fd_by_id, add_map);
	if (!ret)
		ret = each(&s, bpf_link_get_next_id, bpf_link_get_fd_by_id, add_link);
	free(s.used);
	/* Who holds them comes after them: who made one of them later is not of interest. */
	if (!ret && out->n_things)
		ret = bpf_holders__find(out);
	if (!ret)
		ret = bpf_targets__find(out);
	libbpf_set_print(print);
	return ret ? failed(ret, err) : 0;
}

void bpf_objects__free(struct bpf_objects *o)
{
	for (size_t i = 0; i < o->n_holders; i++) {
		free(o->holders[i].command);
		free(o->holders[i].targets);
	}
	free(o->holders);
	free(o->things);
	memset(o, 0, sizeof(*o));
}
