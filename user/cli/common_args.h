/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of every command: -h and -q and -v.
 *
 * In:   argv, and the parser of the command.
 * Out:  the level of user/common/say.h; the help.
 *
 * A command calls common_args__parse where it would call argp_parse, and has the
 * options; its own parser knows nothing of them.
 */
#ifndef HEAPSONDE_COMMON_ARGS_H
#define HEAPSONDE_COMMON_ARGS_H

#include <argp.h>

/*
 * As argp_parse (flags: ARGP_IN_ORDER, ARGP_NO_ARGS), with these options besides:
 *
 *	-h, --help, -?   print the help on stdout and exit with 0; --usage: the short one
 *	-q, --quiet      no notes on stderr, errors only
 *	-v, --verbose    more notes
 *
 * The last of -q and -v counts. input is the command's parser's. Usage errors are one
 * line. Returns 0, or an error after the line has been printed: end with CLI_EXIT_USAGE.
 */
error_t common_args__parse(const struct argp *argp, int argc, char **argv, unsigned int flags,
			   void *input);

#endif /* HEAPSONDE_COMMON_ARGS_H */
