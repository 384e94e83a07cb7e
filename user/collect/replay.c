/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole capture; see replay.h. */
#include "user/collect/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/collect/capture.h"

/* How much is read between two calls of progress. */
#define READ_BYTES (256u << 10)

/* ---- a sink for those who want the heap only ---- */

static int no_json(struct sink *s, json_t *object)
{
	(void)s;
	(void)object;
	return 0;
}

static int no_event(struct sink *s, const struct hs_event *event, const struct stack *stack)
{
	(void)s;
	(void)event;
	(void)stack;
	return 0;
}

static int no_flush(struct sink *s)
{
	(void)s;
	return 0;
}

static void no_free(struct sink *s)
{
	(void)s;
}

static const struct sink_ops no_ops = {
	.json = no_json, .stack = no_event, .event = no_event, .flush = no_flush, .free = no_free
};
static struct sink no_sink = { .ops = &no_ops };

/* ---- what the capture says of itself ---- */

static int keep(json_t **to, json_t *object)
{
	if (!*to)
		*to = json_incref(object);
	return 0;
}

/* Add a loss record to the sums. */
static int count_loss(struct replay *r, const json_t *loss)
{
	const char *cause = json_string_value(json_object_get(loss, "cause"));
	json_int_t n = json_integer_value(json_object_get(loss, "count")), sum;

	if (!cause || n <= 0)
		return 0;
	if (__builtin_add_overflow(json_integer_value(json_object_get(r->lost, cause)), n, &sum))
		sum = INT64_MAX;
	return json_object_set_new(r->lost, cause, json_integer(sum)) ? -ENOMEM : 0;
}

/* The summary knows more causes, and has the last word. */
static int keep_summary(struct replay *r, json_t *summary)
{
	json_t *lost = json_object_get(summary, "lost");

	if (json_is_object(lost) && json_object_update(r->lost, lost))
		return -ENOMEM;
	return keep(&r->summary, summary);
}

/* Times in the options count from the header's. */
static int make_heap(struct replay *r)
{
	struct heap_options options = *r->heap_options;
	json_int_t begin = json_integer_value(json_object_get(r->header, "time"));
	uint64_t begin_ns = begin > 0 ? (uint64_t)begin : 0;

	if (options.since_ns)
		options.since_ns += begin_ns;
	if (options.until_ns)
		options.until_ns += begin_ns;
	r->pipeline.heap = NULL;
	heap__free(r->heap);
	r->heap = NULL;
	if (heap__new(&r->heap, &options))
		return -ENOMEM;
	r->pipeline.heap = r->heap;
	return 0;
}

static int on_json(void *ctx, json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));
	struct replay *r = ctx;
	int err = 0;

	if (!type)
		return -EBADMSG;
	if (!strcmp(type, "header") && !r->header) {
		err = keep(&r->header, object);
		if (!err && r->heap_options)
			err = make_heap(r);
	} else if (!strcmp(type, "loss")) {
		err = count_loss(r, object);
	} else if (!strcmp(type, "summary")) {
		err = keep_summary(r, object);
	} else if (!strcmp(type, "counters")) {
		/* As old as the records of cycles: then none has ended before the first one. */
		r->tells_cycles = true;
	}
	return err ? err : pipeline__json(&r->pipeline, object);
}

static int on_event(void *ctx, const struct hs_event *event)
{
	struct replay *r = ctx;

	/* The first profile record tells the rate, without which nothing can be weighed. */
	if (r->pipeline.rate <= 0)
		return -EBADMSG;
	r->n_events++;
	r->tells_cycles |= event->type == HS_REC_MAJOR_CYCLE;
	return pipeline__event(&r->pipeline, event);
}

/* ---- reading ---- */

/* In messages. */
static const char *name_of(const struct replay *r)
{
	return strcmp(r->path, "-") ? r->path : "standard input";
}

static int out_of_memory(const struct replay *r, struct hs_error *err)
{
	return hs_error__set(err, -ENOMEM, "%s: out of memory", name_of(r));
}

static uint64_t size_of(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

/*
 * A pipe gives what it has: what comes from a recording is shown while it goes on. A file is
 * read up to where it ends now, for who writes it may be faster than we are.
 */
static int feed(struct replay *r, int fd, struct capture *c, char *buffer, struct hs_error *err)
{
	uint64_t done = 0, total = size_of(fd);
	ssize_t n;
	int ret;

	while (!total || done < total) {
		n = read(fd, buffer,
			 total && total - done < READ_BYTES ? total - done : READ_BYTES);
		if (!n)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return hs_error__set(err, -errno, "cannot read the capture: %s",
					     strerror(errno));
		ret = capture__feed(c, buffer, (size_t)n, err);
		if (ret)
			return ret;
		done += (uint64_t)n;
		if (r->progress)
			r->progress(r->progress_ctx, done, total);
	}
	return capture__end(c, err);
}

static int read_all(struct replay *r, int fd, struct hs_error *err)
{
	struct capture_reader reader = {
		.json = on_json, .event = on_event, .ctx = r, .symbolizer = r->symbolizer
	};
	struct hs_error detail = { "" };
	struct capture *c = NULL;
	char *buffer = malloc(READ_BYTES);
	int ret = buffer ? capture__new(&c, &reader) : -ENOMEM;

	if (!ret)
		ret = feed(r, fd, c, buffer, &detail);
	capture__free(c);
	free(buffer);
	r->is_cut = reader.is_cut || !r->summary;
	if (!ret && r->sink)
		ret = r->sink->ops->flush(r->sink);
	if (ret == -ENOMEM)
		return out_of_memory(r, err);
	if (ret && detail.text[0])
		return hs_error__set(err, ret, "%s: %s", name_of(r), detail.text);
	if (ret == -EBADMSG)
		return hs_error__set(err, ret, "%s: the capture is damaged: records without a rate",
				     name_of(r));
	if (ret)
		return hs_error__set(err, ret, "cannot write the output: %s", strerror(-ret));
	if (r->heap)
		heap__settle(r->heap);
	return 0;
}

int replay__run(struct replay *r, struct hs_error *err)
{
	bool is_stdin = !strcmp(r->path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(r->path, O_RDONLY | O_CLOEXEC | O_NOCTTY), ret;

	if (fd < 0)
		return hs_error__set(err, -errno, "cannot open %s: %s", name_of(r),
				     strerror(errno));
	r->lost = json_object();
	ret = r->lost ? symbolizer__new_empty(&r->symbolizer) : -ENOMEM;
	if (!ret)
		ret = pipeline__init(&r->pipeline, r->symbolizer, r->sink ? r->sink : &no_sink, 0,
				     false);
	ret = ret ? out_of_memory(r, err) : read_all(r, fd, err);
	if (!is_stdin)
		close(fd);
	return ret;
}

bool replay__is_repeatable(const char *path)
{
	struct stat st;

	return strcmp(path, "-") != 0 && !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Is `word` among the comma-separated ones of list? */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (; list && *list; list += *list == ',') {
		if (strcspn(list, ",") == n && !strncmp(list, word, n))
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

bool replay__follows(const struct replay *r)
{
	return !has_word(json_string_value(json_object_get(r->header, "track")), "alloc");
}

int replay__can_answer(const struct replay *r, enum rows_metric metric, struct hs_error *err)
{
	if (metric != ROWS_ALLOC && !replay__follows(r))
		return hs_error__set(err, -ENODATA,
				     "%s was recorded with --track alloc, which does not follow "
				     "blocks: only what was allocated is known (--metric alloc)",
				     name_of(r));
	if (metric == ROWS_SURVIVORS && !r->tells_cycles)
		return hs_error__set(
			err, -ENODATA,
			"%s does not tell when major cycles ended, so survivors are "
			"not known: record it again, with this heapsonde or for longer",
			name_of(r));
	return 0;
}

void replay__deinit(struct replay *r)
{
	heap__free(r->heap);
	pipeline__deinit(&r->pipeline);
	symbolizer__free(r->symbolizer);
	json_decref(r->header);
	json_decref(r->summary);
	json_decref(r->lost);
	r->heap = NULL;
	r->symbolizer = NULL;
	r->header = r->summary = r->lost = NULL;
}
