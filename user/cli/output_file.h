/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that the daemon will write, if it starts the profile at all.
 *
 * In:   a path.
 * Out:  a descriptor for the daemon. The file is as it was before until the daemon
 *       has said yes: output_file__keep; otherwise output_file__drop.
 *
 * The daemon writes at once, so the file cannot be emptied after its answer. A new
 * file is created and removed again; one that exists is not opened at all, but a new
 * one beside it, with its mode and owner, which takes its place when it is kept. Where
 * that would change what the name means (a device, a pipe, a file with several names)
 * or is not possible (the folder is not writable), the file itself is opened, emptied.
 */
#ifndef HEAPSONDE_OUTPUT_FILE_H
#define HEAPSONDE_OUTPUT_FILE_H

#include <stdbool.h>

#include "user/common/error.h"

struct output_file {
	int fd;          /* close-on-exec; -1: none */
	char *path;      /* without symbolic links if it existed */
	char *temporary; /* what is written; NULL: path itself */
	bool is_new;     /* path did not exist */
};

/*
 * Open for writing. *f is to be ended with keep or drop, also on error. Errors, with
 * a text: those of open(2), -ENOMEM.
 */
int output_file__open(struct output_file *f, const char *path, struct hs_error *err);

/*
 * The daemon has it: give it its name and close it here. Errors, with a text: those of
 * rename(2), after which the records are in the file that the text names.
 */
int output_file__keep(struct output_file *f, struct hs_error *err);

/* Nothing came of it. Harmless after keep, and on a zeroed one with fd -1. */
void output_file__drop(struct output_file *f);

#endif /* HEAPSONDE_OUTPUT_FILE_H */
