/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `record` tells people at its end, whoever did the recording.
 *
 * In:   the summary's reason and losses (docs/records.md).
 * Out:  notes on stderr (user/common/say.h).
 */
#ifndef HEAPSONDE_RECORD_NOTES_H
#define HEAPSONDE_RECORD_NOTES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Why it ended, if it was not the user, and what was lost. is_command: the process is
 * the command that was given, whose end goes without saying. lost may be NULL.
 * waiting_max: sampled blocks that may be missing at most, if it ended in mid-work.
 */
void record_notes__print(const char *reason, pid_t pid, bool is_command, const json_t *lost,
			 uint64_t waiting_max);

#endif /* HEAPSONDE_RECORD_NOTES_H */
