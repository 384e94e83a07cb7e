/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof files, read back with the schema: values, labels, locations, mappings, and that
 * every number refers to something.
 */
#include "tests/unit/export_made.h"

#include <zlib.h>

#include "profile.pb-c.h"

#define HUGE_BYTES ((size_t)1 << 20)

typedef Perftools__Profiles__Profile Profile;
typedef Perftools__Profiles__Sample Sample;
typedef Perftools__Profiles__Location Location;
typedef Perftools__Profiles__Function Function;
typedef Perftools__Profiles__Label Label;

/* The profile in a gzip file. The result is the caller's. */
static Profile *unpack(const char *zipped, size_t size)
{
	uint8_t *bytes = malloc(HUGE_BYTES);
	z_stream z = { .next_in = (Bytef *)zipped, .avail_in = (uInt)size };
	Profile *p;

	assert_non_null(bytes);
	z.next_out = bytes;
	z.avail_out = HUGE_BYTES;
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	/* All of the input, and a good checksum at its end. */
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	p = perftools__profiles__profile__unpack(NULL, z.total_out, bytes);
	assert_non_null(p);
	inflateEnd(&z);
	free(bytes);
	return p;
}

static Profile *profile_of(void (*play)(struct pipeline *p), enum rows_metric metric)
{
	size_t size;
	char *zipped = made__export(&export_pprof, play, metric, &size);
	Profile *p = unpack(zipped, size);

	free(zipped);
	return p;
}

static void free_profile(Profile *p)
{
	perftools__profiles__profile__free_unpacked(p, NULL);
}

static const char *text(const Profile *p, int64_t index)
{
	assert_in_range(index, 0, p->n_string_table - 1);
	return p->string_table[index];
}

static const Location *location(const Profile *p, uint64_t id)
{
	assert_in_range(id, 1, p->n_location);
	assert_int_equal(p->location[id - 1]->id, id);
	return p->location[id - 1];
}

static const Function *function(const Profile *p, uint64_t id)
{
	assert_in_range(id, 1, p->n_function);
	assert_int_equal(p->function[id - 1]->id, id);
	return p->function[id - 1];
}

static void expect_line(const Profile *p, const Location *l, size_t i, const char *name,
			const char *file, int64_t line)
{
	const Function *f = function(p, l->line[i]->function_id);

	assert_string_equal(text(p, f->name), name);
	assert_string_equal(text(p, f->system_name), name);
	assert_string_equal(text(p, f->filename), file);
	assert_int_equal(f->start_line, 0);
	assert_int_equal(l->line[i]->line, line);
}

static void expect_values(const Sample *s, int64_t objects, int64_t bytes, int64_t live_objects,
			  int64_t live_bytes)
{
	assert_int_equal(s->n_value, 4);
	assert_int_equal(s->value[0], objects);
	assert_int_equal(s->value[1], bytes);
	assert_int_equal(s->value[2], live_objects);
	assert_int_equal(s->value[3], live_bytes);
}

static void expect_labels(const Profile *p, const Sample *s, int64_t domain, const char *source,
			  int64_t bytes)
{
	Label *const *l = s->label;

	assert_int_equal(s->n_label, 3);
	assert_string_equal(text(p, l[0]->key), "domain");
	assert_int_equal(l[0]->str, 0);
	assert_int_equal(l[0]->num, domain);
	assert_string_equal(text(p, l[0]->num_unit), "domain");
	assert_string_equal(text(p, l[1]->key), "source");
	assert_string_equal(text(p, l[1]->str), source);
	assert_string_equal(text(p, l[2]->key), "bytes");
	assert_int_equal(l[2]->num, bytes);
	assert_string_equal(text(p, l[2]->num_unit), "bytes");
}

static void has_values_and_labels(void **state)
{
	Profile *p = profile_of(made__play, ROWS_ALLOC);

	(void)state;
	/* Those without a stack come first, then by stack and domain. */
	assert_int_equal(p->n_sample, 5);
	expect_values(p->sample[0], 4, 32, 4, 32);
	expect_labels(p, p->sample[0], 0, "normal", 0);
	expect_values(p->sample[1], 2, 32, 2, 32);
	expect_labels(p, p->sample[1], 0, "normal", 8);
	/* The block that died. */
	expect_values(p->sample[2], 4, 96, 0, 0);
	expect_labels(p, p->sample[2], 0, "normal", 16);
	/* 63 words: of the class from 33 to 64. */
	expect_values(p->sample[3], 1, 512, 1, 512);
	expect_labels(p, p->sample[3], 3, "marshal", 33 * 8);
	expect_values(p->sample[4], 2, 160, 2, 160);
	expect_labels(p, p->sample[4], 0, "normal", 72);
	free_profile(p);
}

static void has_locations(void **state)
{
	Profile *p = profile_of(made__play, ROWS_ALLOC);
	const Location *l;

	(void)state;
	assert_int_equal(p->n_location, 5);
	l = location(p, p->sample[0]->location_id[0]);
	assert_int_equal(p->sample[0]->n_location_id, 1);
	expect_line(p, l, 0, "(no OCaml frame)", "", 0);
	assert_int_equal(l->mapping_id, 0);
	l = location(p, p->sample[1]->location_id[0]);
	expect_line(p, l, 0, "(stack lost)", "", 0);
	/* The innermost first, inlined ones too. */
	assert_int_equal(p->sample[2]->n_location_id, 2);
	l = location(p, p->sample[2]->location_id[0]);
	assert_int_equal(l->n_line, 2);
	expect_line(p, l, 0, "Stdlib__List.map", "list.ml", 82);
	expect_line(p, l, 1, NAME_HARD, "a b.ml", 7);
	assert_int_equal(l->address, SLOT_HARD);
	assert_int_equal(l->mapping_id, 2);
	l = location(p, p->sample[2]->location_id[1]);
	expect_line(p, l, 0, "caml_main", "", 0);
	assert_int_equal(l->mapping_id, 1);
	/* The same stack has the same locations. */
	assert_int_equal(p->sample[3]->location_id[0], p->sample[2]->location_id[0]);
	l = location(p, p->sample[4]->location_id[0]);
	expect_line(p, l, 0, "(unknown)", "x.ml", 1);
	/* Below all mappings. */
	assert_int_equal(l->mapping_id, 0);
	assert_int_equal(p->sample[4]->location_id[1], p->sample[2]->location_id[1]);
	free_profile(p);
}

static void has_mappings(void **state)
{
	Profile *p = profile_of(made__play, ROWS_ALLOC);

	(void)state;
	assert_int_equal(p->n_mapping, 2);
	/* The executable first. */
	assert_int_equal(p->mapping[0]->id, 1);
	assert_string_equal(text(p, p->mapping[0]->filename), "/srv/x");
	assert_string_equal(text(p, p->mapping[0]->build_id), "cafe");
	assert_int_equal(p->mapping[0]->memory_start, 0x400000);
	assert_int_equal(p->mapping[0]->memory_limit, 0x402000);
	assert_int_equal(p->mapping[1]->id, 2);
	assert_string_equal(text(p, p->mapping[1]->filename), "/lib/y.so");
	assert_string_equal(text(p, p->mapping[1]->build_id), "beef");
	assert_int_equal(p->mapping[1]->file_offset, 4096);
	for (size_t i = 0; i < 2; i++)
		assert_true(p->mapping[i]->has_functions && p->mapping[i]->has_filenames &&
			    p->mapping[i]->has_line_numbers && p->mapping[i]->has_inline_frames);
	free_profile(p);
}

static void expect_comment(const Profile *p, const char *expected)
{
	for (size_t i = 0; i < p->n_comment; i++)
		if (!strcmp(text(p, p->comment[i]), expected))
			return;
	fail_msg("no comment \"%s\"", expected);
}

static void says_what_it_is(void **state)
{
	static const char *const types[] = { "alloc_objects", "count", "alloc_space", "bytes",
					     "inuse_objects", "count", "inuse_space", "bytes" };
	Profile *p = profile_of(made__play, ROWS_ALLOC);

	(void)state;
	assert_string_equal(p->string_table[0], "");
	assert_int_equal(p->n_sample_type, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(text(p, p->sample_type[i]->type), types[2 * i]);
		assert_string_equal(text(p, p->sample_type[i]->unit), types[2 * i + 1]);
	}
	assert_string_equal(text(p, p->default_sample_type), "alloc_space");
	assert_string_equal(text(p, p->period_type->type), "space");
	assert_string_equal(text(p, p->period_type->unit), "bytes");
	assert_int_equal(p->period, 32); /* 8 bytes / (1/4) */
	assert_int_equal(p->time_nanos, 1001000);
	assert_int_equal(p->duration_nanos, 4000);
	/* The escape sequence, and CSI as one character, have no effect on a terminal. */
	expect_comment(p, "command: ./x?[31m ??m");
	expect_comment(p, "lost: 5 ring_full");
	free_profile(p);
	p = profile_of(made__play, ROWS_LIVE);
	assert_string_equal(text(p, p->default_sample_type), "inuse_space");
	free_profile(p);
}

static void survives_what_is_odd(void **state)
{
	Profile *p = profile_of(made__play_huge, ROWS_ALLOC);

	(void)state;
	assert_int_equal(p->n_sample, 1);
	assert_int_equal(p->sample[0]->value[1], INT64_MAX);
	assert_int_equal(p->sample[0]->value[3], INT64_MAX);
	assert_int_equal(p->n_mapping, 0);
	expect_comment(p, "the capture was cut off: what came later is missing");
	free_profile(p);
	p = profile_of(made__play_nothing, ROWS_ALLOC);
	assert_int_equal(p->n_sample, 0);
	assert_int_equal(p->period, 8);
	free_profile(p);
}

static void is_the_same_each_time(void **state)
{
	size_t size, again_size;
	char *one = made__export(&export_pprof, made__play, ROWS_ALLOC, &size);
	char *again = made__export(&export_pprof, made__play, ROWS_ALLOC, &again_size);

	(void)state;
	assert_int_equal(size, again_size);
	assert_memory_equal(one, again, size);
	free(one);
	free(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_values_and_labels), cmocka_unit_test(has_locations),
		cmocka_unit_test(has_mappings),          cmocka_unit_test(says_what_it_is),
		cmocka_unit_test(survives_what_is_odd),  cmocka_unit_test(is_the_same_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
