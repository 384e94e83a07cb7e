/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records as JSON objects, `type` first, as docs/records.md describes them.
 *
 * In:   events, stacks, text of any origin.
 * Out:  json_t, a new reference, or NULL if memory is short.
 */
#ifndef HEAPSONDE_JSON_H
#define HEAPSONDE_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "user/decode/decode.h"
#include "user/track/stacks.h"

/* Flags for jansson's dumpers: one line, members in the order they were set. */
#define JSON_LINE_FLAGS (JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17))

/* A string; bytes that are not UTF-8 become U+FFFD. NULL gives JSON null. */
json_t *json__text(const char *text);

/* {"type":"stack","id":7,"frames":[…]}, inlined frames expanded. */
json_t *json__stack(const struct stack *stack);

/*
 * An event other than a stack. stack: of an alloc event; NULL with a non-zero
 * hash means that its record was lost, and the object says "stack":null.
 */
json_t *json__event(const struct hs_event *event, const struct stack *stack);

/*
 * {"type":"thread",…}: from here on thread tid runs for this domain. time_ns:
 * CLOCK_MONOTONIC, as in all records.
 */
json_t *json__thread(uint32_t tid, uint32_t domain, uint64_t time_ns);

/*
 * {"type":"loss",…}: n are missing, in the unit of the cause, a name of
 * docs/records.md, since since_ns. domain: UINT32_MAX gives null.
 */
json_t *json__loss(uint32_t domain, const char *cause, uint64_t n, uint64_t since_ns,
		   uint64_t time_ns);

/* Does this member of a `lost` say more of what another one counts already? */
bool json__loss_is_part(const char *cause);

/*
 * {"type":"counters",…}: what has been counted of a domain, as of time_ns. samples_kept,
 * tracked: as in struct hs_domain.
 */
json_t *json__counters(uint32_t domain, const struct hs_counts *c, uint64_t samples_kept,
		       uint64_t tracked, uint64_t time_ns);

/* What the event is called in its `type`; static string. */
const char *json__type_name(const struct hs_event *event);

/* Add counters to object, each name with prefix before it. 0 or -1. */
int json__add_counts(json_t *object, const char *prefix, const struct hs_counts *c);

#endif /* HEAPSONDE_JSON_H */
