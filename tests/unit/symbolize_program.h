/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OCaml programs to be symbolized: built, started, and asked what they know about
 * themselves (symbolize_dump.ml), for test_symbolize_ocaml.c.
 */
#ifndef SYMBOLIZE_PROGRAM_H
#define SYMBOLIZE_PROGRAM_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_SLOTS 4096
#define MAX_LOCS 16

/* One slot, and Printexc's lines about it. */
struct expected {
	uint64_t slot;
	int n;
	char *locs[MAX_LOCS];
};

struct program {
	pid_t pid;
	FILE *in, *out;
	size_t n;
	struct expected slots[MAX_SLOTS];
};

/* The directory of ocamlopt, found once: OCAML_BIN, scripts/setup or PATH. */
static bool find_ocaml(char *dir, size_t size)
{
	const char *env = getenv("OCAML_BIN");
	FILE *p;

	if (env && *env) {
		snprintf(dir, size, "%s", env);
		return true;
	}
	p = popen("d=$(scripts/setup --ocaml-bin 2>/dev/null) && [ -x \"$d/ocamlopt\" ] && "
		  "echo \"$d\" || dirname \"$(command -v ocamlopt)\"",
		  "r");
	if (!p)
		return false;
	if (!fgets(dir, (int)size, p))
		dir[0] = '\0';
	pclose(p);
	dir[strcspn(dir, "\n")] = '\0';
	return dir[0] == '/';
}

/* Start argv as user uid (0: as we are). */
static bool program__start(struct program *t, char *const argv[], uid_t uid)
{
	int to[2], from[2];

	memset(t, 0, sizeof(*t));
	if (pipe(to) || pipe(from))
		return false;
	t->pid = fork();
	if (t->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[0]);
		close(to[1]);
		close(from[0]);
		close(from[1]);
		if (uid && setresuid(uid, uid, uid))
			_exit(126);
		execv(argv[0], argv);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	t->in = fdopen(to[1], "w");
	t->out = fdopen(from[0], "r");
	return t->pid > 0;
}

/* Read what the program says until it pauses; true if it did. Adds to t->slots. */
static bool program__listen(struct program *t)
{
	char line[4096];

	while (fgets(line, sizeof(line), t->out)) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "end") == 0)
			return true;
		if (strncmp(line, "slot ", 5) == 0 && t->n < MAX_SLOTS) {
			t->slots[t->n++].slot = strtoull(line + 5, NULL, 16);
		} else if (strncmp(line, "loc ", 4) == 0 && t->n) {
			struct expected *e = &t->slots[t->n - 1];

			if (e->n == MAX_LOCS)
				return false;
			e->locs[e->n++] = strdup(line + 4);
		} else {
			return false;
		}
	}
	return false;
}

static void program__go_on(struct program *t)
{
	fputs("\n", t->in);
	fflush(t->in);
}

static void program__kill(struct program *t)
{
	if (t->pid > 0) {
		kill(t->pid, SIGKILL);
		waitpid(t->pid, NULL, 0);
	}
	t->pid = -1;
}

static void program__end(struct program *t)
{
	program__kill(t);
	fclose(t->in);
	fclose(t->out);
	for (size_t i = 0; i < t->n; i++)
		for (int j = 0; j < t->slots[i].n; j++)
			free(t->slots[i].locs[j]);
}

#endif /* SYMBOLIZE_PROGRAM_H */
