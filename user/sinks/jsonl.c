/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON lines.
 *
 * In:   what every sink gets (sink.h).
 * Out:  one object a line (json.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/sinks/json.h"
#include "user/sinks/sink.h"

struct jsonl_sink {
	struct sink base;
	FILE *file;
	bool has_failed;
};

/* What stdio or the kernel said. errno was 0 before. */
static int fail(struct jsonl_sink *s)
{
	s->has_failed = true;
	return errno ? -errno : -EIO;
}

/*
 * Is what was printed on its way? A call may succeed although it could not write: where all that it
 * was given is in the buffer by then, stdio takes it for written, throws the buffer away, and only
 * remembers that there was an error.
 */
static int check(struct jsonl_sink *s, bool ok)
{
	return ok && !ferror(s->file) ? 0 : fail(s);
}

/*
 * After a failed write a file may end within a line: cut it back to its last whole
 * one, so that what was written stays readable. What is no file is left alone.
 */
static void cut_to_last_line(int fd)
{
	char path[64], buffer[4096];
	struct stat st;
	off_t end;
	int in;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	/* The descriptor may be open for writing only. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	in = open(path, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return;
	for (end = st.st_size; end > 0;) {
		off_t from = end > (off_t)sizeof(buffer) ? end - (off_t)sizeof(buffer) : 0;
		ssize_t n = pread(in, buffer, (size_t)(end - from), from);

		if (n < 0) {
			end = st.st_size; /* then it stays cut within a line */
			break;
		}
		while (n > 0 && buffer[n - 1] != '\n')
			n--;
		end = from + n;
		if (n)
			break;
	}
	if (end < st.st_size && ftruncate(fd, end))
		errno = 0;
	close(in);
}

static int write_line(struct jsonl_sink *s, json_t *object)
{
	/* stdio knows its own errno; jansson only that something failed. */
	errno = 0;
	return check(s,
		     !json_dumpf(object, s->file, JSON_LINE_FLAGS) && putc('\n', s->file) != EOF);
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

/*
 * The records that come by the million hold numbers and fixed words only, so
 * nothing needs quoting: printing them directly gives the same text as json.h
 * (the unit tests compare) in a tenth of the time: 0.4 µs instead of 4.5 for an
 * allocation, measured side by side.
 */
static int print_alloc(FILE *f, const struct hs_rec_alloc *r, const struct stack *stack)
{
	char id[16] = "null";

	if (!r->stack_hash || stack)
		snprintf(id, sizeof(id), "%" PRIu32, stack ? stack->id : 0);
	return fprintf(f,
		       "{\"type\":\"alloc_%s\",\"id\":%" PRIu64 ",\"profile\":%" PRIu32
		       ",\"domain\":%" PRIu32 ",\"thread\":%" PRIu32 ",\"time\":%" PRIu64
		       ",\"n_samples\":%" PRIu64 ",\"size\":%" PRIu64
		       ",\"source\":\"%s\",\"stack\":%s,\"tracked\":%s}\n",
		       r->heap == HS_HEAP_MINOR ? "minor" : "major", (uint64_t)r->id, r->h.profile,
		       r->h.domain, r->h.tid, (uint64_t)r->h.time_ns, (uint64_t)r->n_samples,
		       (uint64_t)r->size_words, decode__source_name(r->source), id,
		       r->is_tracked ? "true" : "false");
}

static int print_block(FILE *f, const struct hs_rec_block *r, const char *type)
{
	return fprintf(f,
		       "{\"type\":\"%s\",\"id\":%" PRIu64 ",\"profile\":%" PRIu32
		       ",\"domain\":%" PRIu32 ",\"thread\":%" PRIu32 ",\"time\":%" PRIu64 "}\n",
		       type, (uint64_t)r->id, r->h.profile, r->h.domain, r->h.tid,
		       (uint64_t)r->h.time_ns);
}

static int jsonl_sink__thread(struct sink *base, uint32_t tid, uint32_t domain, uint64_t time_ns)
{
	struct jsonl_sink *s = (struct jsonl_sink *)base;

	errno = 0;
	return check(s, fprintf(s->file,
				"{\"type\":\"thread\",\"thread\":%" PRIu32 ",\"domain\":%" PRIu32
				",\"time\":%" PRIu64 "}\n",
				tid, domain, time_ns) > 0);
}

static int jsonl_sink__event(struct sink *base, const struct hs_event *event,
			     const struct stack *stack)
{
	struct jsonl_sink *s = (struct jsonl_sink *)base;
	int n;

	errno = 0;
	switch (event->type) {
	case HS_REC_ALLOC:
		n = print_alloc(s->file, event->alloc, stack);
		break;
	case HS_REC_PROMOTE:
	case HS_REC_DEALLOC:
	case HS_REC_UNKNOWN:
		n = print_block(s->file, event->block, json__type_name(event));
		break;
	case HS_REC_EXIT:
		/* It only brings the last counters, which stand in the summary. */
		return 0;
	default:
		return write_new(s, json__event(event, stack));
	}
	return check(s, n > 0);
}

static int jsonl_sink__flush(struct sink *base)
{
	struct jsonl_sink *s = (struct jsonl_sink *)base;

	errno = 0;
	return check(s, !fflush(s->file));
}

static void jsonl_sink__free(struct sink *base)
{
	struct jsonl_sink *s = (struct jsonl_sink *)base;

	if (s->has_failed) {
		__fpurge(s->file);
		cut_to_last_line(fileno(s->file));
	}
	fclose(s->file);
	free(s);
}

static const struct sink_ops jsonl_ops = {
	.json = jsonl_sink__json,
	.stack = jsonl_sink__stack,
	.event = jsonl_sink__event,
	.thread = jsonl_sink__thread,
	.flush = jsonl_sink__flush,
	.free = jsonl_sink__free,
};

int jsonl_sink__new_file(struct sink **out, FILE *f)
{
	struct jsonl_sink *s = calloc(1, sizeof(*s));

	if (!s) {
		fclose(f);
		return -ENOMEM;
	}
	s->base.ops = &jsonl_ops;
	s->file = f;
	*out = &s->base;
	return 0;
}
