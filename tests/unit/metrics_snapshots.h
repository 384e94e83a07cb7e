/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Snapshots for the tests of the metrics, and promtool's opinion of a text.
 *
 * In:   numbers.
 * Out:  JSON as metrics.h describes it.
 */
#ifndef HEAPSONDE_TEST_METRICS_SNAPSHOTS_H
#define HEAPSONDE_TEST_METRICS_SNAPSHOTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

/* Counters, all different, that grow with n; major_words includes promoted_words. */
static void add_numbers(json_t *o, json_int_t n)
{
	json_object_set_new(o, "minor_words", json_integer(1000 * n));
	json_object_set_new(o, "promoted_words", json_integer(100 * n));
	json_object_set_new(o, "major_words", json_integer(150 * n));
	json_object_set_new(o, "minor_collections", json_integer(10 * n));
	json_object_set_new(o, "major_collections", json_integer(n));
}

static json_t *a_domain(json_int_t id, json_int_t n)
{
	json_t *o = json_pack("{s:I}", "domain", id);

	add_numbers(o, n);
	return o;
}

/* A target whose domains are 0 to n_domains - 1; count other ones did other. */
static json_t *a_target(json_int_t pid, const char *command, int n_domains, json_int_t n,
			json_int_t count, json_int_t other)
{
	json_t *domains = json_array(), *rest = json_pack("{s:I}", "count", count);

	for (int i = 0; i < n_domains; i++)
		json_array_append_new(domains, a_domain(i, n));
	add_numbers(rest, other);
	return json_pack("{s:I, s:s, s:I, s:I, s:o, s:o}", "pid", pid, "command", command, "cpu_ns",
			 (json_int_t)1500000000, "rss_bytes", (json_int_t)4096, "domains", domains,
			 "other", rest);
}

static json_t *a_profile(json_int_t id, json_int_t pid, const char *state, json_int_t n)
{
	return json_pack("{s:I, s:I, s:i, s:s, s:s, s:n, s:f, s:i, s:I, s:I, s:f, s:i, s:{s:I}, "
			 "s:I, s:n}",
			 "profile", id, "pid", pid, "uid", 1000, "command", "busy", "state", state,
			 "reason", "rate", 0.25, "rates", 1, "records", 3 * n, "samples", 4 * n,
			 "live_words", 7.5, "followers", 2, "lost", "event_ring_full", 5 * n,
			 "output_bytes", 6 * n, "output_error");
}

/* A snapshot of arrays, which it takes over. */
static json_t *a_snapshot(json_t *targets, json_t *profiles)
{
	return json_pack("{s:o, s:o, s:{s:I, s:I, s:i}}", "targets", targets, "profiles", profiles,
			 "daemon", "cpu_ns", (json_int_t)2500000000, "rss_bytes", (json_int_t)8192,
			 "workers", 1);
}

/* promtool must be content, without a word. */
static void check_with_promtool(const char *text, size_t len)
{
	char said[1024] = "";
	int in[2], out[2], status = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (!pid) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		dup2(out[1], STDERR_FILENO);
		close(in[1]);
		execlp("promtool", "promtool", "check", "metrics", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	while (len) {
		n = write(in[1], text, len);
		if (n <= 0)
			break;
		text += n;
		len -= (size_t)n;
	}
	close(in[1]);
	n = read(out[0], said, sizeof(said) - 1);
	said[n > 0 ? n : 0] = 0;
	close(out[0]);
	waitpid(pid, &status, 0);
	if (status || *said)
		fail_msg("promtool: wait status %#x: %s", status, said);
}

#endif /* HEAPSONDE_TEST_METRICS_SNAPSHOTS_H */
