/* SPDX-License-Identifier: BSD-2-Clause */
/* See profile_args.h. */
#include "user/cli/profile_args.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/cli/cli.h"

#define WORD_BYTES 8.0

/* Above what a command itself may use. */
enum {
	OPT_INTERVAL = 0x300,
	OPT_STACK_DEPTH,
	OPT_DOMAIN,
	OPT_TRACK,
	OPT_RING_SIZE,
	OPT_MAX_BLOCKS,
	OPT_MAX_STACKS
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "What to sample:", PROFILE_ARGS_SAMPLE },
	{ "rate", 'r', "RATE", 0,
	  "Samples per word, as 2^-13 or 0.00037 (default 2^-20; top goes by the program)",
	  PROFILE_ARGS_SAMPLE },
	{ "interval", OPT_INTERVAL, "BYTES", 0,
	  "Bytes per sample on average, as 512k, instead of a rate", PROFILE_ARGS_SAMPLE },
	{ "stack-depth", OPT_STACK_DEPTH, "N", 0, "Frames per call stack, 0 to 1024 (default 64)",
	  PROFILE_ARGS_SAMPLE },
	{ "domain", OPT_DOMAIN, "ID", 0,
	  "Only this domain and those that it spawns later; may be repeated", PROFILE_ARGS_SAMPLE },
	{ "track", OPT_TRACK, "KINDS", 0,
	  "Only these: minor, major (heaps); normal, marshal, custom, map_file (sources); "
	  "size=MIN-MAX (words, as 512 or 4k; either may be left out); alloc (allocations, without "
	  "their "
	  "promotion and death); comma-separated (default all)",
	  PROFILE_ARGS_SAMPLE },
	{ NULL, 0, NULL, 0, "Kernel memory:", PROFILE_ARGS_MEMORY },
	{ "ring-size", OPT_RING_SIZE, "BYTES", 0, "Ring buffer, as 512k or 64M (default 32M)",
	  PROFILE_ARGS_MEMORY },
	{ "max-blocks", OPT_MAX_BLOCKS, "N", 0, "Blocks followed at once (default 524288)",
	  PROFILE_ARGS_MEMORY },
	{ "max-stacks", OPT_MAX_STACKS, "N", 0, "Call stacks remembered (default 65536)",
	  PROFILE_ARGS_MEMORY },
	{ 0 },
};

void profile_args__rate(const struct argp_state *state, const char *text, struct tier_choice *out)
{
	double rate;

	if (cli__parse_rate(text, &rate) || tier_choice__make(rate, out))
		cli__argp_error(state, "the rate must be in (0, 1], as 2^-13 or 0.00037: %s", text);
}

static int parse_interval(const char *text, struct tier_choice *out)
{
	uint64_t bytes;

	if (cli__parse_bytes(text, &bytes) || bytes < WORD_BYTES)
		return -1;
	return tier_choice__make(WORD_BYTES / (double)bytes, out);
}

static int parse_depth(const char *text, uint32_t *out)
{
	int depth = 0;

	if (strcmp(text, "0") && cli__parse_positive(text, SONDE_STACK_MAX, &depth))
		return -1;
	*out = (uint32_t)depth;
	return 0;
}

static int parse_domain(struct profile_options *o, const char *text)
{
	char *end;
	unsigned long id;

	if (*text < '0' || *text > '9')
		return -1;
	id = strtoul(text, &end, 10);
	if (*end || id >= UINT32_MAX)
		return -1;
	return profile_options__add_domain(o, (uint32_t)id);
}

/* The ring buffer's size: a power of two, at least a page, at most 1 GiB. */
static int parse_ring_size(const char *text, uint32_t *out)
{
	uint64_t bytes, size = (uint64_t)sysconf(_SC_PAGESIZE);

	if (cli__parse_bytes(text, &bytes) || bytes > 1u << 30)
		return -1;
	while (size < bytes)
		size *= 2;
	*out = (uint32_t)size;
	return 0;
}

/* A count of at most 2^22, so that kernel memory stays within reason. */
static int parse_count(const char *text, uint32_t *out)
{
	int n;

	if (cli__parse_positive(text, 1 << 22, &n))
		return -1;
	*out = (uint32_t)n;
	return 0;
}

void profile_args__fill_memory(struct attach_options *a)
{
	a->ring_bytes = a->ring_bytes ? a->ring_bytes : ATTACH_RING_BYTES;
	a->max_blocks = a->max_blocks ? a->max_blocks : ATTACH_MAX_BLOCKS;
	a->max_stacks = a->max_stacks ? a->max_stacks : ATTACH_MAX_STACKS;
}

/* The options about kernel memory. */
static error_t parse_memory(int key, char *arg, struct argp_state *state)
{
	struct profile_args *args = state->input;
	struct attach_options *a = &args->options->attach;

	switch (key) {
	case OPT_RING_SIZE:
		if (parse_ring_size(arg, &a->ring_bytes))
			cli__argp_error(state, "not a ring buffer size up to 1G: %s", arg);
		return 0;
	case OPT_MAX_BLOCKS:
		if (parse_count(arg, &a->max_blocks))
			cli__argp_error(state, "not a number of blocks up to 4194304: %s", arg);
		return 0;
	case OPT_MAX_STACKS:
		if (parse_count(arg, &a->max_stacks))
			cli__argp_error(state, "not a number of stacks up to 4194304: %s", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct profile_args *args = state->input;

	switch (key) {
	case 'r':
		profile_args__rate(state, arg, &args->options->attach.tier);
		args->n_rates++;
		return 0;
	case OPT_INTERVAL:
		if (parse_interval(arg, &args->options->attach.tier))
			cli__argp_error(state, "the interval must be at least 8 bytes, as 512k: %s",
					arg);
		args->n_rates++;
		return 0;
	case OPT_STACK_DEPTH:
		if (parse_depth(arg, &args->options->attach.stack_depth))
			cli__argp_error(state, "the stack depth must be 0 to %d: %s",
					SONDE_STACK_MAX, arg);
		return 0;
	case OPT_DOMAIN:
		if (parse_domain(args->options, arg))
			cli__argp_error(state, "not a domain id: %s", arg);
		return 0;
	case OPT_TRACK:
		if (profile_options__set_track(args->options, arg))
			cli__argp_error(state, "unknown kinds: %s", arg);
		return 0;
	case ARGP_KEY_END:
		if (args->n_rates > 1)
			cli__argp_error(state, "give one rate or interval only");
		return 0;
	default:
		return parse_memory(key, arg, state);
	}
}

const struct argp profile_args__argp = { options, parse, NULL, NULL, NULL, NULL, NULL };
