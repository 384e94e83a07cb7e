/* SPDX-License-Identifier: BSD-2-Clause */
/* What all sinks share; see sink.h. */
#include "user/sinks/sink.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void sink__free(struct sink *s)
{
	if (s)
		s->ops->free(s);
}

static const char *const names[] = {
	[SINK_JSONL] = "jsonl",
	[SINK_RAW] = "raw",
	[SINK_HSD] = "hsd",
};

const char *sink_format__name(enum sink_format format)
{
	return names[format];
}

int sink_format__parse(const char *name, enum sink_format *out)
{
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]))
			continue;
		*out = (enum sink_format)i;
		return 0;
	}
	return -EINVAL;
}

int sink__new_file(struct sink **out, FILE *f, enum sink_format format)
{
	switch (format) {
	case SINK_RAW:
		return raw_sink__new_file(out, f);
	case SINK_HSD:
		return hsd_sink__new_file(out, f);
	case SINK_JSONL:
		break;
	}
	return jsonl_sink__new_file(out, f);
}

int sink__new(struct sink **out, int fd, enum sink_format format)
{
	FILE *f = fdopen(fd, "w");
	int err = -errno;

	if (f)
		return sink__new_file(out, f, format);
	close(fd);
	return err;
}

int jsonl_sink__new(struct sink **out, int fd)
{
	return sink__new(out, fd, SINK_JSONL);
}

int raw_sink__new(struct sink **out, int fd)
{
	return sink__new(out, fd, SINK_RAW);
}

int hsd_sink__new(struct sink **out, int fd)
{
	return sink__new(out, fd, SINK_HSD);
}
