/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collecting: what the kernel has for us.
 *
 * In:   the maps of an attachment (user/attach/attach.h).
 * Out:  checked events, to a callback; the counters of each domain.
 */
#ifndef HEAPSONDE_COLLECT_H
#define HEAPSONDE_COLLECT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/attach/attach.h"
#include "user/decode/decode.h"

/* Called for each event. A negative errno stops the collecting. */
typedef int (*collect_fn)(void *ctx, const struct hs_event *event);

struct collector;

/*
 * Read a's ring buffer (a is borrowed and must outlive *out) and hand its events
 * to each(ctx, …). Errors: -ENOMEM, those of libbpf.
 */
int collector__new(struct collector **out, const struct attachment *a, collect_fn each, void *ctx);

/* NULL is fine. */
void collector__free(struct collector *c);

/*
 * Hand over what is there now, but no more than a batch, so that the caller sees
 * its signals under any load. Returns the number of records (COLLECT_BATCH: there
 * may be more), or the first non-zero return of the callback, made negative, or a
 * negative errno.
 */
#define COLLECT_BATCH 65536
int collector__drain(struct collector *c);

/* Records that failed their check, and so were not handed over. */
uint64_t collector__malformed(const struct collector *c);

/* One domain's entry of the kernel's table. */
struct domain_stat {
	uint32_t unique_id;
	struct hs_domain d;
};

/*
 * Read the counters of all domains of process tgid, by unique id. *out is the
 * caller's (free()). Returns their number or a negative errno.
 */
int counters__read(const struct attachment *a, pid_t tgid, struct domain_stat **out);

/* Forget a domain that has terminated. */
void counters__forget(const struct attachment *a, pid_t tgid, uint32_t unique_id);

/*
 * When nothing is attached any more: make up the records that were kept back
 * because the ring buffer was full, and hand them to each(ctx, …). Returns 0 or
 * the first non-zero return of the callback, or a negative errno.
 */
int untold__collect(const struct attachment *a, pid_t tgid, collect_fn each, void *ctx);

#endif /* HEAPSONDE_COLLECT_H */
