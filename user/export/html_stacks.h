/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampled heap as a tree of callers, in tables that a page reads quickly.
 *
 * In:   the cells of user/track/heap.h.
 * Out:  tables of strings, of frames, of the tree's nodes, and of what was allocated at
 *       which node by which domain; as JSON.
 *
 * The tree has the outermost frame at the top, as a flame graph has. Its order depends
 * on the capture only.
 */
#ifndef HEAPSONDE_HTML_STACKS_H
#define HEAPSONDE_HTML_STACKS_H

#include <stdio.h>

#include "user/track/heap.h"

/* Of the tree: no browser shows more. What is deeper then counts for its caller. */
#define HTML_NODES_MAX 4000000

/*
 * Write the members "strings", "frames", "nodes" and "cells" of a JSON object, each with
 * a comma before it (docs/html.md describes them). heap: settled, borrowed. What goes
 * wrong with f is left to ferror. Errors: -ENOMEM.
 */
int html_stacks__write(FILE *f, const struct heap *heap);

#endif /* HEAPSONDE_HTML_STACKS_H */
