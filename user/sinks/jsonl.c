/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON lines.
 *
 * In:   what every sink gets (sink.h).
 * Out:  one object a line (json.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "user/sinks/json.h"
#include "user/sinks/sink.h"

struct jsonl_sink {
	struct sink base;
	FILE *file;
};

static int write_line(struct jsonl_sink *s, json_t *object)
{
	/* stdio knows its own errno; jansson only that something failed. */
	errno = 0;
	if (!json_dumpf(object, s->file, JSON_LINE_FLAGS) && putc('\n', s->file) != EOF)
		return 0;
	return errno ? -errno : -EIO;
}

static int write_new(struct jsonl_sink *s, json_t *object)
{
	int err;

	if (!object)
		return -ENOMEM;
	err = write_line(s, object);
	json_decref(object);
	return err;
}

static int jsonl_sink__json(struct sink *s, json_t *object)
{
	return write_line((struct jsonl_sink *)s, object);
}

static int jsonl_sink__stack(struct sink *s, const struct hs_event *event,
			     const struct stack *stack)
{
	(void)event;
	return write_new((struct jsonl_sink *)s, json__stack(stack));
}

static int jsonl_sink__event(struct sink *s, const struct hs_event *event,
			     const struct stack *stack)
{
	/* It only brings the last counters, which stand in the summary. */
	if (event->type == HS_REC_EXIT)
		return 0;
	return write_new((struct jsonl_sink *)s, json__event(event, stack));
}

static int jsonl_sink__flush(struct sink *s)
{
	return fflush(((struct jsonl_sink *)s)->file) ? -errno : 0;
}

static void jsonl_sink__free(struct sink *s)
{
	fclose(((struct jsonl_sink *)s)->file);
	free(s);
}

static const struct sink_ops jsonl_ops = {
	.json = jsonl_sink__json,
	.stack = jsonl_sink__stack,
	.event = jsonl_sink__event,
	.flush = jsonl_sink__flush,
	.free = jsonl_sink__free,
};

int jsonl_sink__new(struct sink **out, int fd)
{
	struct jsonl_sink *s = calloc(1, sizeof(*s));

	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->base.ops = &jsonl_ops;
	s->file = fdopen(fd, "w");
	if (!s->file) {
		int err = -errno;

		close(fd);
		free(s);
		return err;
	}
	*out = &s->base;
	return 0;
}
