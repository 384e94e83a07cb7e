/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of the metrics: what is in it, its bounds, and sums that do not fall. */
#include "tests/unit/metrics_snapshots.h"

#include "user/daemon/metrics_text.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Take in a snapshot, which this frees, and render; free() the text. */
static char *show(struct metrics_view *v, json_t *snapshot)
{
	char *text = NULL;
	size_t len = 0;

	assert_non_null(snapshot);
	assert_int_equal(metrics_view__update(v, snapshot), 0);
	json_decref(snapshot);
	assert_int_equal(metrics_text__render(v, &text, &len), 0);
	assert_int_equal(strlen(text), len);
	assert_true(len < 3u << 20);
	return text;
}

/* The value of a sample, by its name and labels; -1 if it is not there. Once only. */
static double value(const char *text, const char *series)
{
	size_t len = strlen(series);
	double found = -1;

	for (const char *p = strstr(text, series); p; p = strstr(p + 1, series)) {
		if ((p != text && p[-1] != '\n') || p[len] != ' ')
			continue;
		if (found != -1)
			fail_msg("%s is there twice", series);
		found = strtod(p + len, NULL);
	}
	return found;
}

static void expect(const char *text, const char *series, double expected)
{
	double found = value(text, series);

	if (found != expected)
		fail_msg("%s is %.17g, not %.17g", series, found, expected);
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	for (const char *p = strstr(text, part); p; p = strstr(p + 1, part))
		n++;
	return n;
}

/* Every sample there once, whatever its value. */
static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check_unique(const char *text)
{
	char *copy = strdup(text), **lines = NULL, *save = NULL;
	size_t n = 0;

	for (char *l = strtok_r(copy, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		if (*l == '#')
			continue;
		*strrchr(l, ' ') = 0;
		lines = reallocarray(lines, n + 1, sizeof(*lines));
		lines[n++] = l;
	}
	qsort(lines, n, sizeof(*lines), by_text);
	for (size_t i = 1; i < n; i++)
		if (!strcmp(lines[i - 1], lines[i]))
			fail_msg("twice: %s", lines[i]);
	free(lines);
	free(copy);
}

static void all_families(void **state)
{
	static const struct {
		const char *series;
		double value;
	} expected[] = {
		{ "heapsonde_build_info{version=\"" HEAPSONDE_VERSION "\"}", 1 },
		{ "heapsonde_workers", 1 },
		{ "heapsonde_process_cpu_seconds_total{role=\"supervisor\"}", 2.5 },
		{ "heapsonde_process_cpu_seconds_total{role=\"worker\"}", 1.5 },
		{ "heapsonde_resident_memory_bytes{role=\"supervisor\"}", 8192 },
		{ "heapsonde_resident_memory_bytes{role=\"worker\"}", 4096 },
		{ "heapsonde_targets", 1 },
		{ "heapsonde_other_targets", 0 },
		{ "heapsonde_target_info{pid=\"4711\",command=\"busy --domains 2\"}", 1 },
		{ "heapsonde_domains{pid=\"4711\"}", 2 },
		{ "heapsonde_other_domains{pid=\"4711\"}", 3 },
		{ "heapsonde_allocated_words_total{pid=\"4711\",domain=\"0\",heap=\"minor\"}",
		  2000 },
		{ "heapsonde_allocated_words_total{pid=\"4711\",domain=\"1\",heap=\"major\"}",
		  100 },
		{ "heapsonde_allocated_words_total{pid=\"4711\",domain=\"other\",heap=\"minor\"}",
		  5000 },
		{ "heapsonde_promoted_words_total{pid=\"4711\",domain=\"0\"}", 200 },
		{ "heapsonde_collections_total{pid=\"4711\",domain=\"0\",kind=\"minor\"}", 20 },
		{ "heapsonde_collections_total{pid=\"4711\",domain=\"0\",kind=\"major\"}", 2 },
		{ "heapsonde_collections_total{pid=\"other\",domain=\"other\",kind=\"major\"}", 0 },
		{ "heapsonde_profiles{state=\"sampling\"}", 1 },
		{ "heapsonde_profiles{state=\"finished\"}", 0 },
		{ "heapsonde_other_profiles", 0 },
		{ "heapsonde_profile_info{pid=\"4711\",profile=\"7\",uid=\"1000\"}", 1 },
		{ "heapsonde_profile_state{pid=\"4711\",profile=\"7\",state=\"sampling\"}", 1 },
		{ "heapsonde_profile_state{pid=\"4711\",profile=\"7\",state=\"stopped\"}", 0 },
		{ "heapsonde_records_total{pid=\"4711\",profile=\"7\"}", 30 },
		{ "heapsonde_samples_total{pid=\"4711\",profile=\"7\"}", 40 },
		{ "heapsonde_live_words{pid=\"4711\",profile=\"7\"}", 7.5 },
		{ "heapsonde_followers{pid=\"4711\",profile=\"7\"}", 2 },
		{ "heapsonde_output_bytes_total{pid=\"4711\",profile=\"7\"}", 60 },
		{ "heapsonde_output_failed{pid=\"4711\",profile=\"7\"}", 0 },
		{ "heapsonde_sampling_rate{pid=\"4711\",profile=\"7\"}", 0.25 },
		{ "heapsonde_lost_total{pid=\"4711\",profile=\"7\",cause=\"event_ring_full\"}",
		  50 },
	};
	struct metrics_view v = { 0 };
	char *text;

	(void)state;
	text = show(&v, a_snapshot(json_pack("[o]", a_target(4711, "busy --domains 2", 2, 2, 3, 5)),
				   json_pack("[o]", a_profile(7, 4711, "sampling", 10))));
	for (size_t i = 0; i < N_OF(expected); i++)
		expect(text, expected[i].series, expected[i].value);
	check_unique(text);
	check_with_promtool(text, strlen(text));
	free(text);
	metrics_view__deinit(&v);
}

static void nothing_there(void **state)
{
	static const char *const snapshots[] = {
		"{}",
		"{\"targets\":[],\"profiles\":[]}",
		"{\"targets\":null,\"profiles\":7,\"daemon\":[]}",
		"{\"targets\":[1,null,{},[]],\"profiles\":[{},\"x\",null]}",
	};
	struct metrics_view v = { 0 };

	(void)state;
	for (size_t i = 0; i < N_OF(snapshots); i++) {
		char *text = show(&v, json_loads(snapshots[i], 0, NULL));

		check_unique(text);
		check_with_promtool(text, strlen(text));
		free(text);
	}
	metrics_view__deinit(&v);
}

/* ---- what a worker may say that its target has taken over ---- */

static void labels_are_escaped(void **state)
{
	struct metrics_view v = { 0 };
	json_t *profile = a_profile(1, 1, "no such \"state\"\n", 1);
	char *text;

	(void)state;
	json_object_set_new(
		profile, "lost",
		json_pack("{s:i, s:i, s:i}", "x\"} 1\nevil_total{a=\"", 3, "", 4, "ring_full", 5));
	text = show(&v, a_snapshot(json_pack("[o]", a_target(1, "a\"b\\c\nd\te\x7f", 1, 1, 0, 0)),
				   json_pack("[o]", profile)));
	expect(text, "heapsonde_target_info{pid=\"1\",command=\"a\\\"b\\\\c?d?e?\"}", 1);
	expect(text, "heapsonde_lost_total{pid=\"1\",profile=\"1\",cause=\"other\"}", 7);
	expect(text, "heapsonde_lost_total{pid=\"1\",profile=\"1\",cause=\"ring_full\"}", 5);
	assert_null(strstr(text, "evil"));
	check_with_promtool(text, strlen(text));
	free(text);
	metrics_view__deinit(&v);
}

/* Cut within a character of three bytes: whole ones only. */
static void long_commands_are_cut(void **state)
{
	struct metrics_view v = { 0 };
	char command[301] = "", *text;

	(void)state;
	for (int i = 0; i < 100; i++)
		strcat(command, "\u20ac");
	text = show(&v,
		    a_snapshot(json_pack("[o]", a_target(1, command, 1, 1, 0, 0)), json_array()));
	assert_int_equal(count(text, "\u20ac"), METRICS_COMMAND_MAX_BYTES / 3);
	check_with_promtool(text, strlen(text));
	free(text);
	metrics_view__deinit(&v);
}

static void strange_numbers(void **state)
{
	struct metrics_view v = { 0 };
	json_t *target = a_target(1, "x", 0, 0, 0, 0), *d = a_domain(-7, 1);
	char *text;

	(void)state;
	json_object_set_new(d, "minor_words", json_integer(INT64_MIN));
	json_object_set_new(d, "major_words", json_integer(3)); /* fewer than were promoted */
	json_object_set_new(d, "minor_collections", json_string("many"));
	json_object_set_new(d, "major_collections", json_integer(INT64_MAX));
	json_object_set_new(
		target, "domains",
		json_pack("[O, O, o, i]", d, d, a_domain(INT64_MAX, INT64_MAX / 1000), 3));
	json_decref(d);
	text = show(&v, a_snapshot(json_pack("[o]", target), json_array()));
	check_unique(text);
	expect(text, "heapsonde_allocated_words_total{pid=\"1\",domain=\"0\",heap=\"minor\"}", 0);
	expect(text, "heapsonde_allocated_words_total{pid=\"1\",domain=\"0\",heap=\"major\"}", 0);
	assert_null(strstr(text, " -"));
	check_with_promtool(text, strlen(text));
	free(text);
	metrics_view__deinit(&v);
}

/* ---- bounds ---- */

static void many_of_everything(void **state)
{
	json_t *targets = json_array(), *profiles = json_array();
	struct metrics_view v = { 0 };
	char *text;

	(void)state;
	json_array_append_new(targets, a_target(1, "x", 10000, 1, 5, 1));
	for (int i = 2; i <= 1000; i++)
		json_array_append_new(targets, a_target(i, "y", 64, 1, 0, 0));
	for (int i = 1; i <= 3000; i++)
		json_array_append_new(profiles, a_profile(i, i % 1000, "sampling", 1));
	text = show(&v, a_snapshot(targets, profiles));
	check_unique(text);
	expect(text, "heapsonde_targets", 1000);
	expect(text, "heapsonde_other_targets", 1000 - METRICS_TARGETS_MAX);
	expect(text, "heapsonde_domains{pid=\"1\"}", METRICS_DOMAINS_MAX);
	expect(text, "heapsonde_other_domains{pid=\"1\"}", 10005 - METRICS_DOMAINS_MAX);
	expect(text, "heapsonde_promoted_words_total{pid=\"1\",domain=\"other\"}",
	       100 * (10001 - METRICS_DOMAINS_MAX));
	expect(text, "heapsonde_profiles{state=\"sampling\"}", 3000);
	expect(text, "heapsonde_other_profiles", 3000 - METRICS_PROFILES_MAX);
	expect(text, "heapsonde_samples_total{pid=\"other\",profile=\"other\"}",
	       4 * (3000 - METRICS_PROFILES_MAX));
	expect(text, "heapsonde_followers{pid=\"other\",profile=\"other\"}",
	       2 * (3000 - METRICS_PROFILES_MAX));
	assert_int_equal(count(text, "heapsonde_promoted_words_total{"),
			 METRICS_TARGETS_MAX * (METRICS_DOMAINS_MAX + 1) + 1);
	assert_int_equal(count(text, "heapsonde_target_info{"), METRICS_TARGETS_MAX);
	assert_int_equal(count(text, "heapsonde_records_total{"), METRICS_PROFILES_MAX + 1);
	free(text);
	metrics_view__deinit(&v);
}

/* ---- sums ---- */

#define OTHER_DOMAIN "heapsonde_promoted_words_total{pid=\"1\",domain=\"other\"}"
#define OTHER_TARGET "heapsonde_promoted_words_total{pid=\"other\",domain=\"other\"}"

/* Domain 1 ends: what it did goes to the others, who must not do it twice. */
static void a_domain_that_ends(void **state)
{
	struct metrics_view v = { 0 };
	json_t *target;
	char *text;

	(void)state;
	text = show(&v, a_snapshot(json_pack("[o]", a_target(1, "x", 2, 10, 0, 0)), json_array()));
	expect(text, OTHER_DOMAIN, 0);
	free(text);
	/* It did one more before it ended; domain 0 did nothing. */
	target = a_target(1, "x", 1, 10, 1, 11);
	text = show(&v, a_snapshot(json_pack("[o]", target), json_array()));
	expect(text, OTHER_DOMAIN, 100);
	expect(text, "heapsonde_promoted_words_total{pid=\"1\",domain=\"1\"}", -1);
	free(text);
	/* Its place is taken by another, that came and did 5. */
	target = a_target(1, "x", 2, 10, 1, 11);
	json_array_set_new(json_object_get(target, "domains"), 1, a_domain(2, 5));
	text = show(&v, a_snapshot(json_pack("[o]", target), json_array()));
	expect(text, OTHER_DOMAIN, 100);
	expect(text, "heapsonde_promoted_words_total{pid=\"1\",domain=\"2\"}", 500);
	free(text);
	/* The worker has forgotten the one that ended. */
	target = a_target(1, "x", 1, 10, 0, 0);
	text = show(&v, a_snapshot(json_pack("[o]", target), json_array()));
	expect(text, OTHER_DOMAIN, 100);
	free(text);
	metrics_view__deinit(&v);
}

static json_t *targets_from(int first, int last, json_int_t n)
{
	json_t *targets = json_array();

	for (int i = first; i <= last; i++)
		json_array_append_new(targets, a_target(i, "x", 1, n, 0, 0));
	return targets;
}

static void targets_without_a_place(void **state)
{
	const int max = METRICS_TARGETS_MAX;
	struct metrics_view v = { 0 };
	char *text;

	(void)state;
	/* Two too many. What they did before they were seen does not count. */
	text = show(&v, a_snapshot(targets_from(1, max + 2, 10), json_array()));
	expect(text, OTHER_TARGET, 0);
	free(text);
	text = show(&v, a_snapshot(targets_from(1, max + 2, 11), json_array()));
	expect(text, OTHER_TARGET, 200);
	free(text);
	/* One of them goes; a place becomes free for the other. The sum stays. */
	text = show(&v, a_snapshot(targets_from(2, max + 1, 12), json_array()));
	expect(text, OTHER_TARGET, 200);
	expect(text, "heapsonde_promoted_words_total{pid=\"65\",domain=\"0\"}", 1200);
	expect(text, "heapsonde_other_targets", 0);
	/* 1.5 s each, of those that have gone too. */
	expect(text, "heapsonde_process_cpu_seconds_total{role=\"worker\"}", 1.5 * (max + 2));
	free(text);
	metrics_view__deinit(&v);
}

/* The worker of a program that the process ran before is still there. */
static void two_workers_of_one_process(void **state)
{
	struct metrics_view v = { 0 };
	char *text;

	(void)state;
	text = show(&v, a_snapshot(json_pack("[o, o]", a_target(1, "new", 1, 1, 0, 0),
					     a_target(1, "old", 3, 100, 0, 0)),
				   json_array()));
	check_unique(text);
	expect(text, "heapsonde_target_info{pid=\"1\",command=\"new\"}", 1);
	expect(text, "heapsonde_promoted_words_total{pid=\"1\",domain=\"0\"}", 100);
	expect(text, "heapsonde_process_cpu_seconds_total{role=\"worker\"}", 3);
	expect(text, "heapsonde_resident_memory_bytes{role=\"worker\"}", 8192);
	free(text);
	metrics_view__deinit(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_families),
		cmocka_unit_test(nothing_there),
		cmocka_unit_test(labels_are_escaped),
		cmocka_unit_test(long_commands_are_cut),
		cmocka_unit_test(strange_numbers),
		cmocka_unit_test(many_of_everything),
		cmocka_unit_test(a_domain_that_ends),
		cmocka_unit_test(targets_without_a_place),
		cmocka_unit_test(two_workers_of_one_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
