/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers for things that a format writes once and refers to from then on.
 *
 * In:   keys: strings, or structures without padding.
 * Out:  0, 1, 2, … in the order in which the keys were first asked for.
 */
#ifndef HEAPSONDE_IDS_H
#define HEAPSONDE_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_table;

/* Errors: -ENOMEM. */
int id_table__new(struct id_table **out);

/* NULL is fine. */
void id_table__free(struct id_table *t);

/*
 * The number of the key, which is copied. *is_new: it had none before. Returns it, or
 * -ENOMEM.
 */
int64_t id_table__of(struct id_table *t, const void *key, size_t bytes, bool *is_new);

#endif /* HEAPSONDE_IDS_H */
