/* SPDX-License-Identifier: BSD-2-Clause */
/* The way of an event; see pipeline.h. */
#include "user/track/pipeline.h"

#include <errno.h>
#include <string.h>

int pipeline__init(struct pipeline *p, struct symbolizer *symbolizer, struct sink *sink,
		   double rate)
{
	int err;

	memset(p, 0, sizeof(*p));
	p->symbolizer = symbolizer;
	p->sink = sink;
	err = stack_table__new(&p->stacks, symbolizer);
	if (!err && rate > 0)
		err = site_table__new(&p->sites, rate);
	if (err)
		pipeline__deinit(p);
	return err;
}

void pipeline__deinit(struct pipeline *p)
{
	stack_table__free(p->stacks);
	site_table__free(p->sites);
	memset(p, 0, sizeof(*p));
}

static int on_stack(struct pipeline *p, const struct hs_event *event)
{
	const struct stack *stack;
	bool is_new;
	int err = stack_table__learn(p->stacks, event->stack, &stack, &is_new);

	if (err)
		return err;
	if (is_new)
		return p->sink->ops->stack(p->sink, event, stack);
	return p->sink->ops->stack_again ? p->sink->ops->stack_again(p->sink, event) : 0;
}

int pipeline__event(void *ctx, const struct hs_event *event)
{
	const struct stack *stack = NULL;
	struct pipeline *p = ctx;
	int err = 0;

	switch (event->type) {
	case HS_REC_STACK:
		return on_stack(p, event);
	case HS_REC_ALLOC:
		p->n_allocs++;
		if (event->alloc->stack_hash) {
			stack = stack_table__find(p->stacks, event->alloc->stack_hash);
			if (!stack)
				p->stacks_unknown++;
		}
		if (p->sites)
			err = site_table__alloc(p->sites, event->alloc, stack);
		break;
	case HS_REC_DEALLOC:
	case HS_REC_UNKNOWN:
		if (p->sites)
			site_table__end(p->sites, event->block->id, event->type == HS_REC_UNKNOWN);
		break;
	default:
		break;
	}
	return err ? err : p->sink->ops->event(p->sink, event, stack);
}
