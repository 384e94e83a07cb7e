/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `heapsonde residue`: whether anything is left of heapsondes that have gone, in a process
 * or in all, and in the kernel.
 *
 * In:   user/attach/residue.h.
 * Out:  a line for each process, for each heapsonde at work and for each thing that is left, on
 *       stdout. Exit status 1 if something is left or could not be looked at, with
 *       one line on stderr that says what to do.
 */
#include <argp.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "user/attach/exe.h"
#include "user/attach/residue.h"
#include "user/cli/cli.h"
#include "user/cli/common_args.h"
#include "user/common/say.h"

struct targets {
	struct target **at;
	size_t n;
	unsigned unseen;     /* processes that we may not look at */
	unsigned unreadable; /* OCaml programs whose probes cannot be read; they were printed */
};

struct residue_options {
	pid_t pid; /* 0: all */
	double wait_s;
};

static const struct argp_option option_list[] = {
	{ "pid", 'p', "PID", 0, "The process (default: all OCaml programs with probes)", 0 },
	{ "wait", 'w', "SECONDS", 0,
	  "How long the kernel may take to clear away after one that was killed (default 10)", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct residue_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		return 0;
	case 'p':
		o->pid = cli__argp_pid(state, arg);
		return 0;
	case 'w':
		o->wait_s = cli__argp_seconds(state, arg);
		return 0;
	case ARGP_KEY_ARG:
		cli__argp_error(state, "no argument is expected: %s", arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- which processes ------------------------------------------------------------ */

static int add(struct targets *l, struct target *t, struct hs_error *err)
{
	struct target **at = reallocarray(l->at, l->n + 1, sizeof(*at));

	if (!at) {
		target__free(t);
		return hs_error__set(err, -ENOMEM, "out of memory");
	}
	l->at = at;
	at[l->n++] = t;
	return 0;
}

static int add_if_probed(struct targets *l, pid_t pid, struct exe_cache *cache,
			 struct hs_error *err)
{
	struct target *t;

	switch (target__open_cached(&t, pid, cache, err)) {
	case 0:
		if (t->kind == TARGET_PROBED)
			return add(l, t, err);
		target__free(t);
		return 0;
	case -ESRCH:
		return 0;
	case -EPROTO:
		printf("%s\n", err->text);
		l->unreadable++;
		return 0;
	case -EMFILE:
	case -ENFILE:
		return -EMFILE;
	case -ENOMEM:
		return -ENOMEM;
	default:
		l->unseen++;
		return 0;
	}
}

/* Each process takes some descriptors, and the usual limit of 1024 is soon reached. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int add_all(struct targets *l, struct hs_error *err)
{
	struct exe_cache *cache = NULL;
	const struct dirent *entry;
	DIR *dir = opendir("/proc");
	int ret;

	if (!dir)
		return hs_error__set(err, -errno, "cannot read /proc: %s", strerror(errno));
	allow_many_files();
	ret = exe_cache__new(&cache);
	if (ret)
		hs_error__set(err, ret, "out of memory");
	while (!ret && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			ret = add_if_probed(l, (pid_t)atoi(entry->d_name), cache, err);
	exe_cache__free(cache);
	closedir(dir);
	return ret;
}

static void free_targets(struct targets *l)
{
	for (size_t i = 0; i < l->n; i++)
		target__free(l->at[i]);
	free(l->at);
}

/* ---- printing -------------------------------------------------------------------- */

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void print_process(const struct target *t)
{
	printf("process %d (%.80s): ", (int)t->pid, t->command);
}

static void print_holder(const struct bpf_holder *h)
{
	unsigned links = h->n[BPF_KIND_LINK], programs = h->n[BPF_KIND_PROGRAM],
		 maps = h->n[BPF_KIND_MAP];

	printf("PID %d (%.80s), with %u link%s, %u program%s and %u map%s", (int)h->pid, h->command,
	       links, plural(links), programs, plural(programs), maps, plural(maps));
}

static void print_attached(const struct residue *r, const struct residue_process *p)
{
	bool found = false;

	for (size_t i = 0; i < r->objects.n_holders; i++) {
		const struct bpf_holder *h = &r->objects.holders[i];

		if (!bpf_holder__has(h, p->target->pid))
			continue;
		print_process(p->target);
		printf("attached by ");
		print_holder(h);
		printf("; %u semaphore%s up, %u probe%s armed\n", p->n_up, plural(p->n_up),
		       p->n_armed, plural(p->n_armed));
		found = true;
	}
	if (found)
		return;
	print_process(p->target);
	if (!p->n_up && !p->n_armed)
		printf("nothing left\n");
	else
		printf("%u semaphore%s up and %u probe%s armed, from before it was forked by a "
		       "process that a heapsonde is attached to\n",
		       p->n_up, plural(p->n_up), p->n_armed, plural(p->n_armed));
}

static void print_probes(const struct residue_process *p)
{
	for (size_t i = 0; i < p->n_probes; i++) {
		const struct probe_state *s = &p->probes[i];

		if (!p->is_left[i])
			continue;
		print_process(p->target);
		printf("probe %s: its semaphore is %u", s->name, s->semaphore);
		if (s->is_armed)
			printf(", its code has %02x where the file has %02x", s->here, s->file);
		putchar('\n');
	}
}

/* Heapsondes at work on none of the processes that were looked at. */
static void print_others(const struct residue *r)
{
	for (size_t i = 0; i < r->objects.n_holders; i++) {
		const struct bpf_holder *h = &r->objects.holders[i];
		bool known = !h->n_targets;

		for (size_t k = 0; !known && k < r->n_processes; k++)
			known = bpf_holder__has(h, r->processes[k].target->pid);
		if (known)
			continue;
		printf("at work elsewhere: ");
		print_holder(h);
		putchar('\n');
	}
}

static void print_object(const struct residue *r, const struct bpf_thing *t)
{
	printf("BPF %s %u (%s), held by ", bpf_kind__name(t->kind), t->id, t->name);
	for (size_t i = 0; i < r->objects.n_holders; i++) {
		const struct bpf_holder *h = &r->objects.holders[i];

		if (h->pid == t->holder) {
			printf("PID %d (%.80s)\n", (int)h->pid, h->command);
			return;
		}
	}
	printf("no process\n");
}

/* all: of all processes, so that heapsondes at work elsewhere are of interest. */
static void print(const struct residue *r, bool all)
{
	for (size_t i = 0; i < r->n_processes; i++) {
		const struct residue_process *p = &r->processes[i];

		if (!p->n_probes)
			continue;
		if (p->n_left)
			print_probes(p);
		else
			print_attached(r, p);
	}
	if (all)
		print_others(r);
	for (size_t i = 0; i < r->objects.n_things; i++)
		if (r->is_left[i])
			print_object(r, &r->objects.things[i]);
	if (all && !r->n_processes && !r->n_left && !r->objects.n_holders && !r->objects_failed)
		printf("nothing of heapsonde in the kernel\n");
}

/* ---- how it ends ----------------------------------------------------------------- */

/* What to do about what is left, in one line. */
static int say_what_to_do(const struct residue *r)
{
	const char *is = r->n_left == 1 ? "thing is" : "things are";
	bool objects = false;
	struct hs_error err;

	for (size_t i = 0; i < r->objects.n_things; i++) {
		const struct bpf_thing *t = &r->objects.things[i];

		objects |= r->is_left[i];
		if (!r->is_left[i] || !t->holder)
			continue;
		hs_error__set(&err, -EEXIST, "%zu %s left: end process %d, which holds them",
			      r->n_left, is, (int)t->holder);
		return cli__die(&err);
	}
	if (objects)
		hs_error__set(&err, -EEXIST,
			      "%zu %s left that no process holds: if pinned below /sys/fs/bpf, "
			      "remove it there",
			      r->n_left, is);
	else
		hs_error__set(&err, -EEXIST,
			      "%zu %s left, but nothing of a heapsonde: end the other tool that is "
			      "attached (see bpftool link show, bpftool perf show); if there is "
			      "none, restart the process: nothing else takes them out",
			      r->n_left, is);
	return cli__die(&err);
}

/* One error at most, that which says most. */
static int end(const struct residue *r, const struct targets *l, bool one)
{
	struct hs_error err;

	if (cli__finish(0))
		return CLI_EXIT_ERROR;
	if (l->unseen)
		say__note("%u process%s could not be looked at%s", l->unseen,
			  l->unseen == 1 ? "" : "es", geteuid() ? " (run as root to see all)" : "");
	for (size_t i = 0; i < r->n_processes; i++) {
		if (r->processes[i].failed)
			return cli__die(&r->processes[i].why);
		if (one && !r->processes[i].n_probes)
			return cli__die(&r->processes[i].why);
	}
	if (r->objects_failed)
		return cli__die(&r->objects_why);
	if (r->n_left)
		return say_what_to_do(r);
	if (!l->unreadable)
		return 0;
	hs_error__set(&err, -EPROTO, "%u process%s could not be read: see above", l->unreadable,
		      l->unreadable == 1 ? "" : "es");
	return cli__die(&err);
}

int cmd_residue(int argc, char **argv)
{
	const struct argp argp = {
		.options = option_list,
		.parser = parse,
		.doc = "Tell whether heapsondes that have gone have left anything behind.",
	};
	struct targets targets = { 0 };
	struct target *t = NULL;
	struct residue *r = NULL;
	struct hs_error err;
	struct residue_options o = { .wait_s = RESIDUE_WAIT_S };
	int ret;

	if (common_args__parse(&argp, argc, argv, 0, &o))
		return CLI_EXIT_USAGE;
	if (o.pid)
		ret = target__open_probed(&t, o.pid, &err);
	else
		ret = add_all(&targets, &err);
	if (!ret && t)
		ret = add(&targets, t, &err);
	if (!ret)
		ret = residue__find(&r, targets.at, targets.n, !o.pid, o.wait_s, &err);
	if (ret) {
		ret = cli__die(&err);
	} else {
		print(r, !o.pid);
		ret = end(r, &targets, o.pid != 0);
	}
	residue__free(r);
	free_targets(&targets);
	return ret;
}
