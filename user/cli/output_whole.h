/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output of commands that make something of a capture: a file that is whole, or none.
 *
 * In:   the path that -o names, and the capture that is read.
 * Out:  a stream to write to. The file has its name only at the end, if all went well. A
 *       command that is interrupted (SIGINT, SIGTERM, SIGHUP) leaves nothing behind.
 *
 * One at a time, because what a signal removes is remembered in one place.
 */
#ifndef HEAPSONDE_OUTPUT_WHOLE_H
#define HEAPSONDE_OUTPUT_WHOLE_H

#include <stdbool.h>
#include <stdio.h>

#include "user/cli/output_file.h"

struct output_whole {
	struct output_file file;
	FILE *stream; /* the user's to give away, or output_whole__close's */
};

/*
 * Open; path NULL: standard output. input: the capture, which is never replaced. Errors, with
 * a text: -EINVAL (path is the capture), those of output_file__open. To be ended in any case.
 */
int output_whole__open(struct output_whole *o, const char *path, bool force, const char *input,
		       struct hs_error *err);

/*
 * Close the stream after ret, which is returned if it is an error. Errors, with a text: those
 * of write(2) for whatever has been printed.
 */
int output_whole__close(struct output_whole *o, int ret, struct hs_error *err);

/*
 * Give the file its name if ret is 0, else remove it. Returns ret, or with a text the errors
 * of output_file__keep.
 */
int output_whole__end(struct output_whole *o, int ret, struct hs_error *err);

#endif /* HEAPSONDE_OUTPUT_WHOLE_H */
