/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The metrics in Prometheus's text format, version 0.0.4.
 *
 * In:   a view (metrics_view.h).
 * Out:  text: for each family HELP, TYPE and its samples. Names, labels and units:
 *       docs/daemon.md.
 */
#ifndef HEAPSONDE_METRICS_TEXT_H
#define HEAPSONDE_METRICS_TEXT_H

#include <stddef.h>

#include "user/daemon/metrics_view.h"

/*
 * Render. *text is the caller's (free()), *len without its final NUL. At most some
 * 2 MiB, whatever the view holds. Errors: -ENOMEM.
 */
int metrics_text__render(const struct metrics_view *v, char **text, size_t *len);

#endif /* HEAPSONDE_METRICS_TEXT_H */
