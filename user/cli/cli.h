/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the commands of `heapsonde` share: their entry points, how they end in an
 * error, and how the values of options are read.
 *
 * In:   argv.
 * Out:  exit status: 0 done, 1 an error (one line on stderr), 2 a usage error.
 */
#ifndef HEAPSONDE_CLI_H
#define HEAPSONDE_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/common/error.h"

#define CLI_EXIT_ERROR 1
#define CLI_EXIT_USAGE 2

/*
 * One function per command, in user/cli/cmd_NAME.c. argv[0] is what usage
 * messages call it ("heapsonde list"). They return the exit status.
 */
int cmd_record(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_residue(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_leaks(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_timeline(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_daemon(int argc, char **argv);
int cmd_start(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_discard(int argc, char **argv);
int cmd_rate(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_follow(int argc, char **argv);

/*
 * Make argp end in status 2 after a usage error (its own default is 64). To be
 * called before argp_parse.
 */
void cli__init(void);

/* Print "heapsonde: TEXT" on stderr. Returns CLI_EXIT_ERROR. */
int cli__die(const struct hs_error *err);

/* As cli__die with a text of its own, printf-style. Returns CLI_EXIT_USAGE. */
int cli__usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * As argp_error, but with one line only, as all our messages have: print it and
 * exit with CLI_EXIT_USAGE.
 */
struct argp_state;
void cli__argp_error(const struct argp_state *state, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/*
 * For ARGP_KEY_INIT: leave argp's own usage errors with the one line that getopt
 * prints. argp_parse then returns an error instead of exiting.
 */
void cli__argp_one_line(struct argp_state *state);

/* The value of -p; ends as cli__argp_error does if it is none. */
int cli__argp_pid(const struct argp_state *state, const char *arg);

/* The number of a profile, as an argument; likewise. */
int cli__argp_profile(const struct argp_state *state, const char *arg);

/* A duration in seconds, likewise. */
double cli__argp_seconds(const struct argp_state *state, const char *arg);

/* The option --socket, of all commands that talk to the daemon; with user/client. */
#define CLI_OPT_SOCKET 0x200
#define CLI_SOCKET_HELP                                                                            \
	"Where the daemon listens (default $HEAPSONDE_SOCKET, or " WIRE_SOCKET_DEFAULT ")"

/*
 * The command line of a command that has no option but --json and takes no
 * arguments. doc and json_help are for --help. Returns 0, or CLI_EXIT_USAGE after a
 * message.
 */
int cli__parse_json_only(int argc, char **argv, const char *doc, const char *json_help, bool *json);

/* The signals that ask a command to end: SIGINT, SIGTERM and SIGHUP. */
void cli__ending_signals(sigset_t *set);

/*
 * From now on SIGINT, SIGTERM and SIGHUP are read from a descriptor, so that they
 * interrupt nothing, and SIGPIPE is an error of write. Returns the signalfd, or a
 * negative errno with a text.
 */
int cli__open_signals(struct hs_error *err);

/*
 * End a command that has written to stdout: flush it and find out whether
 * everything arrived (a full disk, a closed pipe). Returns status, or
 * CLI_EXIT_ERROR with a message.
 */
int cli__finish(int status);

/*
 * Values of options. Each returns 0 or -EINVAL, and leaves *out alone on error.
 *
 * A rate, samples per word: "2^-13", "0.00037", "1e-6"; 0 < rate <= 1.
 */
int cli__parse_rate(const char *text, double *out);

/* A size in bytes, >= 1: digits and perhaps k, M, G or T, which count in 1024s. */
int cli__parse_bytes(const char *text, uint64_t *out);

/* A duration in seconds, > 0: "2.5", "500ms", "10s", "1m", "2h". At most a year. */
int cli__parse_seconds(const char *text, double *out);

/* A decimal integer, 1 <= value <= max. */
int cli__parse_positive(const char *text, int max, int *out);

/* A user's name, or the number if it has none. */
void cli__format_user(uid_t uid, char *text, size_t size);

/*
 * Print the last column of a line that is `used` columns wide so far: as ps does,
 * cut at the terminal's edge, whole where there is none.
 */
void cli__print_last_column(const char *text, int used);

#endif /* HEAPSONDE_CLI_H */
