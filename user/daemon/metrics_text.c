/* SPDX-License-Identifier: BSD-2-Clause */
/* See metrics_text.h. Samples of a family stand together, as the format wants it. */
#include "user/daemon/metrics_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define NS_PER_S 1e9

static void family(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP heapsonde_%s %s\n# TYPE heapsonde_%s %s\n", name, help, name, type);
}

/* The value of a label. */
static void label_text(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n') {
			fputs("\\n", f);
			continue;
		}
		if (*text == '\\' || *text == '"')
			fputc('\\', f);
		fputc(*text, f);
	}
}

/* heapsonde_NAME{LABELS} VALUE; labels are printf's. */
static void sample(FILE *f, const char *name, double value, const char *labels, ...)
	__attribute__((format(printf, 4, 5)));

static void sample(FILE *f, const char *name, double value, const char *labels, ...)
{
	va_list ap;

	fprintf(f, "heapsonde_%s{", name);
	va_start(ap, labels);
	vfprintf(f, labels, ap);
	va_end(ap);
	/* 2^53 words are 64 PiB; a double is what Prometheus has. */
	fprintf(f, "} %.17g\n", value);
}

/* A family of one sample without labels. */
static void gauge(FILE *f, const char *name, size_t value, const char *help)
{
	family(f, name, "gauge", help);
	fprintf(f, "heapsonde_%s %zu\n", name, value);
}

/* ---- what targets do ---- */

/* A number of a target's domain, a label more if it is one of several of a family. */
struct column {
	enum metrics_count count;
	const char *label;
};

#define NAMED_DOMAINS "pid=\"%" PRId64 "\",domain=\"%" PRIu64 "\"%s"
#define OTHER_DOMAINS "pid=\"%" PRId64 "\",domain=\"other\"%s"
#define OTHER_TARGETS "pid=\"other\",domain=\"other\"%s"

static void target_column(FILE *f, const char *name, const struct metrics_target *t,
			  const struct column *c)
{
	for (size_t i = 0; i < t->n_domains; i++)
		sample(f, name, (double)t->domains[i].now.n[c->count], NAMED_DOMAINS, t->pid,
		       t->domains[i].id, c->label);
	sample(f, name, (double)t->other.n[c->count], OTHER_DOMAINS, t->pid, c->label);
}

static void columns(FILE *f, const struct metrics_view *v, const char *name, const char *help,
		    const struct column *columns, size_t n)
{
	family(f, name, "counter", help);
	for (const struct metrics_target *t = v->targets; t; t = t->hh.next)
		for (size_t i = 0; i < n && t->has_place; i++)
			target_column(f, name, t, &columns[i]);
	for (size_t i = 0; i < n; i++)
		sample(f, name, (double)v->other_targets.n[columns[i].count], OTHER_TARGETS,
		       columns[i].label);
}

static void counters(FILE *f, const struct metrics_view *v)
{
	static const struct column allocated[] = { { COUNT_MINOR_WORDS, ",heap=\"minor\"" },
						   { COUNT_MAJOR_WORDS, ",heap=\"major\"" } };
	static const struct column promoted[] = { { COUNT_PROMOTED_WORDS, "" } };
	static const struct column collections[] = { { COUNT_MINOR_COLLECTIONS, ",kind=\"minor\"" },
						     { COUNT_MAJOR_COLLECTIONS,
						       ",kind=\"major\"" } };

	columns(f, v, "allocated_words_total",
		"Words that the domain has allocated, as of its last collection; major: directly "
		"in the major heap, without promoted ones.",
		allocated, 2);
	columns(f, v, "promoted_words_total", "Words that the domain has promoted.", promoted, 1);
	columns(f, v, "collections_total", "Collections that the domain has taken part in.",
		collections, 2);
}

static void targets(FILE *f, const struct metrics_view *v)
{
	const struct metrics_target *t;

	gauge(f, "targets", v->n_targets, "Processes that are profiled.");
	gauge(f, "other_targets", v->n_other_targets,
	      "Those of them that are summed up as pid=\"other\".");
	family(f, "target_info", "gauge", "The command line of a process.");
	for (t = v->targets; t; t = t->hh.next) {
		if (!t->has_place)
			continue;
		fprintf(f, "heapsonde_target_info{pid=\"%" PRId64 "\",command=\"", t->pid);
		label_text(f, t->command);
		fputs("\"} 1\n", f);
	}
	family(f, "domains", "gauge", "Domains of the process that are shown one by one.");
	for (t = v->targets; t; t = t->hh.next)
		if (t->has_place)
			sample(f, "domains", (double)t->n_domains, "pid=\"%" PRId64 "\"", t->pid);
	family(f, "other_domains", "gauge",
	       "Domains of the process, terminated ones among them, that are summed up as "
	       "domain=\"other\".");
	for (t = v->targets; t; t = t->hh.next)
		if (t->has_place)
			sample(f, "other_domains", (double)t->n_other, "pid=\"%" PRId64 "\"",
			       t->pid);
}

/* ---- profiles ---- */

#define PROFILE "pid=\"%" PRId64 "\",profile=\"%" PRIu64 "\""
#define OTHER_PROFILES "pid=\"other\",profile=\"other\""

static const char *const state_names[METRICS_STATES] = {
	[METRICS_SAMPLING] = "sampling",
	[METRICS_STOPPED] = "stopped",
	[METRICS_FINISHED] = "finished",
};

static double records_of(const struct metrics_profile *p)
{
	return (double)p->records;
}

static double samples_of(const struct metrics_profile *p)
{
	return (double)p->samples;
}

static double live_words_of(const struct metrics_profile *p)
{
	return p->live_words;
}

static double followers_of(const struct metrics_profile *p)
{
	return (double)p->followers;
}

static double output_bytes_of(const struct metrics_profile *p)
{
	return (double)p->output_bytes;
}

static double failed_of(const struct metrics_profile *p)
{
	return p->has_failed;
}

static double rate_of(const struct metrics_profile *p)
{
	return p->rate;
}

/* A number of each profile. */
static const struct {
	const char *name, *type, *help;
	double (*of)(const struct metrics_profile *p);
	bool has_sum; /* over the other ones */
} numbers[] = {
	{ "records_total", "counter", "Allocations reported.", records_of, true },
	{ "samples_total", "counter", "Samples in the allocations reported.", samples_of, true },
	{ "live_words", "gauge",
	  "Estimate of the words allocated since the profile began and not dead yet. Blocks "
	  "allocated before are not known and not in it.",
	  live_words_of, true },
	{ "followers", "gauge", "Connections that follow the profile.", followers_of, true },
	{ "output_bytes_total", "counter", "Bytes written to the output.", output_bytes_of, true },
	{ "output_failed", "gauge", "Whether the output could not be written.", failed_of, false },
	{ "sampling_rate", "gauge", "Samples per word asked for last; 0: counters only.", rate_of,
	  false },
};

static void profile_numbers(FILE *f, const struct metrics_view *v)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const struct metrics_profile *p;

		family(f, numbers[i].name, numbers[i].type, numbers[i].help);
		for (p = v->profiles; p; p = p->hh.next)
			if (p->has_place)
				sample(f, numbers[i].name, numbers[i].of(p), PROFILE, p->pid,
				       p->id);
		if (numbers[i].has_sum)
			sample(f, numbers[i].name, numbers[i].of(&v->other_profiles), "%s",
			       OTHER_PROFILES);
	}
}

static void losses(FILE *f, const struct metrics_view *v)
{
	family(f, "lost_total", "counter", "What was lost, by cause, in the unit of the cause.");
	for (const struct metrics_profile *p = v->profiles; p; p = p->hh.next) {
		if (!p->has_place)
			continue;
		for (size_t i = 0; i < p->n_losses; i++)
			sample(f, "lost_total", (double)p->losses[i].n, PROFILE ",cause=\"%s\"",
			       p->pid, p->id, p->losses[i].cause);
		if (p->other_lost)
			sample(f, "lost_total", (double)p->other_lost, PROFILE ",cause=\"other\"",
			       p->pid, p->id);
	}
	sample(f, "lost_total", (double)v->other_profiles.lost, OTHER_PROFILES ",cause=\"%s\"",
	       "other");
}

static void profiles(FILE *f, const struct metrics_view *v)
{
	const struct metrics_profile *p;

	family(f, "profiles", "gauge", "Profiles, by state.");
	for (int i = 0; i < METRICS_STATES; i++)
		sample(f, "profiles", (double)v->in_state[i], "state=\"%s\"", state_names[i]);
	gauge(f, "other_profiles", v->n_other_profiles,
	      "Those of them that are summed up as profile=\"other\".");
	family(f, "profile_info", "gauge", "Who has started a profile.");
	for (p = v->profiles; p; p = p->hh.next)
		if (p->has_place)
			sample(f, "profile_info", 1, PROFILE ",uid=\"%" PRId64 "\"", p->pid, p->id,
			       p->uid);
	family(f, "profile_state", "gauge", "1 for the state that a profile is in.");
	for (p = v->profiles; p; p = p->hh.next)
		for (int i = 0; i < METRICS_STATES && p->has_place; i++)
			sample(f, "profile_state", (int)p->state == i, PROFILE ",state=\"%s\"",
			       p->pid, p->id, state_names[i]);
	profile_numbers(f, v);
	losses(f, v);
}

/* ---- the daemon ---- */

static void daemon_itself(FILE *f, const struct metrics_view *v)
{
	family(f, "build_info", "gauge", "The version of heapsonde.");
	sample(f, "build_info", 1, "version=\"%s\"", HEAPSONDE_VERSION);
	gauge(f, "workers", v->n_workers, "Worker processes that have told of themselves.");
	family(f, "process_cpu_seconds_total", "counter",
	       "Processor time of the daemon's own processes.");
	sample(f, "process_cpu_seconds_total", (double)v->cpu_ns / NS_PER_S, "role=\"%s\"",
	       "supervisor");
	sample(f, "process_cpu_seconds_total", (double)v->workers_cpu_ns / NS_PER_S, "role=\"%s\"",
	       "worker");
	family(f, "resident_memory_bytes", "gauge", "Memory of the daemon's own processes.");
	sample(f, "resident_memory_bytes", (double)v->rss_bytes, "role=\"%s\"", "supervisor");
	sample(f, "resident_memory_bytes", (double)v->workers_rss_bytes, "role=\"%s\"", "worker");
}

int metrics_text__render(const struct metrics_view *v, char **text, size_t *len)
{
	FILE *f = open_memstream(text, len);
	int failed;

	if (!f)
		return -ENOMEM;
	daemon_itself(f, v);
	targets(f, v);
	counters(f, v);
	profiles(f, v);
	failed = ferror(f);
	if (!fclose(f) && !failed)
		return 0;
	free(*text);
	*text = NULL;
	return -ENOMEM;
}
