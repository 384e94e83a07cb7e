/* SPDX-License-Identifier: BSD-2-Clause */
/* See map_lines.h. */
#include "user/symbolize/map_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_MAPPINGS (1u << 17)
#define FIRST_TEXT_BYTES ((size_t)64 << 10)
#define MAX_TEXT_BYTES ((size_t)32 << 20) /* what is beyond is not looked at */

/* Read the whole file into l->text and end it with a NUL. */
static int read_text(struct map_lines *l, int maps_fd)
{
	size_t len = 0, cap = 0;

	for (;;) {
		ssize_t n;

		if (len + 1 >= cap && cap < MAX_TEXT_BYTES) {
			size_t more = cap ? cap * 2 : FIRST_TEXT_BYTES;
			char *grown = realloc(l->text, more);

			if (!grown)
				return -ENOMEM;
			l->text = grown;
			cap = more;
		}
		n = pread(maps_fd, l->text + len, cap - 1 - len, (off_t)len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	l->text[len] = '\0';
	return len ? 0 : -ESRCH;
}

/* "start-end perms offset major:minor inode path"; false: no file. */
static bool parse_line(const char *text, struct map_line *l)
{
	unsigned int major, minor;
	char perms[5];
	int at = 0;

	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &l->start,
		   &l->end, perms, &l->offset, &major, &minor, &l->ino, &at) < 7 ||
	    !at || !l->ino || l->start >= l->end)
		return false;
	l->dev = (uint64_t)major << 32 | minor;
	l->is_exec = perms[2] == 'x';
	l->path = text + at;
	return true;
}

static int append(struct map_lines *list, const struct map_line *l)
{
	if (list->n == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 256;
		void *grown = reallocarray(list->lines, cap, sizeof(*l));

		if (!grown)
			return -ENOMEM;
		list->lines = grown;
		list->cap = cap;
	}
	list->lines[list->n++] = *l;
	return 0;
}

static int parse(struct map_lines *list)
{
	char *next, *end;
	int err = 0;

	/* The last line is cut off, perhaps, if it does not end. */
	for (char *p = list->text; !err && (end = strchr(p, '\n')); p = next) {
		struct map_line l;

		*end = '\0';
		next = end + 1;
		if (list->n < MAX_MAPPINGS && parse_line(p, &l))
			err = append(list, &l);
	}
	return err;
}

int map_lines__read(struct map_lines *out, int maps_fd)
{
	int err;

	*out = (struct map_lines){ 0 };
	err = read_text(out, maps_fd);
	if (!err)
		err = parse(out);
	if (err)
		map_lines__free(out);
	return err;
}

void map_lines__free(struct map_lines *l)
{
	free(l->text);
	free(l->lines);
	*l = (struct map_lines){ 0 };
}
