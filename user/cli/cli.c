/* SPDX-License-Identifier: BSD-2-Clause */
/* See cli.h. */
#include "user/cli/cli.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "user/cli/common_args.h"
#include "user/common/stream.h"

#define MAX_SECONDS (366.0 * 24 * 3600)

/* Beyond this 2^-n is far below one sample in any process's life. */
#define MAX_RATE_EXPONENT 60

void cli__init(void)
{
	argp_err_exit_status = CLI_EXIT_USAGE;
}

int cli__die(const struct hs_error *err)
{
	fflush(stdout);
	fprintf(stderr, "heapsonde: %s\n", err->text);
	return CLI_EXIT_ERROR;
}

int cli__usage_error(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("heapsonde: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return CLI_EXIT_USAGE;
}

void cli__argp_error(const struct argp_state *state, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "%s: ", state->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (see %s --help)\n", state->name);
	exit(CLI_EXIT_USAGE);
}

void cli__argp_one_line(struct argp_state *state)
{
	/* Without a stream argp neither prints its "Try …" nor exits. */
	state->err_stream = NULL;
}

int cli__argp_pid(const struct argp_state *state, const char *arg)
{
	int pid;

	if (cli__parse_positive(arg, INT32_MAX, &pid))
		cli__argp_error(state, "not a PID: %s", arg);
	return pid;
}

int cli__argp_profile(const struct argp_state *state, const char *arg)
{
	int id;

	if (cli__parse_positive(arg, INT32_MAX, &id))
		cli__argp_error(state, "not the number of a profile: %s", arg);
	return id;
}

double cli__argp_seconds(const struct argp_state *state, const char *arg)
{
	double seconds;

	if (cli__parse_seconds(arg, &seconds))
		cli__argp_error(state, "not a duration in seconds: %s", arg);
	return seconds;
}

static error_t parse_json_only(int key, char *arg, struct argp_state *state)
{
	bool *json = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		cli__argp_one_line(state);
		return 0;
	case 'j':
		*json = true;
		return 0;
	case ARGP_KEY_ARG:
		cli__argp_error(state, "unexpected argument: %s", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cli__parse_json_only(int argc, char **argv, const char *doc, const char *json_help, bool *json)
{
	const struct argp_option options[] = {
		{ "json", 'j', NULL, 0, json_help, 0 },
		{ 0 },
	};
	const struct argp argp = { .options = options, .parser = parse_json_only, .doc = doc };

	cli__init();
	return common_args__parse(&argp, argc, argv, 0, json) ? CLI_EXIT_USAGE : 0;
}

void cli__ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

int cli__open_signals(struct hs_error *err)
{
	sigset_t set;
	int fd;

	cli__ending_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return hs_error__set(err, -errno, "signalfd: %s", strerror(errno));
	return fd;
}

int cli__finish(int status)
{
	struct hs_error err;
	int code = stream__flush(stdout);

	if (!code)
		return status;
	hs_error__set(&err, code, "cannot write the output: %s", strerror(-code));
	return cli__die(&err);
}

/* strtod without what a person does not mean: leading blanks, hex, inf and nan. */
static int parse_number(const char *text, double *value, const char **end)
{
	char *stop;

	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return -EINVAL;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return -EINVAL;
	errno = 0;
	*value = strtod(text, &stop);
	if (stop == text || errno == ERANGE || !isfinite(*value))
		return -EINVAL;
	*end = stop;
	return 0;
}

static int parse_digits(const char *text, uint64_t *value, const char **end)
{
	char *stop;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, &stop, 10);
	*end = stop;
	return errno ? -EINVAL : 0;
}

int cli__parse_rate(const char *text, double *out)
{
	const char *end;
	uint64_t exponent;
	double rate;

	if (!strncmp(text, "2^-", 3)) {
		if (parse_digits(text + 3, &exponent, &end) || exponent > MAX_RATE_EXPONENT)
			return -EINVAL;
		rate = ldexp(1, -(int)exponent);
	} else if (parse_number(text, &rate, &end)) {
		return -EINVAL;
	}
	if (*end || !(rate > 0 && rate <= 1))
		return -EINVAL;
	*out = rate;
	return 0;
}

int cli__parse_bytes(const char *text, uint64_t *out)
{
	static const char units[] = "kMGT";
	const char *end, *unit;
	uint64_t value;

	if (parse_digits(text, &value, &end))
		return -EINVAL;
	if (*end) {
		/* `K` is what many write; `m` and the like would be milli. */
		unit = *end == 'K' ? units : strchr(units, *end);
		if (!unit || (end[1] && strcmp(end + 1, "B") && strcmp(end + 1, "iB")))
			return -EINVAL;
		for (const char *u = units; u <= unit; u++)
			if (__builtin_mul_overflow(value, 1024u, &value))
				return -EINVAL;
	}
	if (!value)
		return -EINVAL;
	*out = value;
	return 0;
}

int cli__parse_seconds(const char *text, double *out)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = { { "", 1 }, { "s", 1 }, { "ms", 1e-3 }, { "m", 60 }, { "h", 3600 } };
	const char *end;
	double value;

	if (parse_number(text, &value, &end))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name))
			continue;
		value *= units[i].seconds;
		if (!(value > 0 && value <= MAX_SECONDS))
			return -EINVAL;
		*out = value;
		return 0;
	}
	return -EINVAL;
}

int cli__parse_positive(const char *text, int max, int *out)
{
	const char *end;
	uint64_t value;

	if (parse_digits(text, &value, &end) || *end || value < 1 || value > (uint64_t)max)
		return -EINVAL;
	*out = (int)value;
	return 0;
}

/* ---- printing ---- */

void cli__format_user(uid_t uid, char *text, size_t size)
{
	const struct passwd *pw = getpwuid(uid);

	if (pw)
		snprintf(text, size, "%s", pw->pw_name);
	else
		snprintf(text, size, "%u", (unsigned)uid);
}

void cli__print_last_column(const char *text, int used)
{
	struct winsize w;
	int room, i;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) || w.ws_col <= used) {
		puts(text);
		return;
	}
	room = w.ws_col - used;
	for (i = 0; text[i]; i++)
		/* A byte that continues a character takes no column. */
		if (((unsigned char)text[i] & 0xc0) != 0x80 && !room--)
			break;
	printf("%.*s\n", i, text);
}
