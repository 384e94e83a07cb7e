/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the header of `heapsonde top` tells: the program, its domains, exact counters,
 * losses.
 *
 * In:   the records of a profile, as the sink that they go to; blocks are passed over.
 * Out:  struct facts, as of the records so far.
 */
#ifndef HEAPSONDE_FACTS_H
#define HEAPSONDE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "user/sinks/sink.h"

#define FACTS_TEXT 256
#define FACTS_CAUSES_MAX 16
/* Domains that are known by name at once; counters of others are left out. */
#define FACTS_DOMAINS_MAX 4096
/* Terminated domains that are remembered: more than domains.c has counters of to tell. */
#define FACTS_GONE_MAX 4096

/* Sums over all domains, since each was first heard of; exact. */
struct facts_counts {
	uint64_t time_ns; /* when they were read last; CLOCK_MONOTONIC, 0: not yet */
	uint64_t minor_words;
	uint64_t promoted_words;
	uint64_t direct_words;      /* allocated in the major heap directly */
	uint64_t minor_collections; /* of the process: all domains take part in each */
	uint64_t major_collections; /* likewise */
};

struct facts_loss {
	char cause[32]; /* docs/records.md */
	uint64_t count; /* in the unit of the cause */
};

struct facts_domain;
struct facts_gone;

struct facts {
	struct sink base;
	char command[FACTS_TEXT]; /* UTF-8, may hold anything */
	int64_t pid;
	double rate;             /* asked for last, samples per word; 0: no record yet */
	bool is_stopped;         /* no more blocks are sampled */
	bool has_ended;          /* the summary has come */
	char reason[FACTS_TEXT]; /* why it stopped or ended */
	struct facts_counts counts;
	unsigned int n_alive, n_seen; /* domains */
	uint64_t n_blocks, n_samples; /* allocations told */
	struct facts_loss losses[FACTS_CAUSES_MAX];
	unsigned int n_losses;
	struct facts_domain *domains; /* that live; facts.c */
	struct facts_gone *gone;      /* that have terminated lately; facts.c */
};

/* *f is all zero afterwards but for its functions. f->base is the sink. */
void facts__init(struct facts *f);

/* Forget all; also what sink__free does. */
void facts__deinit(struct facts *f);

/* Is there a domain with this id? As far as records have told. */
bool facts__knows_domain(const struct facts *f, uint32_t domain);

#endif /* HEAPSONDE_FACTS_H */
