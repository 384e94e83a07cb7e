/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What top computes: exact counters and losses from records, what a window added, the
 * figures of rows by their formulas, their order, and which row stays selected.
 */
#include "tests/unit/records_make.h"

#include <math.h>

#include "user/top/label.h"
#include "user/top/model.h"
#include "user/top/rate.h"

#define S 1000000000ull

static struct symbolizer *symbolizer;
static struct stack_table *stacks;
static struct heap *heap;
static struct model model;
static struct facts facts;
static struct view view;

static int setup(void **state)
{
	(void)state;
	memset(&model, 0, sizeof(model));
	facts__init(&facts);
	view__init(&view, ROWS_BY_SITE, ROWS_ALLOC);
	if (symbolizer__new_empty(&symbolizer) || stack_table__new(&stacks, symbolizer) ||
	    heap__new(&heap, NULL))
		return -1;
	model.heap = heap;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	model__deinit(&model);
	facts__deinit(&facts);
	heap__free(heap);
	stack_table__free(stacks);
	symbolizer__free(symbolizer);
	return 0;
}

/* A stack of `function`, called by `caller`. */
static const struct stack *stack_of(uint64_t slot, const char *function, const char *caller)
{
	const struct hs_location inner = { .function = function, .file = "f.ml", .line = 7 };
	const struct hs_location outer = { .function = caller, .file = "g.ml", .line = 8 };
	const uint64_t frames[] = { slot, slot + 1 };
	const struct stack *stack;
	union record r;
	bool is_new;

	assert_int_equal(symbolizer__learn(symbolizer, slot, &inner, 1), 0);
	assert_int_equal(symbolizer__learn(symbolizer, slot + 1, &outer, 1), 0);
	make__stack(&r, slot, frames, 2);
	assert_int_equal(stack_table__learn(stacks, &r.stack, &stack, &is_new), 0);
	return stack;
}

/* A block of 9 words and its header at rate 1: exactly 10 words. */
static void alloc(uint64_t id, const struct stack *stack, enum hs_heap where, uint32_t domain)
{
	struct hs_event event;
	union record r;

	make__alloc(&r, id, stack ? 1 : 0);
	r.h.domain = domain;
	r.alloc.heap = where;
	r.alloc.size_words = 9;
	r.alloc.n_samples = 10;
	event = make__event(&r);
	assert_int_equal(heap__event(heap, &event, stack, 1), 0);
}

static void happens(enum hs_record_type type, uint64_t id, enum hs_heap where)
{
	struct hs_event event;
	union record r;

	make__block(&r, type, id);
	r.block.heap = where;
	event = make__event(&r);
	assert_int_equal(heap__event(heap, &event, NULL, 1), 0);
}

static const struct model_row *row_of(const char *function)
{
	for (size_t i = 0; i < model.rows.n; i++)
		if (model.rows.at[i].row.function &&
		    !strcmp(model.rows.at[i].row.function, function))
			return &model.rows.at[i];
	return NULL;
}

static double figure(const char *function, enum figure f)
{
	const struct model_row *r = row_of(function);

	assert_non_null(r);
	return r->figures.at[f].value;
}

/* ---- figures ---- */

static void test_formulas(void **state)
{
	const struct stack *a = stack_of(16, "A.f", "Main"), *b = stack_of(32, "B.f", "Main");

	(void)state;
	assert_int_equal(model__step(&model, &facts, 1 * S), 0);
	assert_int_equal(model__make(&model, &view), 0);
	assert_int_equal(model.rows.n, 0);
	/* Of a's: 8 minor, of which 2 are promoted, 3 die young and 3 are undecided; 2 major, of
	 * which one dies. */
	for (uint64_t id = 1; id <= 8; id++)
		alloc(id, a, HS_HEAP_MINOR, 3);
	alloc(9, a, HS_HEAP_MAJOR, 3);
	alloc(10, a, HS_HEAP_MAJOR, 3);
	happens(HS_REC_PROMOTE, 1, HS_HEAP_MINOR);
	happens(HS_REC_PROMOTE, 2, HS_HEAP_MINOR);
	for (uint64_t id = 3; id <= 5; id++)
		happens(HS_REC_DEALLOC, id, HS_HEAP_MINOR);
	happens(HS_REC_DEALLOC, 9, HS_HEAP_MAJOR);
	for (uint64_t id = 21; id <= 30; id++)
		alloc(id, b, HS_HEAP_MAJOR, 4);
	assert_int_equal(model__step(&model, &facts, 3 * S), 0);
	assert_int_equal(model__make(&model, &view), 0);
	assert_int_equal(model.rows.n, 2);
	assert_true(figure("A.f", FIGURE_ALLOC) == 50);
	assert_true(figure("A.f", FIGURE_LIVE) == 60);
	assert_true(figure("A.f", FIGURE_PROMOTE) == 10);
	assert_true(figure("A.f", FIGURE_SHARE) == 0.5);
	assert_true(figure("A.f", FIGURE_PROMOTED) == 0.4);
	assert_true(fabs(figure("A.f", FIGURE_YOUNG) - 3.0 / 7) < 1e-12);
	assert_true(figure("A.f", FIGURE_TOTAL) == 100);
	assert_true(isnan(figure("B.f", FIGURE_PROMOTED)));
	assert_true(figure("B.f", FIGURE_YOUNG) == 0);
	/* At rate 1 all is exact. */
	assert_true(row_of("A.f")->figures.at[FIGURE_TOTAL].low == 100);
	assert_true(row_of("A.f")->figures.at[FIGURE_PROMOTED].high == 0.4);
	assert_true(model.rows.all.at[FIGURE_ALLOC].value == 100);
	assert_true(model.rows.all.at[FIGURE_LIVE].value == 160);
	/* Shares are of what the metric is about. */
	view.metric = ROWS_LIVE;
	assert_int_equal(model__make(&model, &view), 0);
	assert_true(fabs(figure("A.f", FIGURE_SHARE) - 60.0 / 160) < 1e-12);
	view.metric = ROWS_PROMOTED;
	assert_int_equal(model__make(&model, &view), 0);
	assert_true(figure("A.f", FIGURE_SHARE) == 1);
	assert_true(figure("B.f", FIGURE_SHARE) == 0);
}

/* What was lost is in the upper ends: of all rows since the beginning, and while it is in the
 * window of what the window shows. */
static void test_losses(void **state)
{
	const struct stack *a = stack_of(16, "A.f", "Main");
	const struct figures *f;

	(void)state;
	assert_int_equal(model__step(&model, &facts, 1 * S), 0);
	alloc(1, a, HS_HEAP_MINOR, 3);
	alloc(2, a, HS_HEAP_MINOR, 3);
	happens(HS_REC_UNKNOWN, 2, HS_HEAP_MINOR);
	heap__lost(heap, &(struct heap_loss_time){ 1, 2 }, 4, 1);
	assert_int_equal(model__step(&model, &facts, 3 * S), 0);
	assert_int_equal(model__make(&model, &view), 0);
	f = &row_of("A.f")->figures;
	assert_true(f->at[FIGURE_ALLOC].value == 10 && f->at[FIGURE_ALLOC].low == 10);
	assert_true(f->at[FIGURE_ALLOC].high == 12);
	assert_true(f->at[FIGURE_TOTAL].low == 20 && f->at[FIGURE_TOTAL].high == 24);
	assert_true(f->at[FIGURE_LIVE].low == 10 && f->at[FIGURE_LIVE].high == 24);
	assert_true(f->at[FIGURE_SHARE].low == 20.0 / 24 && f->at[FIGURE_SHARE].high == 1);
	/* The window goes on, the loss is no more in it. */
	for (uint64_t i = 4; i < 4 + 2 * WINDOW_STEPS; i++)
		assert_int_equal(model__step(&model, &facts, i * S), 0);
	alloc(3, a, HS_HEAP_MINOR, 3);
	assert_int_equal(model__step(&model, &facts, (4 + 2 * WINDOW_STEPS) * S), 0);
	assert_int_equal(model__make(&model, &view), 0);
	f = &row_of("A.f")->figures;
	assert_true(f->at[FIGURE_ALLOC].low == f->at[FIGURE_ALLOC].high);
	assert_true(f->at[FIGURE_TOTAL].low == 30 && f->at[FIGURE_TOTAL].high == 34);
}

static void test_window(void **state)
{
	const struct stack *a = stack_of(16, "A.f", "Main");
	uint64_t id = 1;

	(void)state;
	/* One block more in each second than in the one before. */
	for (uint64_t second = 0; second < 20; second++) {
		for (uint64_t i = 0; i < second; i++)
			alloc(id++, a, HS_HEAP_MINOR, 3);
		assert_int_equal(model__step(&model, &facts, (100 + second) * S), 0);
		assert_int_equal(model__make(&model, &view), 0);
		if (second < 2)
			continue;
		/* The last five, or as many as there are. */
		double n = second < WINDOW_STEPS ? (double)second : WINDOW_STEPS;

		assert_true(window__seconds(&model.window) == n);
		assert_true(fabs(figure("A.f", FIGURE_ALLOC) -
				 10 * ((double)second - (n - 1) / 2)) < 1e-9);
	}
	window__restart(&model.window);
	assert_int_equal(model__step(&model, &facts, 200 * S), 0);
	assert_int_equal(model__make(&model, &view), 0);
	assert_true(isnan(figure("A.f", FIGURE_ALLOC)));
	alloc(id++, a, HS_HEAP_MINOR, 3);
	assert_int_equal(model__step(&model, &facts, 202 * S), 0);
	assert_int_equal(model__make(&model, &view), 0);
	assert_true(figure("A.f", FIGURE_ALLOC) == 5);
	assert_true(figure("A.f", FIGURE_TOTAL) == 10.0 * (double)(id - 1));
	/* Nothing happens any more. */
	for (uint64_t second = 0; second < WINDOW_STEPS; second++)
		assert_int_equal(model__step(&model, &facts, (203 + second) * S), 0);
	assert_int_equal(model__make(&model, &view), 0);
	assert_true(figure("A.f", FIGURE_ALLOC) == 0);
}

/* ---- rows ---- */

static void test_rows(void **state)
{
	const struct stack *a1 = stack_of(16, "A.f", "Main"), *a2 = stack_of(32, "A.f", "Other");
	const struct stack *b = stack_of(64, "B.f", "Main");
	char label[256];

	(void)state;
	assert_int_equal(model__step(&model, &facts, 1 * S), 0);
	for (uint64_t id = 1; id <= 5; id++)
		alloc(id, a1, HS_HEAP_MINOR, 3);
	for (uint64_t id = 6; id <= 8; id++)
		alloc(id, a2, HS_HEAP_MINOR, 4);
	for (uint64_t id = 11; id <= 30; id++)
		alloc(id, b, HS_HEAP_MINOR, 4);
	alloc(40, NULL, HS_HEAP_MAJOR, 3);
	assert_int_equal(model__step(&model, &facts, 2 * S), 0);
	assert_int_equal(model__make(&model, &view), 0);
	assert_int_equal(model.rows.n, 3);
	assert_string_equal(model.rows.at[0].row.function, "B.f");
	assert_string_equal(model.rows.at[1].row.function, "A.f");
	assert_null(model.rows.at[2].row.function);
	/* The second row is opened and stays so in the other order. */
	view.selected = 1;
	view.is_open = true;
	view.sort = VIEW_SORT_NAME;
	assert_int_equal(model__make(&model, &view), 0);
	assert_string_equal(model.rows.at[view.selected].row.function, "A.f");
	assert_int_equal(model.stacks.n, 2);
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(model.stacks.at[i].row.function, "A.f");
	view.sort = FIGURE_ALLOC;
	view.is_reversed = true;
	assert_int_equal(model__make(&model, &view), 0);
	assert_string_equal(model.rows.at[2].row.function, "B.f");
	assert_ptr_equal(model.stacks.at[0].row.stack, a2);
	assert_true(model.stacks.at[0].figures.at[FIGURE_ALLOC].value == 30);
	/* A filter that leaves it out closes it. */
	snprintf(view.function, sizeof(view.function), "b.F");
	assert_int_equal(model__make(&model, &view), 0);
	assert_int_equal(model.rows.n, 1);
	assert_false(view.is_open);
	assert_int_equal(view.selected, 0);
	view.function[0] = '\0';
	view.domain = 3;
	view.by = ROWS_BY_STACK;
	view.is_reversed = false;
	assert_int_equal(model__make(&model, &view), 0);
	assert_int_equal(model.rows.n, 2);
	assert_string_equal(
		label__whole(&model.rows.at[0].row, ROWS_BY_STACK, label, sizeof(label)),
		"A.f  f.ml:7 < Main");
	view.is_open = true;
	assert_int_equal(model__make(&model, &view), 0);
	assert_int_equal(model.stacks.n, 1);
	assert_ptr_equal(model.stacks.at[0].row.stack, a1);
	/* A name that is longer than its room is cut. */
	for (size_t size = 1; size < sizeof(label); size++)
		assert_true(strlen(label__whole(&model.rows.at[0].row, ROWS_BY_STACK, label,
						size)) < size);
}

/* ---- facts ---- */

static void tell(const char *text)
{
	json_t *object = json_loads(text, 0, NULL);

	assert_non_null(object);
	assert_int_equal(facts.base.ops->json(&facts.base, object), 0);
	json_decref(object);
}

static void tell_counters(uint32_t domain, uint64_t time_s, uint64_t words, uint64_t collections)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"type\":\"counters\",\"domain\":%u,\"time\":%llu,\"minor_words\":%llu,"
		 "\"promoted_words\":%llu,\"major_words\":%llu,\"minor_collections\":%llu,"
		 "\"major_collections\":%llu}",
		 domain, (unsigned long long)(time_s * S), (unsigned long long)words,
		 (unsigned long long)words / 10, (unsigned long long)words / 5,
		 (unsigned long long)collections, (unsigned long long)collections / 10);
	tell(text);
}

static void test_counters(void **state)
{
	struct facts_counts added;

	(void)state;
	assert_int_equal(model__step(&model, &facts, 100 * S), 0);
	tell_counters(0, 101, 1000000, 500);
	tell_counters(7, 101, 0, 20);
	/* What was before we came is not counted. */
	assert_int_equal(facts.counts.minor_words, 0);
	assert_int_equal(facts.n_alive, 2);
	assert_true(facts__knows_domain(&facts, 7));
	assert_int_equal(model__step(&model, &facts, 101 * S), 0);
	assert_true(window__counted(&model.window, &added) == 0);
	tell_counters(0, 104, 4000000, 530);
	tell_counters(7, 104, 300, 50);
	assert_int_equal(model__step(&model, &facts, 104 * S), 0);
	/* The earliest refresh of the window knew no counters: not enough to say. */
	assert_true(window__counted(&model.window, &added) == 0);
	window__restart(&model.window);
	assert_int_equal(model__step(&model, &facts, 104 * S + S / 2), 0);
	tell_counters(0, 107, 7000000, 560);
	tell_counters(7, 107, 600, 80);
	assert_int_equal(model__step(&model, &facts, 108 * S), 0);
	/* Counters were read at 104 and 107. */
	assert_true(window__counted(&model.window, &added) == 3);
	assert_int_equal(added.minor_words, 3000300);
	assert_int_equal(added.promoted_words, 300030);
	assert_int_equal(added.direct_words, 300030);
	/* Both took part in the same collections. */
	assert_int_equal(added.minor_collections, 30);
	assert_int_equal(added.major_collections, 3);
}

static void test_domains(void **state)
{
	struct hs_event event;
	union record r;

	(void)state;
	/* One that allocates is there, also before it has told counters. */
	for (int i = 0; i < 2; i++) {
		make__alloc(&r, 1, 0);
		r.h.domain = 99;
		event = make__event(&r);
		assert_int_equal(facts.base.ops->event(&facts.base, &event, NULL), 0);
	}
	assert_int_equal(facts.n_alive, 1);
	tell_counters(99, 100, 5000, 50);
	assert_int_equal(facts.counts.minor_words, 0);
	tell_counters(99, 101, 5007, 51);
	assert_int_equal(facts.counts.minor_words, 7);
	assert_int_equal(facts.counts.minor_collections, 1);
	make__domain(&r, HS_REC_DOMAIN_TERMINATE);
	r.h.domain = 99;
	event = make__event(&r);
	assert_int_equal(facts.base.ops->event(&facts.base, &event, NULL), 0);
	facts__deinit(&facts);
	facts__init(&facts);
	make__domain(&r, HS_REC_DOMAIN_SPAWN);
	event = make__event(&r);
	assert_int_equal(facts.base.ops->event(&facts.base, &event, NULL), 0);
	assert_int_equal(facts.n_alive, 1);
	make__domain(&r, HS_REC_DOMAIN_TERMINATE);
	r.domain.counts.minor_words += 100;
	event = make__event(&r);
	assert_int_equal(facts.base.ops->event(&facts.base, &event, NULL), 0);
	assert_int_equal(facts.n_alive, 0);
	assert_int_equal(facts.n_seen, 1);
	assert_int_equal(facts.counts.minor_words, 100);
	/* However many: memory is bounded. */
	for (uint32_t i = 0; i < 3 * FACTS_DOMAINS_MAX; i++) {
		make__domain(&r, HS_REC_DOMAIN_SPAWN);
		r.h.domain = 1000 + i;
		event = make__event(&r);
		assert_int_equal(facts.base.ops->event(&facts.base, &event, NULL), 0);
	}
	assert_int_equal(facts.n_alive, FACTS_DOMAINS_MAX);
}

static void tell_domain(enum hs_record_type type, uint32_t domain, uint64_t minor_words)
{
	struct hs_event event;
	union record r;

	make__domain(&r, type);
	r.h.domain = domain;
	r.domain.counts.minor_words = minor_words;
	event = make__event(&r);
	assert_int_equal(facts.base.ops->event(&facts.base, &event, NULL), 0);
}

/*
 * Domains that come and go: what is told of one after its end, its counters a fifth of a
 * second later or a block that waited, does not bring it back.
 */
static void test_domains_that_end(void **state)
{
	const uint32_t n = 3 * FACTS_GONE_MAX;
	struct hs_event event;
	union record r;

	(void)state;
	for (uint32_t i = 0; i < n; i++) {
		tell_domain(HS_REC_DOMAIN_SPAWN, i, 0);
		tell_domain(HS_REC_DOMAIN_TERMINATE, i, 100);
		tell_counters(i, 100, 100, 1);
		make__alloc(&r, 1, 0);
		r.h.domain = i;
		event = make__event(&r);
		assert_int_equal(facts.base.ops->event(&facts.base, &event, NULL), 0);
		/* Of some it comes late. */
		if (i >= 2000)
			tell_counters(i - 2000, 100, 100, 1);
		assert_int_equal(facts.n_alive, 0);
		assert_int_equal(facts.n_seen, i + 1);
	}
	/* The words of each are counted, and once. */
	assert_int_equal(facts.counts.minor_words, 100 * (uint64_t)n);
}

static void test_records(void **state)
{
	(void)state;
	tell("{\"type\":\"header\",\"pid\":4711,\"command\":\"./a b\",\"rate\":0.5}");
	tell("{\"type\":\"profile\",\"rate\":0.25,\"state\":\"sampling\"}");
	assert_int_equal(facts.pid, 4711);
	assert_string_equal(facts.command, "./a b");
	assert_true(facts.rate == 0.25);
	tell("{\"type\":\"loss\",\"cause\":\"ring_full\",\"count\":5}");
	tell("{\"type\":\"loss\",\"cause\":\"blocks_full\",\"count\":1}");
	tell("{\"type\":\"loss\",\"cause\":\"ring_full\",\"count\":7}");
	assert_int_equal(facts.n_losses, 2);
	assert_int_equal(facts.losses[0].count, 12);
	tell("{\"type\":\"profile\",\"rate\":0.25,\"state\":\"stopped\",\"reason\":\"domains "
	     "gone\"}");
	assert_true(facts.is_stopped);
	tell("{\"type\":\"summary\",\"reason\":\"target "
	     "exited\",\"lost\":{\"ring_full\":12,\"missed_"
	     "hits\":3}}");
	assert_true(facts.has_ended);
	assert_string_equal(facts.reason, "target exited");
	assert_int_equal(facts.n_losses, 3);
	/* What is damaged does no harm. */
	tell("{}");
	tell("{\"type\":7}");
	tell("{\"type\":\"header\",\"pid\":\"x\",\"command\":7}");
	tell("{\"type\":\"profile\",\"rate\":-1,\"state\":null}");
	tell("{\"type\":\"loss\",\"cause\":null,\"count\":-5}");
	tell("{\"type\":\"counters\",\"domain\":\"x\"}");
	tell("{\"type\":\"summary\",\"lost\":[]}");
	assert_true(facts.rate == 0.25);
	for (int i = 0; i < 100; i++) {
		char text[256];

		snprintf(text, sizeof(text), "{\"type\":\"loss\",\"cause\":\"%0100d\",\"count\":1}",
			 i);
		tell(text);
		snprintf(text, sizeof(text), "{\"type\":\"loss\",\"cause\":\"c%d\",\"count\":1}",
			 i);
		tell(text);
	}
	assert_int_equal(facts.n_losses, FACTS_CAUSES_MAX);
}

/* ---- the rate ---- */

static void test_rate(void **state)
{
	(void)state;
	/* Idle, and as fast as anything. */
	assert_true(rate__better(0x1p-20, 0) == RATE_FINEST);
	assert_true(rate__better(0x1p-14, 1) == 0);
	assert_true(rate__better(0x1p-14, 1e12) == RATE_COARSEST);
	assert_true(rate__better(0x1p-16, 65e6) == 0);
	/* A billion words a second: 2^-20 gives 954 samples. */
	assert_true(rate__better(0x1p-16, 1e9) == 0x1p-20);
	assert_true(rate__better(0x1p-20, 1e9) == 0);
	assert_true(rate__better(0x1p-19, 1e9) == 0);
	/* Once changed it is good enough, wherever it came from. */
	for (double words = 1; words < 1e13; words *= 1.7)
		for (int k = 0; k <= 30; k++) {
			double better = rate__better(ldexp(1, -k), words);

			if (better > 0)
				assert_true(rate__better(better, words) == 0);
		}
	assert_true(rate__stepped(0x1p-10, 3) == 0x1p-7);
	assert_true(rate__stepped(0x1p-1, 3) == 1);
	assert_true(rate__stepped(0x1p-39, -30) == 0x1p-40);
	assert_true(rate__stepped(0x1p-50, -1) == 0x1p-50);
	assert_true(rate__stepped(0x1p-50, 1) == 0x1p-49);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_formulas),
		TEST(test_losses),
		TEST(test_window),
		TEST(test_rows),
		TEST(test_counters),
		TEST(test_domains),
		TEST(test_domains_that_end),
		TEST(test_records),
		TEST(test_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
