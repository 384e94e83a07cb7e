/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options that say what to sample, for `record`, `start` and `top`.
 *
 * In:   argp: profile_args__argp is a child of the command's parser, and gets a
 *       struct profile_args as its input.
 * Out:  struct profile_options.
 */
#ifndef HEAPSONDE_PROFILE_ARGS_H
#define HEAPSONDE_PROFILE_ARGS_H

#include <argp.h>

#include "user/profile/profile.h"

struct profile_args {
	struct profile_options *options; /* initialised; borrowed */
	int n_rates;                     /* given, by -r and --interval */
};

/* The groups of the options, by which --help sorts; those of the command itself
 * use the same numbers. */
enum {
	PROFILE_ARGS_WHAT = 1, /* to attach to: the command's */
	PROFILE_ARGS_SAMPLE,
	PROFILE_ARGS_OUTPUT, /* the command's */
	PROFILE_ARGS_MEMORY,
};

/*
 * -r, --interval, --stack-depth, --domain, --track; --ring-size, --max-blocks,
 * --max-stacks. A bad value ends the process as cli__argp_error does.
 */
extern const struct argp profile_args__argp;

/* Parse a rate into a tier, or end as cli__argp_error does. */
void profile_args__rate(const struct argp_state *state, const char *text, struct tier_choice *out);

/*
 * Kernel memory that was not given is as for a recording, not the smaller tables that the
 * daemon would take.
 */
void profile_args__fill_memory(struct attach_options *a);

#endif /* HEAPSONDE_PROFILE_ARGS_H */
