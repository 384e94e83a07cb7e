/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampled heap as a tree of callers.
 *
 * In:   the cells of user/track/heap.h.
 * Out:  tables of strings, of frames, of the tree's nodes, and of what was allocated at
 *       which node by which domain, for user/export/html_stacks.c.
 *
 * The tree has the outermost frame at the top, as a flame graph has. Its order depends
 * on the capture only.
 */
#ifndef HEAPSONDE_HTML_TREE_H
#define HEAPSONDE_HTML_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/track/heap.h"

/* Of the tree: no browser shows more. What is deeper then counts for its caller. */
#define HTML_NODES_MAX 4000000

#define HTML_METRICS 4

/* What the page can show: their names there, and where they stand in a tally. */
extern const struct html_metric {
	const char *name;
	size_t offset; /* of a struct amount in struct tally */
} html_metrics[HTML_METRICS];

/* Strings are numbered from 0; a name that is not known is HTML_NO_STRING. */
#define HTML_NO_STRING UINT32_MAX

struct html_frame {
	uint32_t function;
	uint32_t file;
	uint32_t line; /* 0: unknown */
};

struct html_node {
	uint32_t parent; /* less than its own number */
	uint32_t frame;
};

struct html_cell {
	uint32_t node;
	uint32_t domain; /* or HEAP_DOMAIN_OTHERS */
	struct amount amounts[HTML_METRICS];
};

/* An array that grows. */
struct html_vector {
	void *items;
	size_t n;
	size_t room;
};

struct html_tree {
	struct html_vector strings; /* const char *, the symbolizer's */
	struct html_vector frames;  /* struct html_frame */
	struct html_vector nodes;   /* struct html_node; number 0 is above all stacks */
	struct html_vector cells;   /* struct html_cell */
	void *string_ids;           /* JudyHS, by text: number + 1 */
	void *frame_ids;            /* JudyHS, by struct html_frame: number + 1 */
	void *location_ids;         /* JudyL, by the address of a location: frame's number + 1 */
	void *node_ids;             /* JudyL, by parent << 32 | frame: number + 1 */
	bool is_cut;                /* there were too many nodes */
};

/* heap: settled, borrowed. *t is to be deinited in any case. Errors: -ENOMEM. */
int html_tree__init(struct html_tree *t, const struct heap *heap);

/* A zeroed t is fine. */
void html_tree__deinit(struct html_tree *t);

#endif /* HEAPSONDE_HTML_TREE_H */
