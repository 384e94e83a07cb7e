/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The liar: a program that has the probes of heapsonde's runtime and no OCaml, and fires them
 * with whatever registers, structures and memory it likes. What it does is told on stdin, a
 * command a line; each is answered with a line, "done COMMAND". So tests/e2e/liars.bats can
 * say what has to be counted, and that nothing that is honest gets lost among lies.
 *
 * In:   commands, see `commands` below.
 * Out:  "ready PID"; the answers; for "told" the lines "lies SAMPLES EVENTS", how many lies there
 * were that are seen through at once, and "honest …" (liar_honest.c); at the end of stdin or after
 *       "stop" "intact", if nobody but the liar has written to its memory: exit 0 then, else 1.
 *
 * Its random numbers are the same in each run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/programs/liar.h"

/* Memory that nobody has to write to, before and behind all else. */
#define SEAL_WORDS 131072u
static uint64_t seal[SEAL_WORDS];

/* What the registry was when it was last changed. */
static struct sonde_registry registry_copy;

_Noreturn void die(const char *what)
{
	perror(what);
	exit(2);
}

static uint64_t seal_word(uint64_t i)
{
	return (i + 1) * 0x9e3779b97f4a7c15u;
}

static int is_intact(void)
{
	for (uint64_t i = 0; i < SEAL_WORDS; i++)
		if (seal[i] != seal_word(i))
			return 0;
	/* Its first field is a semaphore, and nobody attaches there. */
	return !memcmp(&registry_copy, &liar_registry, sizeof(registry_copy));
}

static void be_busy(unsigned int n, const char *kind)
{
	(void)kind;
	be_honest(n);
}

static void plainly(unsigned int n, const char *kind)
{
	(void)kind;
	for (unsigned int i = 0; i < n; i++)
		lie_plainly();
}

#define WITHOUT_KIND(name, function)                                                               \
	static void name(unsigned int n, const char *kind)                                         \
	{                                                                                          \
		(void)kind;                                                                        \
		function(n);                                                                       \
	}
WITHOUT_KIND(at_random, lie_at_random)
WITHOUT_KIND(of_tables, lie_of_tables)
WITHOUT_KIND(of_mappings, make_mappings)
WITHOUT_KIND(of_headers, lie_of_headers)
WITHOUT_KIND(of_places, lie_of_places)
WITHOUT_KIND(from_threads, lie_from_threads)

static void in_registry(unsigned int n, const char *kind)
{
	(void)n;
	lie_in_registry(kind);
	registry_copy = liar_registry;
}

/* What has been told since this was last asked. */
static void tell_all(unsigned int n, const char *kind)
{
	(void)n;
	(void)kind;
	printf("lies %lu %lu\n", lies_seen_through, gc_lies_seen_through);
	lies_seen_through = gc_lies_seen_through = 0;
	print_honest();
}

static void in_semaphores(unsigned int n, const char *kind)
{
	write_semaphores((uint16_t)n, !strcmp(kind, "up"));
}

static const struct {
	const char *name;
	void (*run)(unsigned int n, const char *kind);
} commands[] = {
	{ "honest", be_busy },          /* N: blocks */
	{ "plain", plainly },           /* N times each lie that is seen through */
	{ "random", at_random },        /* N: firings */
	{ "stacks", lie_of_stacks },    /* N KIND: same-hash, same-stack, fresh, depth */
	{ "tables", of_tables },        /* N: stacks of forged frames */
	{ "mappings", of_mappings },    /* N */
	{ "headers", of_headers },      /* N: batches, each with a collection */
	{ "places", of_places },        /* N: the same */
	{ "threads", from_threads },    /* N: the same, in each of some threads */
	{ "domains", lie_of_domains },  /* N KIND: many, descending, spawned, few */
	{ "registry", in_registry },    /* 0 KIND: honest, or how it lies */
	{ "told", tell_all },           /* 0: print the lines below, and begin to count anew */
	{ "semaphores", in_semaphores } /* N KIND: write N into all, or those that are up */
};

static void obey(const char *line)
{
	char name[32] = "", kind[32] = "";
	unsigned int n = 0;

	sscanf(line, "%31s %u %31s", name, &n, kind);
	for (size_t i = 0; i < N_ELEMENTS(commands); i++)
		if (!strcmp(commands[i].name, name)) {
			commands[i].run(n, kind);
			printf("done %s", line);
			fflush(stdout);
			return;
		}
	die(name);
}

int main(void)
{
	char line[128];

	for (uint64_t i = 0; i < SEAL_WORDS; i++)
		seal[i] = seal_word(i);
	lie_in_registry("honest");
	registry_copy = liar_registry;
	printf("ready %d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "stop\n"))
		obey(line);
	if (!is_intact())
		return 1;
	printf("intact\n");
	return 0;
}
