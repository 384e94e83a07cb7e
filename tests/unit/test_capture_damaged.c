/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures that are not what a sink wrote: with any byte changed they give an
 * error with a text, or some records, but no crash (run under AddressSanitizer),
 * and never anything but JSON; other files and other versions are told apart from
 * damage; no size or number in a capture is believed.
 */
#include "tests/unit/capture_make.h"

/* Replay bytes that are no longer what was written. */
static int replay_damaged(const char *bytes, size_t size)
{
	char *text;
	int ret = replay(bytes, size, &text);

	if (ret) {
		assert_int_equal(ret, -EBADMSG);
		assert_true(*capture_err.text);
	}
	/* Whatever is written is JSON. */
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		json_t *object = json_loadb(line, (size_t)(end - line), 0, NULL);

		if (!object)
			fail_msg("no JSON: %.*s", (int)(end - line), line);
		json_decref(object);
	}
	free(text);
	return ret;
}

static void survives_damage(void **state)
{
	static const unsigned char flips[] = { 0x01, 0x80, 0xff };
	uint64_t seed = 1, n_refused = 0;
	char *capture, *damaged;
	size_t size;

	(void)state;
	capture = record(raw_sink__new, &size);
	damaged = malloc(size);
	assert_non_null(damaged);
	for (size_t i = 0; i < size; i++) {
		for (size_t k = 0; k < COUNT(flips); k++) {
			memcpy(damaged, capture, size);
			damaged[i] ^= (char)flips[k];
			n_refused += replay_damaged(damaged, size) != 0;
		}
	}
	for (int i = 0; i < 5000; i++) {
		memcpy(damaged, capture, size);
		for (uint64_t n = make__random(&seed) % 8 + 1; n; n--)
			damaged[make__random(&seed) % size] = (char)make__random(&seed);
		n_refused += replay_damaged(damaged, size) != 0;
	}
	assert_true(n_refused > 1000);
	free(damaged);
	free(capture);
}

/* ---- captures made by hand ---- */

/* A header and one chunk whose payload is said to have `said` bytes and has n. */
static int replay_chunk(uint32_t kind, uint32_t said, const void *payload, size_t n)
{
	const struct raw_header header = { .magic = RAW_MAGIC,
					   .version = RAW_VERSION,
					   .records_version = HS_RECORDS_VERSION };
	const struct raw_chunk chunk = { .kind = kind, .size_bytes = said };
	size_t head = sizeof(header) + sizeof(chunk);
	char *bytes = calloc(1, head + n + 8), *text;
	int ret;

	assert_non_null(bytes);
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), &chunk, sizeof(chunk));
	if (n)
		memcpy(bytes + head, payload, n);
	ret = replay(bytes, head + (n + 7) / 8 * 8, &text);
	free(text);
	free(bytes);
	return ret;
}

static void expect_damaged(uint32_t kind, uint32_t said, const void *payload, size_t n)
{
	assert_int_equal(replay_chunk(kind, said, payload, n), -EBADMSG);
	if (!strstr(capture_err.text, "damaged"))
		fail_msg("kind %u, %u bytes: the text is `%s`", kind, said, capture_err.text);
}

static void expect_header(const struct raw_header *h, int expected, const char *message)
{
	char *text;

	assert_int_equal(replay(h, sizeof(*h), &text), expected);
	assert_string_equal(text, "");
	if (!strstr(capture_err.text, message))
		fail_msg("does not say `%s`: %s", message, capture_err.text);
	free(text);
}

static void refuses_other_files(void **state)
{
	struct raw_header h = { .magic = RAW_MAGIC,
				.version = RAW_VERSION,
				.records_version = HS_RECORDS_VERSION };

	(void)state;
	expect_header(&h, 0, "");
	for (size_t i = 0; i < sizeof(h.magic); i++) {
		h.magic[i] ^= 0x20;
		expect_header(&h, -EBADMSG, "not a capture");
		h.magic[i] ^= 0x20;
	}
	h.version = RAW_VERSION + 41;
	expect_header(&h, -EBADMSG, "version 42");
	h.version = 0;
	expect_header(&h, -EBADMSG, "version 0/");
	h.version = RAW_VERSION;
	h.records_version = HS_RECORDS_VERSION + 1;
	expect_header(&h, -EBADMSG, "version");
	h.records_version = 0;
	expect_header(&h, -EBADMSG, "version");
	/* The first version had no rate records, and nothing else was different. */
	h.records_version = 1;
	expect_header(&h, 0, "");
}

static void refuses_bad_chunks(void **state)
{
	static const char *const not_records[] = {
		"[1]", "1", "{", "{}x", "{\"a\":1,\"a\":2}", "{\"a\":\"\xff\"}"
	};
	char *big = malloc(RAW_CHUNK_MAX_BYTES + 8);
	union record r;

	(void)state;
	assert_non_null(big);
	memset(big, ' ', RAW_CHUNK_MAX_BYTES + 8);
	memcpy(big, "{}", 2);
	assert_int_equal(replay_chunk(RAW_JSON, 2, "{}", 2), 0);
	assert_int_equal(replay_chunk(RAW_JSON, RAW_CHUNK_MAX_BYTES, big, RAW_CHUNK_MAX_BYTES), 0);
	expect_damaged(RAW_JSON, RAW_CHUNK_MAX_BYTES + 1, big, RAW_CHUNK_MAX_BYTES + 8);
	expect_damaged(RAW_JSON, UINT32_MAX, "{}", 2);
	expect_damaged(RAW_JSON, 0x80000000, "{}", 2);
	expect_damaged(RAW_JSON, 0, "", 0);
	expect_damaged(0, 2, "{}", 2);
	expect_damaged(RAW_FRAME + 1, 2, "{}", 2);
	for (size_t i = 0; i < COUNT(not_records); i++)
		expect_damaged(RAW_JSON, (uint32_t)strlen(not_records[i]), not_records[i],
			       strlen(not_records[i]));
	make__alloc(&r, 1, 0);
	assert_int_equal(replay_chunk(RAW_RECORD, r.h.size_bytes, &r, r.h.size_bytes), 0);
	expect_damaged(RAW_RECORD, r.h.size_bytes - 8, &r, r.h.size_bytes - 8);
	r.alloc.id = 0;
	expect_damaged(RAW_RECORD, r.h.size_bytes, &r, r.h.size_bytes);
	free(big);
}

static void refuses_bad_frames(void **state)
{
	const size_t location = sizeof(struct raw_location);
	size_t size = sizeof(struct raw_frame) + 400 * location;
	struct raw_frame *frame = calloc(1, size);
	struct raw_location *first = (struct raw_location *)(frame + 1);

	(void)state;
	assert_non_null(frame);
	frame->slot = 1;
	frame->n_locations = 1;
	size = sizeof(*frame) + location;
	assert_int_equal(replay_chunk(RAW_FRAME, (uint32_t)size, frame, size), 0);
	expect_damaged(RAW_FRAME, (uint32_t)size - 1, frame, size);
	expect_damaged(RAW_FRAME, sizeof(*frame), frame, sizeof(*frame));
	expect_damaged(RAW_FRAME, sizeof(*frame) - 1, frame, sizeof(*frame));
	first->function_bytes = 1;
	expect_damaged(RAW_FRAME, (uint32_t)size, frame, size);
	assert_int_equal(replay_chunk(RAW_FRAME, (uint32_t)size + 1, frame, size + 8), 0);
	first->function_bytes = UINT32_MAX;
	first->file_bytes = 2; /* together 1 in 32 bits */
	expect_damaged(RAW_FRAME, (uint32_t)size + 1, frame, size + 8);
	first->function_bytes = first->file_bytes = 0;
	frame->n_locations = 0;
	expect_damaged(RAW_FRAME, (uint32_t)size, frame, size);
	/* More than any symbolizer gives, all there. */
	for (uint32_t n = 65; n <= 400; n += 67) {
		frame->n_locations = n;
		size = sizeof(*frame) + n * location;
		expect_damaged(RAW_FRAME, (uint32_t)size, frame, size);
	}
	frame->n_locations = UINT32_MAX;
	expect_damaged(RAW_FRAME, (uint32_t)size, frame, size);
	free(frame);
}

/* A reader that cannot go on is not the capture's fault. */
static int refuse_json(void *ctx, json_t *object)
{
	(void)ctx;
	(void)object;
	return -ENOSPC;
}

static int refuse_event(void *ctx, const struct hs_event *event)
{
	(void)event;
	return ++*(int *)ctx == 3 ? -EPIPE : 0;
}

static int accept_json(void *ctx, json_t *object)
{
	(void)ctx;
	assert_true(json_is_object(object));
	return 0;
}

static void passes_errors_on(void **state)
{
	struct capture_reader reader = { .json = refuse_json };
	int n_events = 0;
	char *capture;
	size_t size;
	FILE *f;

	(void)state;
	capture = record(raw_sink__new, &size);
	f = fmemopen(capture, size, "r");
	assert_int_equal(symbolizer__new_empty(&reader.symbolizer), 0);
	assert_int_equal(capture__read(f, &reader, &capture_err), -ENOSPC);
	rewind(f);
	reader.json = accept_json;
	reader.event = refuse_event;
	reader.ctx = &n_events;
	assert_int_equal(capture__read(f, &reader, &capture_err), -EPIPE);
	assert_int_equal(n_events, 3);
	symbolizer__free(reader.symbolizer);
	fclose(f);
	free(capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_damage),    cmocka_unit_test(refuses_other_files),
		cmocka_unit_test(refuses_bad_chunks), cmocka_unit_test(refuses_bad_frames),
		cmocka_unit_test(passes_errors_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
