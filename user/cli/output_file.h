/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file that -o names: of every command that writes one.
 *
 * In:   a path; whether it may replace what is there (--force).
 * Out:  a descriptor. The file is as it was before until output_file__keep; with
 *       output_file__drop it stays so.
 *
 * A file that exists is refused without OUTPUT_FORCE, so that nobody loses a recording to
 * a slip. What is not a regular file (a device, a pipe) is nothing that could be lost, and
 * /dev/stdout, /dev/stderr and /dev/fd/N are the descriptors themselves, whatever they are.
 *
 * What is written may be under way before it is certain that it will be kept (the daemon
 * writes at once, an export can fail at its end). So a new file is created and removed
 * again; one that exists is not opened at all, but a new one beside it, with its mode and
 * owner, which takes its place when it is kept. Where that would change what the name means
 * (a device, a pipe, a file with several names) or is not possible (the folder is not
 * writable), the file itself is opened, emptied.
 */
#ifndef HEAPSONDE_OUTPUT_FILE_H
#define HEAPSONDE_OUTPUT_FILE_H

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "user/common/error.h"
#include "user/sinks/sink.h"

/* The option --force, for the option lists of all commands that have -o. */
#define OUTPUT_OPT_FORCE 0x201
#define OUTPUT_FORCE_HELP "Replace the output file if it exists"

#define OUTPUT_FORCE 1u /* replace a file that exists */
#define OUTPUT_WHOLE 2u /* also a new file has its name only when it is kept, i.e. whole */

struct output_file {
	int fd;          /* close-on-exec; -1: none */
	char *path;      /* without symbolic links if it existed; NULL: standard output */
	char *temporary; /* what is written; NULL: path itself */
	bool is_new;     /* path did not exist */
	unsigned int flags;
};

/*
 * Open for writing; path NULL: a duplicate of standard output. *f is to be ended with keep
 * or drop, also on error. flags: OUTPUT_*. Errors, with a text: -EEXIST (without
 * OUTPUT_FORCE), those of open(2), -ENOMEM.
 */
int output_file__open(struct output_file *f, const char *path, unsigned int flags,
		      struct hs_error *err);

/*
 * The descriptor as the caller's, who closes it before or after keep; and the same as a
 * stream (NULL with a text: out of memory).
 */
int output_file__take(struct output_file *f);
FILE *output_file__take_stream(struct output_file *f, struct hs_error *err);

/*
 * It shall stay: give it its name, and close what was not taken. Errors, with a text: those
 * of rename(2), after which what was written is in the file that the text names.
 */
int output_file__keep(struct output_file *f, struct hs_error *err);

/* Nothing came of it. Harmless after keep, and on a zeroed one with fd -1. */
void output_file__drop(struct output_file *f);

/*
 * The name that a -o of `record` and `start` means: %p is pid, %t the time now (UTC,
 * 20261130T094145Z), %h the name of this host, %% a percent sign. *out is the caller's
 * (free()). Errors, with a text: -EINVAL (another letter after %), -ENOMEM.
 */
int output_file__expand(const char *name, pid_t pid, char **out, struct hs_error *err);

/* For option parsers: end as cli__argp_error does if output_file__expand would not do. */
void output_file__argp_check(const struct argp_state *state, const char *name);

/*
 * The format of a recording: what --format says (NULL: not given), or what the name of the
 * file says: .hsd is a compressed capture, anything else, or no file (NULL), JSON lines.
 * Ends as cli__argp_error does if there is no such format.
 */
enum sink_format output_file__argp_format(const struct argp_state *state, const char *format,
					  const char *name);
#define OUTPUT_FORMAT_HELP                                                                         \
	"jsonl; hsd, a capture for `heapsonde report`, `export` and the like (default for "        \
	"FILE.hsd); or raw, the same not compressed"

#endif /* HEAPSONDE_OUTPUT_FILE_H */
