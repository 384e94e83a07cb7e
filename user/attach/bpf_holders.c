/* SPDX-License-Identifier: BSD-2-Clause */
/* See bpf_holders.h. */
#include "user/attach/bpf_holders.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/attach/proc.h"
#include "user/common/error.h"

static const struct {
	const char *key;
	enum bpf_kind kind;
} keys[] = {
	{ "prog_id:", BPF_KIND_PROGRAM },
	{ "map_id:", BPF_KIND_MAP },
	{ "link_id:", BPF_KIND_LINK },
};

static struct bpf_thing *find(struct bpf_objects *o, enum bpf_kind kind, uint32_t id)
{
	for (size_t i = 0; i < o->n_things; i++)
		if (o->things[i].kind == kind && o->things[i].id == id)
			return &o->things[i];
	return NULL;
}

static int add_target(struct bpf_holder *h, pid_t pid)
{
	pid_t *targets = reallocarray(h->targets, h->n_targets + 1, sizeof(*targets));

	if (!targets)
		return -ENOMEM;
	h->targets = targets;
	targets[h->n_targets++] = pid;
	return 0;
}

/*
 * What one descriptor stands for: the text of its fdinfo, the keys at the beginnings of
 * lines. A link's also has the id of its program, which is not open because of it.
 */
static int read_descriptor(struct bpf_objects *o, struct bpf_holder *h, char *text)
{
	bool is_link = strstr(text, "\nlink_id:");
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (!strncmp(line, "Pid:", 4) && add_target(h, (pid_t)strtol(line + 4, NULL, 10)))
			return -ENOMEM;
		for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
			struct bpf_thing *t;

			if (strncmp(line, keys[k].key, strlen(keys[k].key)) ||
			    (is_link && keys[k].kind != BPF_KIND_LINK))
				continue;
			t = find(o, keys[k].kind,
				 (uint32_t)strtoul(line + strlen(keys[k].key), NULL, 10));
			if (!t)
				continue;
			t->holder = h->pid;
			h->n[t->kind]++;
		}
	}
	return 0;
}

/* Go through the descriptors of a process. */
static int read_process(struct bpf_objects *o, struct bpf_holder *h)
{
	char path[64], text[4096];
	const struct dirent *entry;
	int ret = 0, fd;
	ssize_t n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)h->pid);
	dir = opendir(path);
	if (!dir)
		return hs_error__is_shortage(-errno) ? -errno : 0;
	while (!ret && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[n > 0 ? n : 0] = 0;
		ret = read_descriptor(o, h, text);
	}
	closedir(dir);
	return ret;
}

static unsigned held_by(const struct bpf_holder *h)
{
	unsigned n = 0;

	for (int k = 0; k < BPF_KINDS; k++)
		n += h->n[k];
	return n;
}

/*
 * A heapsonde at work has a target open and holds some twenty of them. One that only looks,
 * as we do, holds one at a time.
 */
static bool is_at_work(const struct bpf_holder *h)
{
	return h->n_targets && held_by(h) > 1;
}

static int add_holder(struct bpf_objects *o, struct bpf_holder *h)
{
	struct bpf_holder *holders;
	int ret = proc__command(h->pid, &h->command);

	if (ret == -ENOMEM)
		return ret;
	if (ret)
		h->command = strdup("ending");
	holders = reallocarray(o->holders, o->n_holders + 1, sizeof(*holders));
	if (!holders || !h->command)
		return -ENOMEM;
	o->holders = holders;
	holders[o->n_holders++] = *h;
	if (is_at_work(h))
		for (size_t i = 0; i < o->n_things; i++)
			o->things[i].in_use |= o->things[i].holder == h->pid;
	memset(h, 0, sizeof(*h)); /* theirs now */
	return 0;
}

int bpf_holders__find(struct bpf_objects *o)
{
	const struct dirent *entry;
	DIR *dir = opendir("/proc");
	int ret = 0;

	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir))) {
		struct bpf_holder h = { .pid = (pid_t)atoi(entry->d_name) };

		if (h.pid <= 0)
			continue;
		ret = read_process(o, &h);
		if (!ret && held_by(&h))
			ret = add_holder(o, &h);
		free(h.command);
		free(h.targets);
	}
	closedir(dir);
	return ret;
}
