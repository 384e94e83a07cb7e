/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heapsonde: statmemprof from the outside. One binary, one function per command.
 *
 * In:   argv.
 * Out:  the exit status of the command (cli.h).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "user/cli/cli.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "list", cmd_list, "processes that can be attached to" },
	{ "record", cmd_record, "write sampled allocations and lifetimes of a process" },
	{ "stat", cmd_stat, "allocation and collection counters of each domain" },
	{ "daemon", cmd_daemon, "hold profiles for other commands and users" },
	{ "start", cmd_start, "begin a profile in the daemon" },
	{ "stop", cmd_stop, "end the sampling of a profile; its blocks are followed on" },
	{ "discard", cmd_discard, "forget a profile, and finish its output" },
	{ "rate", cmd_rate, "sample at another rate" },
	{ "status", cmd_status, "the profiles of the daemon" },
	{ "follow", cmd_follow, "write the records of a profile as they come" },
	{ "export", cmd_export, "make what other tools read from a capture" },
	{ "diff", cmd_diff, "two captures, and which differences are more than chance" },
	{ "leaks", cmd_leaks, "what a recorded program holds for long, and ever more of" },
	{ "report", cmd_report, "where a recorded program's words come from" },
	{ "timeline", cmd_timeline, "a recorded program's words over time" },
	{ "top", cmd_top, "live view of what a process allocates, and what becomes of it" },
	{ "residue", cmd_residue, "what heapsondes that have gone have left behind, if anything" },
	{ "version", cmd_version, "versions, and what this kernel offers" },
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *f)
{
	fputs("Usage: heapsonde COMMAND [OPTION...]\n"
	      "Reports what Gc.Memprof would tell a running OCaml 5 program, from outside.\n\n",
	      f);
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("\nheapsonde COMMAND -h tells more, as does `man heapsonde`.\n", f);
}

/* Returns the exit status of the command, or of a usage error. */
static int run(int argc, char **argv)
{
	char name[64];

	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (strcmp(argv[0], commands[i].name))
			continue;
		/* What usage messages call the program. */
		snprintf(name, sizeof(name), "heapsonde %s", commands[i].name);
		argv[0] = name;
		return commands[i].run(argc, argv);
	}
	if (argv[0][0] == '-')
		return cli__usage_error("no option %s here; options come after the command",
					argv[0]);
	return cli__usage_error("no command %s; heapsonde --help lists them", argv[0]);
}

/* heapsonde help COMMAND is heapsonde COMMAND --help. */
static int help(const char *command)
{
	char option[] = "--help", name[64];
	char *argv[] = { name, option, NULL };

	snprintf(name, sizeof(name), "%s", command);
	return run(2, argv);
}

/*
 * Who starts us may have closed stdin, stdout or stderr. What we open next would take that number,
 * and a message would go into a capture. So the number is taken, by what can only be used the other
 * way round: whoever reads or writes there fails, as he should. A program that we start has it
 * closed again.
 */
static void take_closed_numbers(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0)
			return; /* then there is nothing that could be done about it */
}

int main(int argc, char **argv)
{
	take_closed_numbers();
	cli__init();
	if (argc < 2) {
		print_help(stderr);
		return CLI_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "help") && argc > 3)
		return cli__usage_error("heapsonde help takes one command, not also %s", argv[3]);
	if (!strcmp(argv[1], "help") && argc > 2)
		return help(argv[2]);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "-?") ||
	    !strcmp(argv[1], "help")) {
		print_help(stdout);
		return cli__finish(0);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("heapsonde " HEAPSONDE_VERSION);
		return cli__finish(0);
	}
	return run(argc - 1, argv + 1);
}
