/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sink that never blocks; see consumer.h.
 *
 * In:   records.
 * Out:  those that find room in the queue (outbox.h), with what has to be told before
 *       them (consumer_told.h), and how many do not.
 *
 * The sink of the format writes into a stdio stream whose bytes are staged here. A
 * record goes into the queue whole, when all of it has been staged, together with
 * what had to be told before it.
 */
#include "user/sinks/consumer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/common/clock.h"
#include "user/sinks/consumer_told.h"
#include "user/sinks/outbox.h"

struct consumer {
	struct sink base;
	enum sink_format format;
	struct sink *inner; /* writes to the stage */
	struct outbox *outbox;
	uint64_t queue_bytes;

	char *stage; /* the record in the making */
	size_t n_stage, stage_room;

	struct consumer_told told; /* and what is owed */
	struct consumer_losses losses;
	struct consumer_losses untold; /* of these, not in a loss record yet */
	uint64_t untold_since_ns;
	bool is_doubt_told; /* a loss record has told that lives are missing */
	int error;          /* of ours; the outbox has its own */
	bool is_finished;
};

/* ---- the queue ---- */

/* How badly a record wants in. */
enum urgency { BULK, EVENT, VITAL, LAST };

static bool has_room(const struct consumer *c, enum urgency urgency)
{
	uint64_t queued = outbox__queued(c->outbox);

	switch (urgency) {
	case BULK:
		return queued < (c->untold.records ? c->queue_bytes / 2 : c->queue_bytes / 4 * 3);
	case EVENT:
		return queued < c->queue_bytes / 8 * 7;
	case VITAL:
		return queued < c->queue_bytes;
	case LAST:
		break;
	}
	return true;
}

static bool is_over(const struct consumer *c)
{
	return c->is_finished || c->error || outbox__error(c->outbox);
}

static void fail(struct consumer *c, int err)
{
	if (!c->error)
		c->error = err;
}

/* event: NULL for a record that has no fixed form. */
static void leave_out(struct consumer *c, const struct hs_event *event)
{
	if (!c->untold.records)
		c->untold_since_ns = clock__now_ns();
	consumer_losses__count(&c->losses, event);
	consumer_losses__count(&c->untold, event);
}

/* What stdio calls to write: memory is all that can be short. */
static ssize_t stage(void *cookie, const char *bytes, size_t n)
{
	struct consumer *c = cookie;

	if (n > c->stage_room - c->n_stage) {
		size_t room = 2 * (c->n_stage + n);
		char *grown = realloc(c->stage, room);

		if (!grown) {
			errno = ENOMEM;
			return 0;
		}
		c->stage = grown;
		c->stage_room = room;
	}
	memcpy(c->stage + c->n_stage, bytes, n);
	c->n_stage += n;
	return (ssize_t)n;
}

/* Queue what has been staged, unless making it ended in err. */
static void commit(struct consumer *c, int err)
{
	if (!err)
		err = c->inner->ops->flush(c->inner);
	if (!err)
		err = outbox__put(c->outbox, c->stage, c->n_stage);
	c->n_stage = 0;
	if (err)
		fail(c, err);
}

/* ---- what was put off ---- */

/*
 * Tell how much is missing. Of lives this is told when the first one is left out, for from
 * then on blocks that have no end may be dead. No block is let in before the next time.
 */
static int tell_loss(struct consumer *c)
{
	json_t *o = consumer_losses__record(&c->untold, c->untold_since_ns, clock__now_ns());
	int err = o ? c->inner->ops->json(c->inner, o) : -ENOMEM;

	c->untold = (struct consumer_losses){ 0 };
	json_decref(o);
	return err;
}

/* What was put off comes before a record that is let in. */
static int settle(struct consumer *c, enum urgency urgency)
{
	int err = consumer_told__settle(&c->told);

	if (!err && c->untold.records &&
	    (urgency == LAST || outbox__queued(c->outbox) < c->queue_bytes / 2)) {
		c->is_doubt_told = false;
		err = tell_loss(c);
	}
	return err;
}

/* ---- the sink ---- */

static enum urgency urgency_of_json(const json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));

	if (type && !strcmp(type, "summary"))
		return LAST;
	return type && !strcmp(type, "counters") ? EVENT : VITAL;
}

static int consumer__json(struct sink *base, json_t *object)
{
	enum urgency urgency = urgency_of_json(object);
	struct consumer *c = (struct consumer *)base;
	json_t *own;
	int err;

	if (is_over(c))
		return 0;
	if (!has_room(c, urgency)) {
		leave_out(c, NULL);
		return 0;
	}
	own = urgency == LAST ? consumer_losses__in_summary(&c->losses, object)
			      : json_incref(object);
	err = own ? settle(c, urgency) : -ENOMEM;
	commit(c, err ? err : c->inner->ops->json(c->inner, own));
	json_decref(own);
	return 0;
}

/* One that is left out is told with its next use, and not counted. */
static int consumer__stack(struct sink *base, const struct hs_event *event,
			   const struct stack *stack)
{
	struct consumer *c = (struct consumer *)base;
	int err;

	if (is_over(c) || !has_room(c, BULK))
		return 0;
	err = settle(c, BULK);
	commit(c, err ? err : consumer_told__stack(&c->told, event, stack));
	return 0;
}

static int consumer__stack_again(struct sink *base, const struct hs_event *event,
				 const struct stack *stack)
{
	const struct consumer *c = (const struct consumer *)base;

	return c->format != SINK_JSONL ? consumer__stack(base, event, stack) : 0;
}

static enum urgency urgency_of(const struct hs_event *event)
{
	switch (event->type) {
	case HS_REC_ALLOC:
		return BULK;
	case HS_REC_RATE:
		return VITAL;
	default:
		return EVENT;
	}
}

static int consumer__event(struct sink *base, const struct hs_event *event,
			   const struct stack *stack)
{
	struct consumer *c = (struct consumer *)base;
	enum urgency urgency = urgency_of(event);
	int err;

	/* An exit is no line. */
	if (is_over(c) || (event->type == HS_REC_EXIT && c->format == SINK_JSONL))
		return 0;
	if (!has_room(c, urgency)) {
		if (event->type == HS_REC_RATE) {
			err = consumer_told__owe(&c->told, event->rate);
			if (err)
				fail(c, err);
			return 0;
		}
		if (event->type == HS_REC_DOMAIN_TERMINATE)
			consumer_told__disown(&c->told, event->h->domain);
		leave_out(c, event);
		if (c->untold.lives && !c->is_doubt_told && has_room(c, VITAL)) {
			c->is_doubt_told = true;
			commit(c, tell_loss(c));
		}
		return 0;
	}
	err = settle(c, urgency);
	commit(c, err ? err : consumer_told__event(&c->told, event, stack));
	return 0;
}

static int consumer__flush(struct sink *base)
{
	struct consumer *c = (struct consumer *)base;

	if ((c->untold.records || c->told.owed) && !is_over(c) && has_room(c, BULK))
		commit(c, settle(c, BULK));
	else if (!is_over(c))
		commit(c, 0); /* what a compressed capture has held back */
	outbox__push(c->outbox);
	return 0;
}

static void consumer__free(struct sink *base)
{
	struct consumer *c = (struct consumer *)base;

	/* Closes the stream, which may stage what a failed record has left in it. */
	sink__free(c->inner);
	outbox__free(c->outbox);
	consumer_told__deinit(&c->told);
	free(c->stage);
	free(c);
}

static const struct sink_ops consumer_ops = {
	.json = consumer__json,
	.stack = consumer__stack,
	.stack_again = consumer__stack_again,
	.event = consumer__event,
	/* Threads are made up here, for each consumer. */
	.thread = NULL,
	.flush = consumer__flush,
	.free = consumer__free,
};

static int open_inner(struct consumer *c)
{
	const cookie_io_functions_t io = { .write = stage };
	FILE *f = fopencookie(c, "w", io);

	if (!f)
		return -ENOMEM;
	return sink__new_file(&c->inner, f, c->format);
}

int consumer__new(struct sink **out, int fd, enum sink_format format, size_t queue_bytes)
{
	struct consumer *c = calloc(1, sizeof(*c));
	int err;

	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	c->base.ops = &consumer_ops;
	c->format = format;
	c->queue_bytes =
		queue_bytes < CONSUMER_QUEUE_MIN_BYTES ? CONSUMER_QUEUE_MIN_BYTES : queue_bytes;
	err = outbox__new(&c->outbox, fd, format == SINK_JSONL);
	if (!err)
		err = open_inner(c);
	if (!err)
		err = consumer_told__init(&c->told, c->inner, format);
	if (!err) {
		commit(c, 0); /* the head of a capture */
		err = c->error;
	}
	if (err) {
		consumer__free(&c->base);
		return err;
	}
	*out = &c->base;
	return 0;
}

/* ---- what becomes of it ---- */

int consumer__error(const struct sink *consumer)
{
	const struct consumer *c = (const struct consumer *)consumer;

	return c->error ? c->error : outbox__error(c->outbox);
}

struct consumer_losses consumer__losses(const struct sink *consumer)
{
	return ((const struct consumer *)consumer)->losses;
}

uint64_t consumer__dropped(const struct sink *consumer)
{
	return consumer__losses(consumer).records;
}

uint64_t consumer__written(const struct sink *consumer)
{
	return outbox__written(((const struct consumer *)consumer)->outbox);
}

uint64_t consumer__queued(const struct sink *consumer)
{
	return outbox__queued(((const struct consumer *)consumer)->outbox);
}

int consumer__finish(struct sink *consumer)
{
	struct consumer *c = (struct consumer *)consumer;

	/* With a summary it has been told already. */
	if (c->untold.records && !is_over(c))
		commit(c, settle(c, LAST));
	c->is_finished = true;
	return outbox__finish(c->outbox);
}
