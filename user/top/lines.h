/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text in lines, that can be scrolled: the help, and a row that is open.
 *
 * In:   the model and the view.
 * Out:  struct lines.
 */
#ifndef HEAPSONDE_LINES_H
#define HEAPSONDE_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "user/top/model.h"

struct lines {
	char **at; /* UTF-8, may hold anything */
	size_t n, room;
};

/* Empty it; a zeroed one is empty. */
void lines__clear(struct lines *l);

/* One more, as printf does. Errors: -ENOMEM. */
int lines__add(struct lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The keys and the columns. Errors: -ENOMEM. */
int lines__help(struct lines *l);

/* The selected row, in full, with its stacks (m->stacks). Errors: -ENOMEM. */
int lines__row(struct lines *l, const struct model *m, const struct view *v, bool is_utf8);

#endif /* HEAPSONDE_LINES_H */
