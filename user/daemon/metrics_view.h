/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the metrics show: bounded, and with sums that never fall.
 *
 * In:   snapshots of the supervisor, one after the other. Parts of them come from
 *       workers, who may have been taken over by their targets: nothing is believed
 *       about types, sizes, signs and duplicates.
 * Out:  struct metrics_view, for metrics_text.h.
 *
 * Targets and profiles get one of a fixed number of places when they are first seen
 * and keep it until they go; those without a place are summed up. Such a sum is not
 * of what is there now, because it would fall when something goes: it grows by what
 * its members have grown by. So rates add up, whatever comes and goes.
 */
#ifndef HEAPSONDE_METRICS_VIEW_H
#define HEAPSONDE_METRICS_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Places. */
#define METRICS_TARGETS_MAX 64
#define METRICS_DOMAINS_MAX 32
#define METRICS_PROFILES_MAX 256
#define METRICS_CAUSES_MAX 16
/* Beyond these not even sums are kept. */
#define METRICS_MEMBERS_MAX 16384
/* Of command lines. */
#define METRICS_COMMAND_MAX_BYTES 64

enum metrics_count {
	COUNT_MINOR_WORDS,
	COUNT_PROMOTED_WORDS,
	COUNT_MAJOR_WORDS, /* without the promoted ones */
	COUNT_MINOR_COLLECTIONS,
	COUNT_MAJOR_COLLECTIONS,
	METRICS_COUNTS
};

struct metrics_counts {
	uint64_t n[METRICS_COUNTS];
};

struct metrics_domain {
	uint64_t id; /* unique id */
	struct metrics_counts now;
};

/* A process that is profiled, and its worker. */
struct metrics_target {
	int64_t pid;
	bool has_place, is_there, has_been_read;
	bool is_known;                /* total is of the last snapshot */
	uint64_t cpu_ns, last_cpu_ns; /* of its workers */
	struct metrics_counts total;  /* of all its domains */
	/* Only with a place: */
	char command[METRICS_COMMAND_MAX_BYTES + 1];
	size_t n_domains;
	struct metrics_domain domains[METRICS_DOMAINS_MAX];
	uint64_t n_other;            /* domains without a place, or terminated */
	struct metrics_counts other; /* what they did, as far as it was not shown before */
	UT_hash_handle hh;
};

enum metrics_state { METRICS_SAMPLING, METRICS_STOPPED, METRICS_FINISHED, METRICS_STATES };

struct metrics_loss {
	char cause[33]; /* a-z and _ */
	uint64_t n;
};

struct metrics_profile {
	uint64_t id;
	bool has_place, is_there, has_been_read;
	int64_t pid, uid;
	enum metrics_state state;
	double rate, live_words;
	uint64_t records, samples, followers;
	uint64_t lost, other_lost;   /* over all causes; over those not in losses */
	bool has_output, has_failed; /* the output */
	uint64_t output_bytes;
	size_t n_losses;
	struct metrics_loss losses[METRICS_CAUSES_MAX];
	UT_hash_handle hh;
};

struct metrics_view {
	/* With and without a place; those with one are for showing. Owned. */
	struct metrics_target *targets;
	struct metrics_profile *profiles;
	size_t n_targets, n_other_targets; /* those without */
	size_t n_profiles, n_other_profiles;
	struct metrics_counts other_targets;
	struct metrics_profile other_profiles; /* sums */
	size_t in_state[METRICS_STATES];
	/* The daemon itself. */
	uint64_t cpu_ns, rss_bytes, n_workers;
	uint64_t workers_cpu_ns, workers_rss_bytes;
};

/* Zeroed memory is an empty view. */
void metrics_view__deinit(struct metrics_view *v);

/*
 * Take in a snapshot (borrowed), as metrics.h describes it. What is missing counts
 * as nothing. 0, or -ENOMEM: then some of it is missing.
 */
int metrics_view__update(struct metrics_view *v, const json_t *snapshot);

#endif /* HEAPSONDE_METRICS_VIEW_H */
