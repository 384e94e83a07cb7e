/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compressed captures, and captures in pieces: whatever the pieces and wherever they are cut,
 * they give the lines of the plain one, up to the cut; damaged anywhere they give an error or
 * lines, but never other lines as if they were whole; a small file does not take much memory.
 */
#include "tests/unit/capture_make.h"

#include <sys/resource.h>
#include <zstd.h>

/* ---- pieces ---- */

/* Feed n bytes in pieces: of `step` bytes each, or with 0 of random lengths. */
static int feed(const char *bytes, size_t n, size_t step, char **text)
{
	struct capture_reader reader = { .json = on_json, .event = pipeline__event };
	uint64_t seed = 7;
	struct capture *c;
	struct lane l;
	int ret;

	lane__begin(&l, jsonl_sink__new);
	reader.ctx = &l.pipeline;
	reader.symbolizer = l.pipeline.symbolizer;
	capture_err.text[0] = '\0';
	ret = capture__new(&c, &reader);
	for (size_t at = 0; at < n && !ret;) {
		size_t take = step ? step : make__random(&seed) % 200 + 1;
		/* Of its own and exact, so that AddressSanitizer sees reads beyond it. */
		char *piece;

		take = take > n - at ? n - at : take;
		piece = malloc(take);
		assert_non_null(piece);
		memcpy(piece, bytes + at, take);
		ret = capture__feed(c, piece, take, &capture_err);
		free(piece);
		at += take;
	}
	if (!ret)
		ret = capture__end(c, &capture_err);
	capture__free(c);
	capture_is_cut = reader.is_cut;
	*text = lane__end(&l, NULL);
	return ret;
}

/* A plain capture as many small frames, each flushed several times. */
static char *make_frames(const char *plain, size_t n, size_t *size)
{
	size_t room = ZSTD_compressBound(n) + n, at = 0;
	ZSTD_CCtx *z = ZSTD_createCCtx();
	char *out = malloc(room);
	ZSTD_outBuffer to = { out, room, 0 };

	assert_non_null(z);
	assert_non_null(out);
	ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
	for (int i = 1; at < n; i++) {
		size_t take = n - at < 50 ? n - at : 50;
		ZSTD_inBuffer in = { plain + at, take, 0 };

		at += take;
		assert_int_equal(ZSTD_compressStream2(z, &to, &in,
						      i % 7 && at < n ? ZSTD_e_flush : ZSTD_e_end),
				 0);
	}
	ZSTD_freeCCtx(z);
	*size = to.pos;
	return out;
}

static void takes_any_pieces(void **state)
{
	static const size_t steps[] = { 1, 2, 3, 5, 7, 8, 9, 16, 24, 100, 4096, 1 << 20, 0 };
	char *direct = record(jsonl_sink__new, NULL), *captures[3], *text;
	size_t sizes[3];

	(void)state;
	captures[0] = record(raw_sink__new, &sizes[0]);
	captures[1] = record(hsd_sink__new, &sizes[1]);
	captures[2] = make_frames(captures[0], sizes[0], &sizes[2]);
	assert_memory_equal(captures[1], "\x28\xb5\x2f\xfd", 4);
	assert_true(sizes[1] < sizes[0]);
	for (size_t i = 0; i < COUNT(captures); i++) {
		for (size_t k = 0; k < COUNT(steps); k++) {
			assert_int_equal(feed(captures[i], sizes[i], steps[k], &text), 0);
			assert_false(capture_is_cut);
			assert_string_equal(text, direct);
			free(text);
		}
		assert_int_equal(replay(captures[i], sizes[i], &text), 0);
		assert_string_equal(text, direct);
		free(text);
		free(captures[i]);
	}
	free(direct);
}

/* ---- cuts ---- */

/* is_one_frame: only its end is no cut. Otherwise it may end between two frames. */
static void expect_cuts(const char *capture, size_t size, const char *whole, bool is_one_frame)
{
	char *last = strdup(""), *text;

	for (size_t n = 1; n <= size; n++) {
		assert_int_equal(replay(capture, n, &text), 0);
		assert_string_equal(capture_err.text, "");
		if (is_one_frame)
			assert_int_equal(capture_is_cut, n != size);
		/* Whole lines, no fewer than before, the first ones of all. */
		assert_memory_equal(text, whole, strlen(text));
		assert_true(!*text || text[strlen(text) - 1] == '\n');
		assert_true(strlen(text) >= strlen(last));
		free(last);
		last = text;
	}
	assert_false(capture_is_cut);
	assert_string_equal(last, whole);
	free(last);
}

static void replays_what_is_left(void **state)
{
	char *direct = record(jsonl_sink__new, NULL), *plain, *frames, *hsd;
	size_t n_plain, n_frames, n_hsd;

	(void)state;
	plain = record(raw_sink__new, &n_plain);
	frames = make_frames(plain, n_plain, &n_frames);
	hsd = record(hsd_sink__new, &n_hsd);
	expect_cuts(hsd, n_hsd, direct, true);
	expect_cuts(frames, n_frames, direct, false);
	free(hsd);
	free(frames);
	free(plain);
	free(direct);
}

/* ---- damage ---- */

/* Other bytes than were written. Returns whether they were refused. */
static bool replay_damaged(const char *bytes, size_t size, const char *whole)
{
	char *text;
	int ret = replay(bytes, size, &text);

	if (ret) {
		assert_int_equal(ret, -EBADMSG);
		assert_true(*capture_err.text);
	} else if (!capture_is_cut) {
		/* The checksums have seen all of it. */
		assert_string_equal(text, whole);
	}
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		json_t *object = json_loadb(line, (size_t)(end - line), 0, NULL);

		if (!object)
			fail_msg("no JSON: %.*s", (int)(end - line), line);
		json_decref(object);
	}
	free(text);
	return ret != 0;
}

static void survives_damage(void **state)
{
	static const unsigned char flips[] = { 0x01, 0x10, 0x80, 0xff };
	char *direct = record(jsonl_sink__new, NULL), *captures[2], *plain, *damaged;
	size_t sizes[2], n_plain, n_refused = 0;

	(void)state;
	plain = record(raw_sink__new, &n_plain);
	captures[0] = record(hsd_sink__new, &sizes[0]);
	captures[1] = make_frames(plain, n_plain, &sizes[1]);
	for (size_t i = 0; i < COUNT(captures); i++) {
		damaged = malloc(sizes[i]);
		assert_non_null(damaged);
		for (size_t at = 0; at < sizes[i]; at++) {
			for (size_t k = 0; k < COUNT(flips); k++) {
				memcpy(damaged, captures[i], sizes[i]);
				damaged[at] ^= (char)flips[k];
				n_refused += replay_damaged(damaged, sizes[i], direct);
			}
		}
		free(damaged);
		free(captures[i]);
	}
	assert_true(n_refused > sizes[0] + sizes[1]);
	free(plain);
	free(direct);
}

static void expect_refused(const char *bytes, size_t size, const char *message)
{
	char *text;

	assert_int_equal(replay(bytes, size, &text), -EBADMSG);
	if (!strstr(capture_err.text, message))
		fail_msg("does not say `%s`: %s", message, capture_err.text);
	free(text);
}

static void refuses_other_files(void **state)
{
	char packed[256];
	size_t n;

	(void)state;
	n = ZSTD_compress(packed, sizeof(packed), "something else altogether", 25, 1);
	assert_false(ZSTD_isError(n));
	expect_refused(packed, n, "not a capture");
	n = ZSTD_compress(packed, sizeof(packed), "short", 5, 1);
	expect_refused(packed, n, "not a capture");
	expect_refused("heapsonge_______", 16, "not a capture");
	expect_refused("\x28\xb5\x2f\xfe____________", 16, "not a capture");
	expect_refused("hea\n", 4, "not a capture");
	expect_refused("x", 1, "not a capture");
	expect_refused("", 0, "empty");
}

/* ---- memory ---- */

/* Peak of this process, in MiB. */
static long peak_mib(void)
{
	struct rusage u;

	assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
	return u.ru_maxrss >> 10;
}

#define BOMB_CHUNKS 200
#define BOMB_CHUNK_BYTES (1u << 20)

/* 200 MiB of chunks that are almost empty, in a file of some KiB. */
static char *make_bomb(int window_log, size_t *size)
{
	const struct raw_header header = { RAW_MAGIC, RAW_VERSION, HS_RECORDS_VERSION };
	const struct raw_chunk chunk = { RAW_JSON, BOMB_CHUNK_BYTES };
	char *payload = malloc(BOMB_CHUNK_BYTES), *out = malloc(1 << 20);
	ZSTD_outBuffer to = { out, 1 << 20, 0 };
	ZSTD_CCtx *z = ZSTD_createCCtx();
	const ZSTD_inBuffer all[] = { { &header, sizeof(header), 0 },
				      { &chunk, sizeof(chunk), 0 },
				      { payload, BOMB_CHUNK_BYTES, 0 } };

	assert_non_null(z);
	assert_non_null(payload);
	assert_non_null(out);
	ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, window_log);
	memset(payload, ' ', BOMB_CHUNK_BYTES);
	memcpy(payload, "{}", 2);
	for (int i = 0; i < 2 * BOMB_CHUNKS + 1; i++) {
		ZSTD_inBuffer in = all[!i ? 0 : 2 - i % 2];

		while (in.pos < in.size)
			assert_false(
				ZSTD_isError(ZSTD_compressStream2(z, &to, &in, ZSTD_e_continue)));
	}
	assert_int_equal(ZSTD_compressStream2(z, &to, &(ZSTD_inBuffer){ 0 }, ZSTD_e_end), 0);
	ZSTD_freeCCtx(z);
	free(payload);
	*size = to.pos;
	return out;
}

static int count_json(void *ctx, json_t *object)
{
	(void)object;
	++*(int *)ctx;
	return 0;
}

static int refuse_event(void *ctx, const struct hs_event *event)
{
	(void)ctx;
	(void)event;
	return -EINVAL;
}

static void takes_little_memory_for_much(void **state)
{
	int n_json = 0;
	struct capture_reader reader = { .json = count_json,
					 .event = refuse_event,
					 .ctx = &n_json };
	struct capture *c;
	size_t size;
	char *bomb = make_bomb(20, &size);
	long before = peak_mib();

	(void)state;
	assert_true(size < 200000);
	assert_int_equal(capture__new(&c, &reader), 0);
	assert_int_equal(capture__feed(c, bomb, size, &capture_err), 0);
	assert_int_equal(capture__end(c, &capture_err), 0);
	capture__free(c);
	assert_int_equal(n_json, BOMB_CHUNKS);
	assert_true(peak_mib() - before < 32);
	free(bomb);
	/* One that wants us to keep 128 MiB. */
	bomb = make_bomb(27, &size);
	expect_refused(bomb, size, "window");
	free(bomb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_any_pieces),
		cmocka_unit_test(replays_what_is_left),
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(refuses_other_files),
		cmocka_unit_test(takes_little_memory_for_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
