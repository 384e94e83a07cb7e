/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of `heapsonde record`; see record.h. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/cli/cli.h"
#include "user/cli/record.h"

/* The default rate: about one sample per 8 MiB. */
#define RATE_DEFAULT 0x1p-20
#define STACK_DEPTH_DEFAULT 64
#define WORD_BYTES 8.0

enum {
	OPT_INTERVAL = 256,
	OPT_STACK_DEPTH,
	OPT_DOMAIN,
	OPT_TRACK,
	OPT_DURATION,
	OPT_FORMAT,
	OPT_TOP,
	OPT_RING_SIZE,
	OPT_MAX_BLOCKS,
	OPT_MAX_STACKS
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "What to attach to:", 1 },
	{ "pid", 'p', "PID", 0, "Attach to this process", 1 },
	{ NULL, 0, NULL, 0, "What to sample:", 2 },
	{ "rate", 'r', "RATE", 0, "Samples per word, as 2^-13 or 0.00037 (default 2^-20)", 2 },
	{ "interval", OPT_INTERVAL, "BYTES", 0,
	  "Bytes per sample on average, as 512k, instead of a rate", 2 },
	{ "stack-depth", OPT_STACK_DEPTH, "N", 0, "Frames per call stack, 0 to 1024 (default 64)",
	  2 },
	{ "domain", OPT_DOMAIN, "ID", 0,
	  "Only this domain and those that it spawns later; may be repeated", 2 },
	{ "track", OPT_TRACK, "KINDS", 0,
	  "Only these: minor, major (heaps); normal, marshal, custom, map_file (sources); alloc "
	  "(allocations, without their promotion and death); comma-separated (default all)",
	  2 },
	{ "duration", OPT_DURATION, "S", 0, "Stop after this many seconds", 2 },
	{ NULL, 0, NULL, 0, "Output:", 3 },
	{ "output", 'o', "FILE", 0, "Write to FILE instead of standard output (-)", 3 },
	{ "format", OPT_FORMAT, "FORMAT", 0,
	  "jsonl (default), or raw, a capture for `heapsonde export`", 3 },
	{ "top", OPT_TOP, "N", 0, "At the end print the N biggest allocation sites to stderr", 3 },
	{ NULL, 0, NULL, 0, "Kernel memory:", 4 },
	{ "ring-size", OPT_RING_SIZE, "BYTES", 0, "Ring buffer (default 32M)", 4 },
	{ "max-blocks", OPT_MAX_BLOCKS, "N", 0, "Blocks followed at once (default 524288)", 4 },
	{ "max-stacks", OPT_MAX_STACKS, "N", 0, "Call stacks remembered (default 65536)", 4 },
	{ 0 },
};

static const char doc[] =
	"Record what Gc.Memprof would tell a running OCaml program.\v"
	"Writes one JSON object a line: a header, then allocations, promotions and deaths of "
	"sampled blocks with their call stacks, then a summary. Ctrl-C, --duration or the end of "
	"the program end the recording. With a command, the program is started and its exit code "
	"passed on.";

/* A list of kinds; see the option's text. */
static int parse_track(struct record_options *o, const char *text)
{
	static const struct {
		const char *name;
		uint32_t heaps, sources;
	} kinds[] = {
		{ "minor", 1u << HS_HEAP_MINOR, 0 },
		{ "major", 1u << HS_HEAP_MAJOR, 0 },
		{ "normal", 0, 1u << SONDE_SRC_NORMAL },
		{ "marshal", 0, 1u << SONDE_SRC_MARSHAL },
		{ "custom", 0, 1u << SONDE_SRC_CUSTOM },
		{ "map_file", 0, 1u << SONDE_SRC_MAP_FILE },
	};
	uint32_t heaps = 0, sources = 0;
	char *copy, *rest, *word;
	int err = 0;

	if (strlen(text) >= sizeof(o->track))
		return -1;
	strcpy(o->track, text);
	copy = strdup(text);
	if (!copy)
		return -1;
	rest = copy;
	o->attach.lifetimes = true;
	while (!err && (word = strsep(&rest, ","))) {
		size_t i = 0;

		if (!strcmp(word, "all"))
			continue;
		if (!strcmp(word, "alloc")) {
			o->attach.lifetimes = false;
			continue;
		}
		while (i < sizeof(kinds) / sizeof(kinds[0]) && strcmp(word, kinds[i].name))
			i++;
		if (i == sizeof(kinds) / sizeof(kinds[0])) {
			err = -1;
			break;
		}
		heaps |= kinds[i].heaps;
		sources |= kinds[i].sources;
	}
	free(copy);
	o->attach.heaps = heaps ? heaps : ~0u;
	o->attach.sources = sources ? sources : ~0u;
	return err;
}

static int add_domain(struct record_options *o, const char *text)
{
	uint32_t *grown;
	char *end;
	unsigned long id;

	if (*text < '0' || *text > '9')
		return -1;
	id = strtoul(text, &end, 10);
	if (*end || id >= UINT32_MAX)
		return -1;
	grown = realloc(o->domains, (o->attach.n_domains + 1) * sizeof(*grown));
	if (!grown)
		return -1;
	grown[o->attach.n_domains++] = (uint32_t)id;
	o->domains = grown;
	o->attach.domains = grown;
	return 0;
}

/* The ring buffer's size: a power of two, at least a page, at most 1 GiB. */
static int parse_ring_size(struct record_options *o, const char *text)
{
	uint64_t bytes, size = sysconf(_SC_PAGESIZE);

	if (cli__parse_bytes(text, &bytes) || bytes > 1u << 30)
		return -1;
	while (size < bytes)
		size *= 2;
	o->attach.ring_bytes = (uint32_t)size;
	return 0;
}

static int parse_rate(struct record_options *o, double rate)
{
	o->n_rates_given++;
	return tier_choice__make(rate, &o->attach.tier);
}

static int parse_depth(struct record_options *o, const char *text)
{
	int depth;

	if (!strcmp(text, "0"))
		depth = 0;
	else if (cli__parse_positive(text, SONDE_STACK_MAX, &depth))
		return -1;
	o->attach.stack_depth = (uint32_t)depth;
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

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct record_options *o = state->input;
	uint64_t bytes;
	double rate;
	int pid;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		return 0;
	case 'p':
		if (cli__parse_positive(arg, INT32_MAX, &pid))
			cli__argp_error(state, "not a PID: %s", arg);
		o->pid = pid;
		return 0;
	case 'r':
		if (cli__parse_rate(arg, &rate) || parse_rate(o, rate))
			cli__argp_error(state,
					"the rate must be in (0, 1], as 2^-13 or 0.00037: %s", arg);
		return 0;
	case OPT_INTERVAL:
		if (cli__parse_bytes(arg, &bytes) || bytes < WORD_BYTES ||
		    parse_rate(o, WORD_BYTES / (double)bytes))
			cli__argp_error(state, "the interval must be at least 8 bytes, as 512k: %s",
					arg);
		return 0;
	case OPT_STACK_DEPTH:
		if (parse_depth(o, arg))
			cli__argp_error(state, "the stack depth must be 0 to %d: %s",
					SONDE_STACK_MAX, arg);
		return 0;
	case OPT_DOMAIN:
		if (add_domain(o, arg))
			cli__argp_error(state, "not a domain id: %s", arg);
		return 0;
	case OPT_TRACK:
		if (parse_track(o, arg))
			cli__argp_error(state, "unknown kinds: %s", arg);
		return 0;
	case OPT_DURATION:
		if (cli__parse_seconds(arg, &o->duration_s))
			cli__argp_error(state, "not a duration in seconds: %s", arg);
		return 0;
	case 'o':
		o->output = strcmp(arg, "-") ? arg : NULL;
		return 0;
	case OPT_FORMAT:
		if (strcmp(arg, "jsonl") && strcmp(arg, "raw"))
			cli__argp_error(state, "the format is jsonl or raw, not %s", arg);
		o->is_raw = !strcmp(arg, "raw");
		return 0;
	case OPT_TOP:
		if (cli__parse_positive(arg, 1000000, &o->top))
			cli__argp_error(state, "not a number of sites: %s", arg);
		return 0;
	case OPT_RING_SIZE:
		if (parse_ring_size(o, arg))
			cli__argp_error(state, "not a ring buffer size up to 1G: %s", arg);
		return 0;
	case OPT_MAX_BLOCKS:
		if (parse_count(arg, &o->attach.max_blocks))
			cli__argp_error(state, "not a number of blocks up to 4194304: %s", arg);
		return 0;
	case OPT_MAX_STACKS:
		if (parse_count(arg, &o->attach.max_stacks))
			cli__argp_error(state, "not a number of stacks up to 4194304: %s", arg);
		return 0;
	case ARGP_KEY_ARGS:
		o->command = state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		if (o->n_rates_given > 1)
			cli__argp_error(state, "give one rate or interval only");
		if (!o->pid == !o->command)
			cli__argp_error(state, "give either -p PID or a command");
		if (o->command && o->attach.n_domains)
			cli__argp_error(state, "--domain needs a running process (-p PID)");
		if (o->is_raw && !o->output && isatty(STDOUT_FILENO))
			cli__argp_error(state, "a raw capture is not for a terminal: give -o FILE");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int record_options__parse(struct record_options *o, int argc, char **argv)
{
	static const struct argp argp = { options, parse, "-p PID\n-- COMMAND [ARG...]", doc, NULL,
					  NULL,    NULL };

	memset(o, 0, sizeof(*o));
	o->attach.stack_depth = STACK_DEPTH_DEFAULT;
	tier_choice__make(RATE_DEFAULT, &o->attach.tier);
	parse_track(o, "all");
	/* In order: what follows the command is the command's. argp exits by itself
	 * after a usage error, with the status that cli__init chose. */
	return argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, o) ? CLI_EXIT_USAGE : 0;
}

void record_options__deinit(struct record_options *o)
{
	free(o->domains);
	o->domains = NULL;
	o->attach.domains = NULL;
	o->attach.n_domains = 0;
}
