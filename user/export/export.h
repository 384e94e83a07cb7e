/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The formats that other tools read.
 *
 * In:   a capture, event by event (user/sinks/sink.h), or the sampled heap at its end
 *       (user/collect/replay.h).
 * Out:  a file in the format.
 *
 * One file for each format, which defines its struct exporter; export.c lists them.
 */
#ifndef HEAPSONDE_EXPORT_H
#define HEAPSONDE_EXPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "user/collect/replay.h"
#include "user/common/error.h"
#include "user/sinks/sink.h"
#include "user/track/rows.h"

struct export_options {
	int ctf_version;         /* 2 or 3 */
	enum rows_metric metric; /* for formats that show one */
	const char *input;       /* the capture's name, for titles; borrowed */
};

struct exporter {
	const char *name;     /* as --to has it */
	const char *about;    /* for --help */
	const char *suffix;   /* of files' names, with its dot */
	unsigned int metrics; /* that --metric may be, a bit 1u << METRIC each; 0: none */
	bool is_binary;       /* not for a terminal */
	bool is_bare;         /* has no room to say what its figures leave out */
	/*
	 * Exactly one of these is set. open: a sink that writes to f as events come; it owns
	 * f from then on, errors included, as the sinks of sink.h. Errors: -ENOMEM, those of
	 * write(2).
	 */
	int (*open)(struct sink **out, FILE *f, const struct export_options *o);
	/*
	 * write: all at once, when the capture has been read into r->heap (settled, with a
	 * timeline). f is borrowed and checked for errors by the caller. Errors, with a text:
	 * -ENOMEM, those of write(2).
	 */
	int (*write)(FILE *f, const struct replay *r, const struct export_options *o,
		     struct hs_error *err);
};

extern const struct exporter export_jsonl;
extern const struct exporter export_ctf;
extern const struct exporter export_pprof;
extern const struct exporter export_folded;
extern const struct exporter export_speedscope;
extern const struct exporter export_html;

#define EXPORT_METRICS_ALL                                                                         \
	(1u << ROWS_ALLOC | 1u << ROWS_LIVE | 1u << ROWS_PROMOTED | 1u << ROWS_SURVIVORS)

/* All of them, NULL-terminated; and one by its name, or NULL. */
extern const struct exporter *const exporters[];
const struct exporter *exporter__find(const char *name);

/* That of which a file of this name is; jsonl if it does not say, or is NULL. */
const struct exporter *exporter__for_name(const char *file_name);

#endif /* HEAPSONDE_EXPORT_H */
