/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the ring buffer and the counters; see collect.h. */
#include "user/collect/collect.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

struct collector {
	struct ring_buffer *ring;
	collect_fn each;
	void *ctx;
	uint64_t malformed;
	int n_batch; /* records handed over in this drain */
	int err;     /* what the callback returned */
};

static int on_record(void *ctx, void *data, size_t len)
{
	struct collector *c = ctx;
	struct hs_event event;

	/* libbpf counts a record as consumed even if this stops it. */
	c->n_batch++;
	if (decode__record(data, len, &event)) {
		c->malformed++;
	} else {
		c->err = c->each(c->ctx, &event);
		if (c->err)
			return -ECANCELED;
	}
	return c->n_batch == COLLECT_BATCH ? -EAGAIN : 0;
}

int collector__new(struct collector **out, const struct attachment *a, collect_fn each, void *ctx)
{
	struct collector *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->each = each;
	c->ctx = ctx;
	c->ring = ring_buffer__new(attachment__ring_fd(a), on_record, c, NULL);
	if (!c->ring) {
		int err = -errno;

		free(c);
		return err;
	}
	*out = c;
	return 0;
}

void collector__free(struct collector *c)
{
	if (!c)
		return;
	ring_buffer__free(c->ring);
	free(c);
}

int collector__drain(struct collector *c)
{
	int ret;

	c->n_batch = 0;
	c->err = 0;
	ret = ring_buffer__consume(c->ring);
	if (c->err)
		return c->err;
	return ret < 0 && ret != -EAGAIN ? ret : c->n_batch;
}

uint64_t collector__malformed(const struct collector *c)
{
	return c->malformed;
}

static int by_unique_id(const void *a, const void *b)
{
	uint32_t x = ((const struct domain_stat *)a)->unique_id;
	uint32_t y = ((const struct domain_stat *)b)->unique_id;

	return x < y ? -1 : x > y;
}

int counters__read(const struct attachment *a, pid_t tgid, struct domain_stat **out)
{
	int fd = attachment__domains_fd(a);
	struct hs_domain_key key, *previous = NULL;
	struct domain_stat *stats = NULL, *grown;
	size_t n = 0, room = 0;
	int err;

	while (!(err = bpf_map_get_next_key(fd, previous, &key))) {
		previous = &key;
		if (key.tgid != (uint32_t)tgid)
			continue;
		if (n == room) {
			room = room ? 2 * room : 16;
			grown = realloc(stats, room * sizeof(*stats));
			if (!grown) {
				err = -ENOMEM;
				break;
			}
			stats = grown;
		}
		stats[n].unique_id = key.unique_id;
		err = bpf_map_lookup_elem(fd, &key, &stats[n].d);
		if (!err)
			n++;
		else if (err != -ENOENT)
			break;
	}
	/* The end is an error, too, and no other may pass for it: domains would be missing. */
	if (err != -ENOENT) {
		free(stats);
		return err;
	}
	if (n)
		qsort(stats, n, sizeof(*stats), by_unique_id);
	*out = stats;
	return (int)n;
}

void counters__forget(const struct attachment *a, pid_t tgid, uint32_t unique_id)
{
	struct hs_domain_key key = { .tgid = (uint32_t)tgid, .unique_id = unique_id };

	bpf_map_delete_elem(attachment__domains_fd(a), &key);
}
