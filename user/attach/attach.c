/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loading and attaching; see attach.h.
 *
 * The order matters. The GC probes come first: the first minor collection that
 * samples must already be counted, because it is the base of the counters. The
 * tier comes last, so that the depth of the stacks is known before the first
 * sample. Detaching needs no order: the programs are told to stop before.
 */
#include "user/attach/attachment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/tables.h"
#include "user/attach/notes.h"
#include "user/attach/registry.h"

#define RING_BYTES_COUNTERS (1u << 18)

/* libbpf talks a lot, and its last word is not the best one for people. */
static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	return getenv("HEAPSONDE_LIBBPF_DEBUG") ? vfprintf(stderr, format, args) : 0;
}

static void profile__write(struct attachment *a, const struct attach_options *o)
{
	struct hs_profile *p = attachment__profile(a);

	*p = (struct hs_profile){
		.number = o->number,
		.flags = HS_PROFILE_SAMPLING,
		.depth = o->stack_depth,
		.heaps = o->heaps,
		.sources = o->sources,
		.min_words = o->min_words,
		.max_words = o->max_words ? o->max_words : UINT64_MAX,
	};
	p->rates[0].keep_p = o->tier.keep_p;
	p->rates[0].tier = o->counters_only ? SONDE_TIERS : o->tier.tier;
	for (uint32_t i = 1; i < HS_RATES; i++)
		p->rates[i].seq = HS_RATE_RETIRED;
	if (o->one_user) {
		p->flags |= HS_PROFILE_ONE_USER;
		p->uid = o->uid;
	}
	if (o->lifetimes)
		p->flags |= HS_PROFILE_LIFETIMES;
	if (!o->domains)
		p->flags |= HS_PROFILE_ALL_DOMAINS;
}

/*
 * Programs that sleep wait for pages of the target, which may be those of a file system
 * that its user answers for (FUSE), or does not: whoever may have his own processes
 * profiled could hold up all that waits for such programs in this kernel. So only root gets them.
 */
static bool may_sleep(const struct attach_options *o, const struct kernel_features *kernel)
{
	return kernel->sleepable_uprobe && !o->one_user;
}

static void skeleton__configure(struct attachment *a, const struct attach_options *o,
				const struct kernel_features *kernel)
{
	struct heapsonde_bpf *s = a->skel;
	uint32_t max_blocks = (o->max_blocks ? o->max_blocks : ATTACH_MAX_BLOCKS) + 1;
	uint32_t ring_bytes = o->ring_bytes ? o->ring_bytes : ATTACH_RING_BYTES;
	struct bpf_program *prog;

	if (o->counters_only || !o->lifetimes)
		max_blocks = 2;
	if (o->counters_only)
		ring_bytes = RING_BYTES_COUNTERS;
	s->rodata->cfg_tgid = (uint32_t)a->target->pid;
	s->rodata->cfg_max_blocks = max_blocks;
	s->rodata->cfg_sleepable = may_sleep(o, kernel);
	bpf_map__set_max_entries(s->maps.blocks, max_blocks);
	bpf_map__set_max_entries(s->maps.ring, ring_bytes);
	s->rodata->cfg_ring_bytes = ring_bytes;
	bpf_map__set_max_entries(s->maps.stacks, o->max_stacks ? o->max_stacks : ATTACH_MAX_STACKS);
	if (o->counters_only)
		bpf_map__set_max_entries(s->maps.stacks, 1);
	bpf_object__for_each_program (prog, s->obj) {
		if (a->use_multi)
			bpf_program__set_expected_attach_type(prog, BPF_TRACE_UPROBE_MULTI);
		if (!may_sleep(o, kernel))
			bpf_program__set_flags(prog, bpf_program__flags(prog) & ~BPF_F_SLEEPABLE);
	}
}

static int load_failed(int code, struct hs_error *err)
{
	if (code == -ENOMEM)
		return hs_error__set(err, code,
				     "the kernel has no memory for the BPF maps: ask for less "
				     "(--ring-size, --max-blocks), or raise the limit of the "
				     "control group that this runs in (memory.max)");
	return hs_error__set(err, code,
			     "the kernel refused the BPF programs: %s (set "
			     "HEAPSONDE_LIBBPF_DEBUG=1 to see why)",
			     strerror(-code));
}

static int load(struct attachment *a, const struct attach_options *o,
		const struct kernel_features *kernel, struct hs_error *err)
{
	int ret;

	libbpf_set_print(print_libbpf);
	a->skel = heapsonde_bpf__open();
	if (!a->skel)
		return hs_error__set(err, -errno, "cannot open the BPF object: %s",
				     strerror(errno));
	skeleton__configure(a, o, kernel);
	ret = heapsonde_bpf__load(a->skel);
	if (ret)
		return load_failed(ret, err);
	/* libbpf does without the mapping where a trial of it failed; we do not. */
	if (!a->skel->bss)
		return load_failed(-ENOMEM, err);
	profile__write(a, o);
	ret = domains__enter(a, o);
	if (ret == -ESRCH)
		return target__gone(a->target, err);
	if (ret == -EFAULT || ret == -EPROTO)
		return hs_error__set(err, ret, "process %d shows domains that cannot be read",
				     (int)a->target->pid);
	if (ret == -E2BIG)
		return hs_error__set(err, ret,
				     "process %d says that it has more domains than any "
				     "OCaml program can have",
				     (int)a->target->pid);
	if (ret)
		return hs_error__set(err, ret, "cannot set up the BPF maps: %s", strerror(-ret));
	return 0;
}

/* Attach one program to one probe of the target, unless it is. */
static int attach(struct attachment *a, struct bpf_link **to, struct bpf_program *prog,
		  const struct probe_site *site, struct hs_error *err)
{
	unsigned long offset = site->offset + (a->skip_nop ? 1 : 0);
	unsigned long sem = site->sem_offset;
	struct detach_list refused = { 0 };
	struct bpf_link *link;
	int ret;

	if (*to)
		return 0;
	if (a->use_multi) {
		LIBBPF_OPTS(bpf_uprobe_multi_opts, multi, .offsets = &offset,
			    .ref_ctr_offsets = &sem, .cnt = 1);

		link = bpf_program__attach_uprobe_multi(prog, a->target->pid, a->target->exe_proc,
							NULL, &multi);
	} else {
		LIBBPF_OPTS(bpf_uprobe_opts, single, .ref_ctr_offset = sem);

		link = bpf_program__attach_uprobe_opts(prog, a->target->pid, a->target->exe_proc,
						       offset, &single);
	}
	if (!link) {
		ret = -errno;
		if (ret == -ESRCH)
			return target__gone(a->target, err);
		return hs_error__set(err, ret, "cannot attach %s to PID %d: %s",
				     bpf_program__name(prog), a->target->pid, strerror(-ret));
	}
	ret = registry__check_counted(a->target, site, err);
	if (ret) {
		detach_list__add(&refused, &link);
		detach_list__run(&refused, a->use_multi);
	} else {
		*to = link;
	}
	return ret;
}

/* The stack class that holds that many frames. */
static unsigned int stack_class(uint32_t depth)
{
	unsigned int i = 0;

	while (i < SONDE_STACK_CLASSES - 1 && (uint32_t)SONDE_STACK_MIN << i < depth)
		i++;
	return i;
}

int attachment__attach_tier(struct attachment *a, unsigned int tier, struct hs_error *err)
{
	return attach(a, &a->tiers[tier], a->skel->progs.hs_alloc, &a->target->probes.alloc[tier],
		      err);
}

static int attach_all(struct attachment *a, const struct attach_options *o, struct hs_error *err)
{
	const struct probe_set *probes = &a->target->probes;
	struct heapsonde_bpf *s = a->skel;
	const struct {
		struct bpf_program *prog;
		const struct probe_site *site;
	} gc[] = {
		{ s->progs.hs_domain_terminate, &probes->domain_terminate },
		{ s->progs.hs_exit, &probes->exit },
		{ s->progs.hs_compact, &probes->compact },
		{ s->progs.hs_major_end, &probes->major_end },
		{ s->progs.hs_minor_end, &probes->minor_end },
		{ s->progs.hs_domain_spawn, &probes->domain_spawn },
	};
	int ret;

	_Static_assert(sizeof(gc) / sizeof(gc[0]) == GC_LINKS, "a link for each");
	for (size_t i = 0; i < GC_LINKS; i++) {
		ret = attach(a, &a->gc[i], gc[i].prog, gc[i].site, err);
		if (ret)
			return ret;
	}
	if (o->counters_only)
		return 0;
	if (o->stack_depth) {
		ret = attach(a, &a->stack, s->progs.hs_nothing,
			     &probes->stack[stack_class(o->stack_depth)], err);
		if (ret)
			return ret;
	}
	return attachment__attach_tier(a, o->tier.tier, err);
}

/* May the ten-byte nop be attached? Only if the kernel optimizes it and the file
 * really has one at every site (in memory it may differ after a detach). */
static bool can_skip_nop(const struct target *t, const struct kernel_features *kernel)
{
	bool all = true;
	int fd;

	if (!kernel->nop10)
		return false;
	fd = open(t->exe_proc, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	for (int k = 0; all && k < SONDE_TIERS; k++)
		all = notes__site_has_nop10(fd, t->probes.alloc[k].offset) == 1;
	for (int i = 0; all && i < SONDE_STACK_CLASSES; i++)
		all = notes__site_has_nop10(fd, t->probes.stack[i].offset) == 1;
	all = all && notes__site_has_nop10(fd, t->probes.minor_end.offset) == 1 &&
	      notes__site_has_nop10(fd, t->probes.major_end.offset) == 1 &&
	      notes__site_has_nop10(fd, t->probes.compact.offset) == 1 &&
	      notes__site_has_nop10(fd, t->probes.domain_spawn.offset) == 1 &&
	      notes__site_has_nop10(fd, t->probes.domain_terminate.offset) == 1 &&
	      notes__site_has_nop10(fd, t->probes.exit.offset) == 1;
	close(fd);
	return all;
}

int attachment__new(struct attachment **out, const struct target *t,
		    const struct attach_options *options, const struct kernel_features *kernel,
		    struct hs_error *err)
{
	struct attachment *a = calloc(1, sizeof(*a));
	int ret;

	if (!a)
		return hs_error__set(err, -ENOMEM, "out of memory");
	a->target = t;
	a->counters_only = options->counters_only;
	a->use_multi = kernel->uprobe_multi && kernel->uprobe_multi_by_pid;
	a->skip_nop = can_skip_nop(t, kernel);
	ret = load(a, options, kernel, err);
	if (!ret)
		ret = attach_all(a, options, err);
	if (ret) {
		attachment__free(a);
		return ret;
	}
	*out = a;
	return 0;
}

static void add_sampling_links(struct attachment *a, struct detach_list *l)
{
	for (int k = 0; k < SONDE_TIERS; k++)
		detach_list__add(l, &a->tiers[k]);
	detach_list__add(l, &a->stack);
}

void attachment__stop_sampling(struct attachment *a)
{
	struct hs_profile *p = attachment__profile(a);
	struct detach_list list = { 0 };

	__atomic_and_fetch(&p->flags, ~HS_PROFILE_SAMPLING, __ATOMIC_SEQ_CST);
	add_sampling_links(a, &list);
	detach_list__run(&list, a->use_multi);
}

void attachment__detach(struct attachment *a)
{
	struct detach_list list = { 0 };

	/* From here on the programs do nothing, so no order among them matters. */
	if (a->skel && a->skel->bss)
		__atomic_store_n(&a->skel->bss->stopped, true, __ATOMIC_RELAXED);
	add_sampling_links(a, &list);
	for (int i = 0; i < GC_LINKS; i++)
		detach_list__add(&list, &a->gc[i]);
	detach_list__run(&list, a->use_multi);
}

void attachment__free(struct attachment *a)
{
	if (!a)
		return;
	attachment__detach(a);
	heapsonde_bpf__destroy(a->skel);
	free(a);
}

int attachment__ring_fd(const struct attachment *a)
{
	return bpf_map__fd(a->skel->maps.ring);
}

int attachment__domains_fd(const struct attachment *a)
{
	return bpf_map__fd(a->skel->maps.domains);
}

int attachment__blocks_fd(const struct attachment *a)
{
	return bpf_map__fd(a->skel->maps.blocks);
}

uint32_t attachment__max_blocks(const struct attachment *a)
{
	return bpf_map__max_entries(a->skel->maps.blocks);
}

uint32_t attachment__number(const struct attachment *a)
{
	return attachment__profile(a)->number;
}

uint32_t attachment__orphans(const struct attachment *a)
{
	return (uint32_t)__atomic_load_n(&a->skel->bss->orphan_blocks, __ATOMIC_RELAXED);
}

void attachment__losses(const struct attachment *a, uint64_t lost[HS_LOSS_CAUSES])
{
	for (int i = 0; i < HS_LOSS_CAUSES; i++)
		lost[i] = __atomic_load_n(&a->skel->bss->lost_anywhere[i], __ATOMIC_RELAXED);
}

int attachment__missed(const struct attachment *a, uint64_t *missed)
{
	struct bpf_program *prog;

	*missed = 0;
	bpf_object__for_each_program (prog, a->skel->obj) {
		struct bpf_prog_info info = { 0 };
		__u32 len = sizeof(info);
		int err = bpf_prog_get_info_by_fd(bpf_program__fd(prog), &info, &len);

		if (err)
			return err;
		*missed += info.recursion_misses;
	}
	return 0;
}
