/* SPDX-License-Identifier: BSD-2-Clause */
/* Several sinks as one; see consumer.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/sinks/consumer.h"

struct fanout {
	struct sink base;
	struct sink **sinks; /* in the order in which they were added */
	size_t n_sinks, room;
};

/* Tell all sinks that have this function; err is an int of the caller, 0 before. */
#define TELL_ALL(base, err, function, ...)                                                         \
	do {                                                                                       \
		struct fanout *f = (struct fanout *)(base);                                        \
                                                                                                   \
		for (size_t i = 0; i < f->n_sinks; i++) {                                          \
			struct sink *s = f->sinks[i];                                              \
			int ret = s->ops->function ? s->ops->function(s, ##__VA_ARGS__) : 0;       \
                                                                                                   \
			if (!(err))                                                                \
				(err) = ret;                                                       \
		}                                                                                  \
	} while (0)

static int fanout__json(struct sink *base, json_t *object)
{
	int err = 0;

	TELL_ALL(base, err, json, object);
	return err;
}

static int fanout__stack(struct sink *base, const struct hs_event *event, const struct stack *stack)
{
	int err = 0;

	TELL_ALL(base, err, stack, event, stack);
	return err;
}

static int fanout__stack_again(struct sink *base, const struct hs_event *event,
			       const struct stack *stack)
{
	int err = 0;

	TELL_ALL(base, err, stack_again, event, stack);
	return err;
}

static int fanout__event(struct sink *base, const struct hs_event *event, const struct stack *stack)
{
	int err = 0;

	TELL_ALL(base, err, event, event, stack);
	return err;
}

static int fanout__thread(struct sink *base, uint32_t tid, uint32_t domain, uint64_t time_ns)
{
	int err = 0;

	TELL_ALL(base, err, thread, tid, domain, time_ns);
	return err;
}

static int fanout__flush(struct sink *base)
{
	int err = 0;

	TELL_ALL(base, err, flush);
	return err;
}

static void fanout__free(struct sink *base)
{
	struct fanout *f = (struct fanout *)base;

	free(f->sinks);
	free(f);
}

static const struct sink_ops fanout_ops = {
	.json = fanout__json,
	.stack = fanout__stack,
	.stack_again = fanout__stack_again,
	.event = fanout__event,
	.thread = fanout__thread,
	.flush = fanout__flush,
	.free = fanout__free,
};

int fanout__new(struct sink **out)
{
	struct fanout *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->base.ops = &fanout_ops;
	*out = &f->base;
	return 0;
}

int fanout__add(struct sink *fanout, struct sink *s)
{
	struct fanout *f = (struct fanout *)fanout;

	if (f->n_sinks == f->room) {
		size_t room = f->room ? 2 * f->room : 4;
		struct sink **grown = realloc(f->sinks, room * sizeof(struct sink *));

		if (!grown)
			return -ENOMEM;
		f->sinks = grown;
		f->room = room;
	}
	f->sinks[f->n_sinks++] = s;
	return 0;
}

void fanout__remove(struct sink *fanout, struct sink *s)
{
	struct fanout *f = (struct fanout *)fanout;

	for (size_t i = 0; i < f->n_sinks; i++) {
		if (f->sinks[i] != s)
			continue;
		f->n_sinks--;
		memmove(&f->sinks[i], &f->sinks[i + 1], (f->n_sinks - i) * sizeof(struct sink *));
		return;
	}
}
