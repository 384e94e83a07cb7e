/* SPDX-License-Identifier: BSD-2-Clause */
/* What a daemon says about a profile; see status.h. */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "user/cli/cli.h"
#include "user/cli/status.h"
#include "user/common/clock.h"
#include "user/common/units.h"
#include "user/profile/profile.h"
#include "user/sinks/json.h"

const char *status__string(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

long long status__integer(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

long long status__lost(const json_t *profile)
{
	json_t *lost = json_object_get(profile, "lost"), *n;
	long long sum = 0;
	const char *cause;

	json_object_foreach (lost, cause, n)
		if (!json__loss_is_part(cause) &&
		    __builtin_add_overflow(sum, json_integer_value(n), &sum))
			return LLONG_MAX;
	return sum;
}

void status__user(const json_t *profile, char *text, size_t size)
{
	cli__format_user((uid_t)status__integer(profile, "uid"), text, size);
}

void status__rate(const json_t *object, char *text, size_t size)
{
	double rate = json_number_value(json_object_get(object, "rate"));
	char number[UNITS_RATE_CHARS] = "-";

	if (rate > 0 && !json_is_true(json_object_get(object, "counters_only")))
		units__rate(rate, number);
	snprintf(text, size, "%s", number);
}

/* ---- one profile ---- */

static void print_state(const json_t *p)
{
	const char *reason = status__string(p, "reason");
	double seconds = ((double)clock__now_ns() - (double)status__integer(p, "time")) / 1e9;
	char rate[40];

	printf("%-12s%s", "state", status__string(p, "state"));
	printf(*reason ? " (%s)\n" : "%s\n", reason);
	printf("%-12s%.0f s ago\n", "started", seconds > 0 ? seconds : 0);
	if (json_is_true(json_object_get(p, "counters_only"))) {
		printf("%-12scounters only\n", "samples");
		return;
	}
	status__rate(p, rate, sizeof(rate));
	printf("%-12s%s", "rate", rate);
	if (status__integer(p, "rates") > 1)
		printf(" (%lld rates are in force: not all domains have gone over yet)",
		       status__integer(p, "rates"));
	printf("\n%-12s%s, stacks of %lld frames\n", "tracks", status__string(p, "track"),
	       status__integer(p, "stack_depth"));
}

static void print_output(const json_t *p)
{
	const char *error = status__string(p, "output_error");
	json_t *bytes = json_object_get(p, "output_bytes");

	if (json_is_integer(bytes))
		printf("%-12s%lld bytes%s%s\n", "output", (long long)json_integer_value(bytes),
		       *error ? ", and no more: " : "", error);
	printf("%-12s%lld\n", "followers", status__integer(p, "followers"));
}

static void print_records(const json_t *p)
{
	json_t *lost = json_object_get(p, "lost"), *n;
	const char *cause;
	char live[32];

	units__words(json_number_value(json_object_get(p, "live_words")), live, sizeof(live));
	printf("%-12s%lld allocations with %lld samples\n", "records",
	       status__integer(p, "records"), status__integer(p, "samples"));
	printf("%-12s%s words of those allocated since the start\n", "live", live);
	json_object_foreach (lost, cause, n)
		printf("%-12s%s: %lld\n", "lost", cause, (long long)json_integer_value(n));
}

static void print_listed(const json_t *p)
{
	json_t *listed = json_object_get(p, "listed");

	if (!json_is_array(listed))
		return;
	printf("%-12s", "domains");
	for (size_t i = 0; i < json_array_size(listed); i++)
		printf("%s%lld", i ? ", " : "",
		       (long long)json_integer_value(json_array_get(listed, i)));
	puts(", and those that they spawn");
}

/* The major words of a domain without the promoted ones, which they include. */
static long long direct_words(const json_t *domain)
{
	long long words;

	if (__builtin_sub_overflow(status__integer(domain, "major_words"),
				   status__integer(domain, "promoted_words"), &words))
		return 0;
	return words;
}

static void print_domains(const json_t *p)
{
	json_t *domains = json_object_get(p, "domains");

	if (!json_array_size(domains))
		return;
	printf("\n%8s %-10s %-10s %14s %14s %14s %10s %8s\n", "DOMAIN", "STATE", "RATE",
	       "MINOR-WORDS", "PROMOTED-WORDS", "MAJOR-WORDS", "RECORDS", "TRACKED");
	for (size_t i = 0; i < json_array_size(domains); i++) {
		const json_t *d = json_array_get(domains, i);
		char rate[40];

		status__rate(d, rate, sizeof(rate));
		printf("%8lld %-10s %-10s %14lld %14lld %14lld %10lld %8lld\n",
		       status__integer(d, "domain"), status__string(d, "state"), rate,
		       status__integer(d, "minor_words"), status__integer(d, "promoted_words"),
		       direct_words(d), status__integer(d, "records"),
		       status__integer(d, "tracked"));
	}
}

void status_detail__print(const json_t *p)
{
	char user[40];

	status__user(p, user, sizeof(user));
	printf("%-12s%lld\n", "profile", status__integer(p, "profile"));
	printf("%-12s%lld  %s\n", "process", status__integer(p, "pid"),
	       status__string(p, "command"));
	printf("%-12s%s\n", "user", user);
	print_state(p);
	print_listed(p);
	if (!json_is_true(json_object_get(p, "counters_only")))
		print_records(p);
	print_output(p);
	print_domains(p);
}
