/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a consumer has written as JSON lines, added up.
 *
 * In:   the text.
 * Out:  struct line_tally; the test fails unless each line is whole, and stacks and threads
 *       are told before they are used.
 */
#ifndef TEST_CONSUMER_TALLY_H
#define TEST_CONSUMER_TALLY_H

#include "tests/unit/consumer_outputs.h"

/* What lines say, added up; and that they may say it. */
struct line_tally {
	uint64_t allocs, deallocs, stacks, threads, rates, others;
	uint64_t losses, lost;             /* records with the cause output_full, and their sum */
	uint64_t lost_samples, lost_lives; /* sums of their parts */
	json_t *last;                      /* the last line, borrowed from lines */
	json_t *lines;
	json_t *rate_of;   /* by domain: the last rate record's */
	json_t *domain_of; /* by thread */
	bool has_stack[STACKS + 1];
};

static inline uint64_t number(const json_t *o, const char *name)
{
	const json_t *n = json_object_get(o, name);

	assert_true(json_is_integer(n));
	return (uint64_t)json_integer_value(n);
}

/* As a key. */
static inline const char *text_of(uint64_t n)
{
	static char text[2][32];
	static int i;

	i = !i;
	snprintf(text[i], sizeof(text[i]), "%llu", (unsigned long long)n);
	return text[i];
}

static inline void take_event(struct line_tally *t, const json_t *o)
{
	const json_t *domain = json_object_get(t->domain_of, text_of(number(o, "thread")));

	/* Its thread has been told, and for this domain. */
	assert_non_null(domain);
	assert_int_equal(json_integer_value(domain), number(o, "domain"));
}

static inline void take_line(struct line_tally *t, json_t *o)
{
	const char *type = json_string_value(json_object_get(o, "type"));

	assert_non_null(type);
	if (!strcmp(type, "stack")) {
		t->stacks++;
		assert_in_range(number(o, "id"), 1, STACKS);
		assert_false(t->has_stack[number(o, "id")]);
		t->has_stack[number(o, "id")] = true;
	} else if (!strcmp(type, "alloc_minor")) {
		t->allocs++;
		take_event(t, o);
		assert_true(!number(o, "stack") || t->has_stack[number(o, "stack")]);
	} else if (!strcmp(type, "dealloc_major")) {
		t->deallocs++;
		take_event(t, o);
	} else if (!strcmp(type, "rate")) {
		t->rates++;
		take_event(t, o);
		json_object_set(t->rate_of, text_of(number(o, "domain")),
				json_object_get(o, "rate"));
	} else if (!strcmp(type, "thread")) {
		const char *tid = text_of(number(o, "thread"));
		const json_t *old = json_object_get(t->domain_of, tid);

		t->threads++;
		assert_true(!old || (uint64_t)json_integer_value(old) != number(o, "domain"));
		json_object_set(t->domain_of, tid, json_object_get(o, "domain"));
	} else if (!strcmp(type, "loss") &&
		   !strcmp(json_string_value(json_object_get(o, "cause")), "output_full")) {
		t->losses++;
		t->lost += number(o, "count");
		t->lost_samples += number(o, "samples");
		t->lost_lives += number(o, "lives");
		assert_true(number(o, "since") <= number(o, "time"));
		assert_true(json_is_null(json_object_get(o, "domain")));
		assert_true(number(o, "count") > 0 && number(o, "time") > 0);
	} else {
		t->others++;
	}
}

/* Every line is whole. */
static inline struct line_tally tally(const struct text *text)
{
	struct line_tally t = { .lines = json_array(),
				.rate_of = json_object(),
				.domain_of = json_object() };
	size_t begin = 0;

	assert_true(!text->n || text->bytes[text->n - 1] == '\n');
	for (size_t i = 0; i < text->n; i++) {
		json_t *o;

		if (text->bytes[i] != '\n')
			continue;
		o = json_loadb(text->bytes + begin, i - begin, JSON_REJECT_DUPLICATES, NULL);
		if (!json_is_object(o))
			fail_msg("no line: %.*s", (int)(i - begin), text->bytes + begin);
		take_line(&t, o);
		json_array_append_new(t.lines, o);
		t.last = o;
		begin = i + 1;
	}
	return t;
}

static inline void tally__free(struct line_tally *t)
{
	json_decref(t->lines);
	json_decref(t->rate_of);
	json_decref(t->domain_of);
}

#endif /* TEST_CONSUMER_TALLY_H */
