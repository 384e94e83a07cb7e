/* SPDX-License-Identifier: BSD-2-Clause */
/* See readers.h. */
#include "user/daemon/readers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long an output may take for what waits in its queue, or for so many bytes of it. */
#define FINISH_US 5000000
#define FINISH_BYTES (1u << 20)

struct reader {
	struct reader *next;
	struct readers *all;
	struct sink *consumer;
	bool is_output;
	uint64_t finish_from;     /* bytes written when its time began */
	bool is_done;             /* its thread has ended */
	sd_event_source *hang_up; /* of a follower */
	sd_event_source *written; /* while finishing */
};

struct readers {
	struct sink *fanout; /* borrowed */
	sd_event *loop;      /* borrowed */
	struct reader *list;
	sd_event_source *deadline;
	int output_error; /* that no consumer knows: the time ran out */
	void (*done)(void *ctx);
	void *ctx;
};

int readers__new(struct readers **out, struct sink *fanout, sd_event *loop)
{
	struct readers *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->fanout = fanout;
	r->loop = loop;
	*out = r;
	return 0;
}

/* The sources go before the descriptor that they watch. */
static void reader__free(struct reader *reader)
{
	fanout__remove(reader->all->fanout, reader->consumer);
	sd_event_source_disable_unref(reader->hang_up);
	sd_event_source_disable_unref(reader->written);
	sink__free(reader->consumer);
	free(reader);
}

void readers__free(struct readers *r)
{
	if (!r)
		return;
	sd_event_source_disable_unref(r->deadline);
	while (r->list) {
		struct reader *reader = r->list;

		r->list = reader->next;
		reader__free(reader);
	}
	free(r);
}

static void unlink_and_free(struct reader *reader)
{
	struct reader **at = &reader->all->list;

	while (*at != reader)
		at = &(*at)->next;
	*at = reader->next;
	reader__free(reader);
}

/* ---- coming and going ---- */

static size_t queue_bytes(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) ? CONSUMER_FILE_QUEUE_BYTES
						      : CONSUMER_QUEUE_BYTES;
}

static int add(struct readers *r, int fd, enum sink_format format, struct reader **out)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	int ret;

	if (!reader) {
		close(fd);
		return -ENOMEM;
	}
	ret = consumer__new(&reader->consumer, fd, format, queue_bytes(fd));
	if (ret) {
		free(reader);
		return ret;
	}
	reader->all = r;
	reader->next = r->list;
	r->list = reader;
	*out = reader;
	return 0;
}

int readers__add_output(struct readers *r, int fd, enum sink_format format)
{
	struct reader *reader;
	int ret = add(r, fd, format, &reader);

	if (ret)
		return ret;
	reader->is_output = true;
	return fanout__add(r->fanout, reader->consumer);
}

static struct reader *find(struct readers *r, const struct sink *consumer)
{
	struct reader *reader = r->list;

	while (reader && reader->consumer != consumer)
		reader = reader->next;
	return reader;
}

static void check_done(struct readers *r);

static int on_hang_up(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	struct reader *reader = ctx;
	struct readers *r = reader->all;

	(void)source;
	(void)fd;
	(void)events;
	unlink_and_free(reader);
	check_done(r);
	return 0;
}

/*
 * Watch a duplicate of the follower's connection: the consumer's thread closes its own
 * when it likes, and the number may be somebody else's then.
 */
static int watch(struct reader *reader, int duplicate)
{
	int ret = sd_event_add_io(reader->all->loop, &reader->hang_up, duplicate, EPOLLRDHUP,
				  on_hang_up, reader);

	if (ret < 0)
		close(duplicate);
	else
		sd_event_source_set_io_fd_own(reader->hang_up, true);
	return ret;
}

int readers__add_follower(struct readers *r, int fd, enum sink_format format,
			  struct sink **consumer)
{
	int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 0), ret;
	struct reader *reader;

	if (duplicate < 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	ret = add(r, fd, format, &reader);
	if (ret) {
		close(duplicate);
		return ret;
	}
	ret = watch(reader, duplicate);
	if (ret < 0) {
		unlink_and_free(reader);
		return ret;
	}
	*consumer = reader->consumer;
	return 0;
}

int readers__join(struct readers *r, struct sink *consumer)
{
	return fanout__add(r->fanout, consumer);
}

void readers__drop(struct readers *r, struct sink *consumer)
{
	struct reader *reader = find(r, consumer);

	if (reader)
		unlink_and_free(reader);
}

/* ---- the end ---- */

/* May free r, in the callback. */
static void check_done(struct readers *r)
{
	void (*done)(void *) = r->done;

	if (!done)
		return;
	for (const struct reader *reader = r->list; reader; reader = reader->next)
		if (!reader->is_done)
			return;
	r->done = NULL;
	done(r->ctx);
}

static int on_written(sd_event_source *source, int fd, uint32_t events, void *ctx)
{
	struct reader *reader = ctx;

	(void)fd;
	(void)events;
	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	/* The last of the connection: the follower sees its end. */
	reader->hang_up = sd_event_source_disable_unref(reader->hang_up);
	reader->is_done = true;
	check_done(reader->all);
	return 0;
}

/* A busy disk takes long for a long queue, but it takes it. */
static bool gets_on(struct reader *reader)
{
	uint64_t written = consumer__written(reader->consumer);
	bool does = written - reader->finish_from >= FINISH_BYTES;

	reader->finish_from = written;
	return does;
}

static int on_deadline(sd_event_source *source, uint64_t us, void *ctx)
{
	struct readers *r = ctx;
	bool wait = false;

	(void)us;
	for (struct reader *reader = r->list; reader; reader = reader->next)
		wait |= reader->is_output && !reader->is_done && gets_on(reader);
	if (wait && sd_event_source_set_time_relative(source, FINISH_US) >= 0 &&
	    sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) >= 0)
		return 0;
	for (struct reader *reader = r->list; reader; reader = reader->next) {
		if (reader->is_output && !reader->is_done)
			r->output_error = -ETIMEDOUT;
		reader->is_done = true;
	}
	check_done(r);
	return 0;
}

int readers__finish(struct readers *r, void (*done)(void *ctx), void *ctx)
{
	int ret = sd_event_add_time_relative(r->loop, &r->deadline, CLOCK_MONOTONIC, FINISH_US, 0,
					     on_deadline, r);

	for (struct reader *reader = r->list; reader && ret >= 0; reader = reader->next) {
		int fd = consumer__finish(reader->consumer);

		reader->finish_from = consumer__written(reader->consumer);
		/* One that cannot be waited for is given up. */
		if (fd < 0 ||
		    sd_event_add_io(r->loop, &reader->written, fd, EPOLLIN, on_written, reader) < 0)
			reader->is_done = true;
	}
	if (ret < 0)
		return ret;
	r->done = done;
	r->ctx = ctx;
	check_done(r);
	return 0;
}

/* ---- what became of them ---- */

size_t readers__n_followers(const struct readers *r)
{
	size_t n = 0;

	for (const struct reader *reader = r->list; reader; reader = reader->next)
		n += !reader->is_output;
	return n;
}

static const struct reader *output_of(const struct readers *r)
{
	const struct reader *reader = r->list;

	while (reader && !reader->is_output)
		reader = reader->next;
	return reader;
}

bool readers__has_output(const struct readers *r)
{
	return output_of(r);
}

uint64_t readers__output_bytes(const struct readers *r)
{
	const struct reader *output = output_of(r);

	return output ? consumer__written(output->consumer) : 0;
}

int readers__output_error(const struct readers *r)
{
	const struct reader *output = output_of(r);
	int err = output ? consumer__error(output->consumer) : 0;

	return err ? err : r->output_error;
}

struct consumer_losses readers__output_losses(const struct readers *r)
{
	const struct reader *output = output_of(r);

	return output ? consumer__losses(output->consumer) : (struct consumer_losses){ 0 };
}
