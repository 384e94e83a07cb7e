/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arguments of commands that are about one profile of the daemon: --socket and PROFILE.
 *
 * In:   a command's parser, with daemon_args__argp among its children and a struct
 *       daemon_args as that child's input.
 * Out:  the struct filled in; or a usage error.
 *
 * A command that takes more arguments handles those that come when the profile is known; argp
 * asks it first.
 */
#ifndef HEAPSONDE_DAEMON_ARGS_H
#define HEAPSONDE_DAEMON_ARGS_H

#include <argp.h>
#include <stdbool.h>

struct daemon_args {
	int profile;        /* 0: not given */
	bool is_optional;   /* set by the command: none means all */
	const char *socket; /* NULL: where it is by default */
};

extern const struct argp daemon_args__argp;

#endif /* HEAPSONDE_DAEMON_ARGS_H */
