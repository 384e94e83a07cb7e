/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture as the reports see it: the sampled heap, and what the capture says of itself.
 *
 * In:   the path of a capture.
 * Out:  the heap; program, times, rates, losses, what it can and cannot answer; the lines at
 *       the head of each report, and the same as JSON.
 *
 * All texts have been cleaned of control characters: a capture may come from anywhere.
 */
#ifndef HEAPSONDE_RECORDING_H
#define HEAPSONDE_RECORDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "user/collect/replay.h"
#include "user/common/error.h"
#include "user/symbolize/text.h"
#include "user/track/rows.h"

struct recording {
	struct sink sink; /* hears the capture; first, as in every sink */
	struct replay replay;
	struct text_pool *texts;
	/* Owned by texts; NULL: the capture does not say. */
	const char *path;
	const char *command;
	const char *exe;
	const char *ocaml;
	const char *reason; /* why it ended, of its summary */
	const char *track;
	uint64_t pid;        /* 0: not told */
	uint64_t begin_ns;   /* the header's time; else that of the first record */
	uint64_t stopped_ns; /* when it stopped sampling; 0: not told, then at the end */
	uint64_t end_ns; /* the summary's time; that of the last record if the program has exited,
			  * or if there is no summary */
	int64_t wall_offset;                    /* of begin_ns, ns; 0: not told */
	uint64_t first_cycle_ns, last_cycle_ns; /* when major cycles ended; 0: none did */
	uint64_t n_blocks; /* allocations told, whatever options leave out of the heap */
	uint64_t n_samples;
	double rate_low, rate_high; /* λ that these were sampled at; of none: that was asked for */
	bool follows;               /* are promotions and deaths told at all? */
	bool has_no_stacks;         /* none were asked for */
	bool has_exited;            /* the program has told its exit */
	bool is_whole;              /* from the program's beginning to its end */
	double words;               /* allocated while it sampled, exact; NAN: not told */
};

/*
 * Read a capture. *rec: deinit it in any case. options: NULL for none; times in it count
 * from the beginning. progress as in struct replay. Errors, with a text: those of
 * replay__run, -ENOMEM.
 */
int recording__read(struct recording *rec, const char *path, const struct heap_options *options,
		    void (*progress)(void *ctx, uint64_t done, uint64_t total), void *progress_ctx,
		    struct hs_error *err);

/* A zeroed rec is fine. */
void recording__deinit(struct recording *rec);

/*
 * λ for what was never sampled (amount__interval): the lowest that was in force, so that no
 * interval is too short; 0: the capture does not say.
 */
double recording__unseen_rate(const struct recording *rec);

/* When it stopped sampling, CLOCK_MONOTONIC; and how long it sampled, in seconds; > 0. */
uint64_t recording__until_ns(const struct recording *rec);
double recording__seconds(const struct recording *rec);

/* What a metric's amount of a tally may lack (amount__interval). */
struct amount recording__missing(const struct recording *rec, const struct tally *t,
				 enum rows_metric metric);

/* Notes (user/common/say.h): what was lost, that the capture was cut. None if all is well. */
void recording__print_notes(const struct recording *rec);

/* The lines at the head of a report, on stdout, each beginning with "# " and name ("" or "A: "). */
void recording__print_head(const struct recording *rec, const char *name);

/* What live figures leave out, as a line of the head. */
void recording__print_live_note(void);
#define RECORDING_LIVE_NOTE                                                                        \
	"blocks allocated before the recording began are not known, and not in any figure"

/* As the head, for "recording" (docs/reports.md). NULL: no memory. */
json_t *recording__to_json(const struct recording *rec);

#endif /* HEAPSONDE_RECORDING_H */
