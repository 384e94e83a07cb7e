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
#include <sys/types.h>

/*
 * Why it ended, if it was not the user, and what was lost. is_command: the process is
 * the command that was given, whose end goes without saying. lost may be NULL.
 */
void record_notes__print(const char *reason, pid_t pid, bool is_command, const json_t *lost);

#endif /* HEAPSONDE_RECORD_NOTES_H */
