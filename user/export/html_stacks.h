/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tree of callers as JSON, in flat arrays that a page reads quickly.
 *
 * In:   the sampled heap (user/track/heap.h).
 * Out:  members of the JSON object in the page.
 */
#ifndef HEAPSONDE_HTML_STACKS_H
#define HEAPSONDE_HTML_STACKS_H

#include <stdio.h>

#include "user/track/heap.h"

/*
 * Write the members "strings", "frames", "nodes" and "cells" of a JSON object, each with
 * a comma before it (docs/html.md describes them). heap: settled, borrowed. What goes
 * wrong with f is left to ferror. Errors: -ENOMEM.
 */
int html_stacks__write(FILE *f, const struct heap *heap);

#endif /* HEAPSONDE_HTML_STACKS_H */
