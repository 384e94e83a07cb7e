/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands at the probes of a running process: the counts of their semaphores, and
 * whether its code is still that of the file.
 *
 * In:   struct target, its memory and its executable.
 * Out:  for user/attach/residue.h.
 */
#ifndef HEAPSONDE_PROBE_STATE_H
#define HEAPSONDE_PROBE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "user/attach/target.h"
#include "user/common/error.h"

/* More than a runtime has. */
#define PROBE_STATES_MAX 64

struct probe_state {
	char name[24];
	uint16_t semaphore;
	bool is_armed;      /* the code is not that of the file */
	uint8_t here, file; /* the first byte that differs, in memory and in the file */
};

/*
 * Read all probes of t into out, which has room for PROBE_STATES_MAX. Returns how many
 * there are, or a negative errno with a text: -EACCES its memory may not be read, -ESRCH it has
 * ended.
 */
int probe_states__read(const struct target *t, struct probe_state *out, struct hs_error *err);

/* Is there anything of somebody who attached? */
static inline bool probe_state__is_touched(const struct probe_state *s)
{
	return s->semaphore || s->is_armed;
}

#endif /* HEAPSONDE_PROBE_STATE_H */
