/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile in this process, for root; see source.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/cli/attach_notes.h"
#include "user/collect/collect.h"
#include "user/common/clock.h"
#include "user/top/source.h"

struct direct {
	struct source base;
	struct kernel_features kernel;
	struct target *target;
	struct symbolizer *symbolizer;
	struct profile *profile;
	uint64_t next_tick_ns;
};

void source__free(struct source *s)
{
	if (s)
		s->ops->free(s);
}

static int fds(const struct source *s, struct pollfd *fds)
{
	const struct direct *d = (const struct direct *)s;

	if (s->has_ended)
		return 0;
	fds[0] = (struct pollfd){ .fd = d->target->pidfd, .events = POLLIN };
	return 1;
}

static int error_of(int code, struct hs_error *err)
{
	return code ? hs_error__set(err, code, "cannot read the records: %s", strerror(-code)) : 0;
}

static int finish(struct source *s, enum end_reason reason, struct hs_error *err)
{
	struct direct *d = (struct direct *)s;
	int ret;

	if (s->has_ended)
		return 0;
	s->has_ended = true;
	s->has_rate = false;
	s->wait_ms = -1;
	ret = profile__finish(d->profile, reason);
	return error_of(ret == -EALREADY ? 0 : ret, err);
}

/* Has the program gone, or become another one? */
static enum end_reason end_of(const struct direct *d)
{
	struct pollfd fd = { .fd = d->target->pidfd, .events = POLLIN };

	if (poll(&fd, 1, 0) > 0)
		return END_TARGET_EXITED;
	return target__has_execed(d->target) ? END_TARGET_EXECED : END_NONE;
}

static int tick(struct direct *d, struct hs_error *err)
{
	enum end_reason reason;
	int ret;

	d->next_tick_ns = clock__now_ns() + PROFILE_TICK_NS;
	ret = profile__tick(d->profile);
	if (ret)
		return error_of(ret, err);
	if (d->profile->state != PROFILE_SAMPLING)
		d->base.has_rate = false;
	reason = end_of(d);
	return reason ? finish(&d->base, reason, err) : 0;
}

static int step(struct source *s, struct hs_error *err)
{
	struct direct *d = (struct direct *)s;
	int n, ret;

	if (s->has_ended)
		return 0;
	n = profile__drain(d->profile);
	if (n < 0)
		return error_of(n, err);
	if (clock__now_ns() >= d->next_tick_ns) {
		ret = tick(d, err);
		if (ret)
			return ret;
	}
	return !s->has_ended && n == COLLECT_BATCH;
}

static int set_rate(struct source *s, double rate, struct hs_error *err)
{
	struct direct *d = (struct direct *)s;
	struct tier_choice tier;

	if (tier_choice__make(rate, &tier))
		return hs_error__set(err, -ERANGE, "there is no such rate");
	return profile__set_rate(d->profile, &tier, err);
}

static void free_direct(struct source *s)
{
	struct direct *d = (struct direct *)s;

	profile__free(d->profile);
	symbolizer__free(d->symbolizer);
	target__free(d->target);
	free(d);
}

static const struct source_ops ops = {
	.fds = fds,
	.step = step,
	.set_rate = set_rate,
	.finish = finish,
	.free = free_direct,
};

static int begin_profile(struct direct *d, const struct source_options *o, struct hs_error *err)
{
	uint64_t before_ns = clock__now_ns();
	int ret;

	attach_notes__target(d->target, &d->kernel);
	ret = profile__begin(&d->profile, o->profile, d->target, &d->kernel, d->symbolizer, o->sink,
			     false, err);
	if (!ret)
		attach_notes__attached(&o->profile->attach, clock__now_ns() - before_ns);
	return ret;
}

int source__begin_direct(struct source **out, const struct source_options *o, struct hs_error *err)
{
	struct direct *d = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return hs_error__set(err, -ENOMEM, "out of memory");
	d->base = (struct source){ .ops = &ops, .has_rate = true, .wait_ms = PROFILE_DRAIN_MS };
	ret = kernel_features__probe(&d->kernel, err);
	if (!ret)
		ret = target__open_probed(&d->target, o->pid, err);
	if (!ret)
		ret = kernel_features__require(&d->kernel, err);
	if (!ret)
		ret = symbolizer__new(&d->symbolizer, d->target, err);
	if (!ret)
		ret = begin_profile(d, o, err);
	if (ret) {
		free_direct(&d->base);
		return ret;
	}
	/* Nothing has been drained yet, so the heap misses nothing. */
	d->profile->pipeline.heap = o->heap;
	*out = &d->base;
	return 0;
}
