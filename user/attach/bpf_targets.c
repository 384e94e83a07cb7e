/* SPDX-License-Identifier: BSD-2-Clause */
/* See bpf_targets.h. */
#include "user/attach/bpf_targets.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The end of the name that libbpf gives to the map of constants, and the constant. */
#define CONSTANTS ".rodata"
#define TARGET "cfg_tgid"

/* Far more than we have: what another one says about its size is not to be believed. */
#define MAX_CONSTANTS 65536

static bool is_constants(const struct bpf_thing *t)
{
	size_t len = strlen(t->name), end = strlen(CONSTANTS);

	return t->kind == BPF_KIND_MAP && len >= end && !strcmp(t->name + len - end, CONSTANTS);
}

/* Where the constant stands in a map of this type; -1: not in there. */
static int64_t offset_of_target(const struct btf *btf, uint32_t type_id)
{
	const struct btf_type *section = btf__type_by_id(btf, type_id);
	const struct btf_var_secinfo *vars;

	if (!section || !btf_is_datasec(section))
		return -1;
	vars = btf_var_secinfos(section);
	for (unsigned i = 0; i < btf_vlen(section); i++) {
		const struct btf_type *var = btf__type_by_id(btf, vars[i].type);
		const char *name = var ? btf__name_by_offset(btf, var->name_off) : NULL;

		if (name && !strcmp(name, TARGET) && vars[i].size == sizeof(uint32_t))
			return vars[i].offset;
	}
	return -1;
}

/* The constant in the map that fd is; 0: it has none. */
static int read_target(int fd, pid_t *out)
{
	struct bpf_map_info info = { 0 };
	uint32_t len = sizeof(info), key = 0, pid;
	struct btf *btf;
	int64_t offset;
	char *value;

	if (bpf_map_get_info_by_fd(fd, &info, &len) || !info.btf_id ||
	    info.value_size > MAX_CONSTANTS)
		return 0;
	btf = btf__load_from_kernel_by_id(info.btf_id);
	offset = btf ? offset_of_target(btf, info.btf_value_type_id) : -1;
	btf__free(btf);
	if (offset < 0 || (size_t)offset + sizeof(pid) > info.value_size)
		return 0;
	value = malloc(info.value_size);
	if (!value)
		return -ENOMEM;
	if (!bpf_map_lookup_elem(fd, &key, value)) {
		memcpy(&pid, value + offset, sizeof(pid));
		*out = (pid_t)pid;
	}
	free(value);
	return 0;
}

/* The maps that a program uses are for its target; and so is it. */
static void follow_maps(struct bpf_objects *o, struct bpf_thing *prog, const uint32_t *ids,
			uint32_t n)
{
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < o->n_things; i++) {
			struct bpf_thing *t = &o->things[i];
			bool used = false;

			for (uint32_t k = 0; t->kind == BPF_KIND_MAP && !used && k < n; k++)
				used = t->id == ids[k];
			if (used && pass == 0 && t->target)
				prog->target = t->target;
			if (used && pass == 1)
				t->target = prog->target;
		}
	}
}

static void look_at_program(struct bpf_objects *o, struct bpf_thing *t, int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t ids[BPF_MAPS_MAX], len = sizeof(info);

	info.map_ids = (uintptr_t)ids;
	info.nr_map_ids = BPF_MAPS_MAX;
	if (bpf_prog_get_info_by_fd(fd, &info, &len))
		return;
	follow_maps(o, t, ids, info.nr_map_ids < BPF_MAPS_MAX ? info.nr_map_ids : BPF_MAPS_MAX);
}

static void look_at_link(const struct bpf_objects *o, struct bpf_thing *link)
{
	for (size_t i = 0; i < o->n_things; i++) {
		const struct bpf_thing *t = &o->things[i];

		if (t->kind == BPF_KIND_PROGRAM && t->id == link->prog)
			link->target = t->target;
	}
}

/* First the constants; programs have their targets from them, and links from programs. */
static int look(struct bpf_objects *o, struct bpf_thing *t, int step)
{
	int fd = -1, ret = 0;

	if (step == 0 && is_constants(t)) {
		fd = bpf_map_get_fd_by_id(t->id);
		ret = fd < 0 ? 0 : read_target(fd, &t->target);
	} else if (step == 1 && t->kind == BPF_KIND_PROGRAM) {
		fd = bpf_prog_get_fd_by_id(t->id);
		if (fd >= 0)
			look_at_program(o, t, fd);
	} else if (step == 2 && t->kind == BPF_KIND_LINK) {
		look_at_link(o, t);
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

int bpf_targets__find(struct bpf_objects *o)
{
	int ret = 0;

	for (int step = 0; step < 3; step++)
		for (size_t i = 0; !ret && i < o->n_things; i++)
			if (!o->things[i].in_use)
				ret = look(o, &o->things[i], step);
	return ret;
}
