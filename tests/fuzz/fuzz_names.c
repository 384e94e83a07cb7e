/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wild names of functions, files and programs in all that is shown or exported.
 *
 * In:   a byte that chooses what is made; texts (fuzz__piece): the command line, the file of
 *       the program, then function and file of one frame after the other.
 * Out:  user/export, user/report. What is text holds no control characters, what is JSON
 *       lines is JSON, and the page's script ends where it should.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <unistd.h>

#include "user/common/say.h"
#include "user/export/export.h"
#include "user/report/report.h"
#include "user/sinks/json.h"
#include "user/sinks/raw_format.h"

#define FRAMES_MAX 16

/* ---- a capture with these names ---- */

static void put_chunk(FILE *f, uint32_t kind, const void *bytes, size_t n)
{
	const struct raw_chunk chunk = { .kind = kind, .size_bytes = (uint32_t)n };
	const char zeros[8] = { 0 };

	fwrite(&chunk, sizeof(chunk), 1, f);
	fwrite(bytes, n, 1, f);
	fwrite(zeros, -n & 7, 1, f);
}

static void put_json(FILE *f, json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);

	CHECK(text);
	put_chunk(f, RAW_JSON, text, strlen(text));
	free(text);
	json_decref(object);
}

static void put_header(FILE *f, struct fuzz_bytes *b)
{
	struct raw_header h = { .version = RAW_VERSION, .records_version = HS_RECORDS_VERSION };
	char *command = fuzz__text(b), *exe = fuzz__text(b);

	memcpy(h.magic, RAW_MAGIC, sizeof(h.magic));
	fwrite(&h, sizeof(h), 1, f);
	put_json(f,
		 json_pack("{s:s, s:I, s:I, s:o, s:o, s:o}", "type", "header", "time",
			   (json_int_t)1000, "pid", (json_int_t)1, "command", json__text(command),
			   "exe", json__text(exe), "ocaml", json__text(command)));
	put_json(f, json_pack("{s:s, s:i, s:f}", "type", "profile", "profile", 1, "rate", 0.125));
	free(command);
	free(exe);
}

static void put_frame(FILE *f, uint64_t slot, struct fuzz_bytes *b)
{
	const struct raw_frame frame = { .slot = slot, .n_locations = 1 };
	struct fuzz_bytes function = fuzz__piece(b), file = fuzz__piece(b);
	struct raw_location l = { .line = 1,
				  .end_line = 1,
				  .flags = RAW_LOCATION_FUNCTION | RAW_LOCATION_FILE,
				  .function_bytes = (uint32_t)function.left,
				  .file_bytes = (uint32_t)file.left };
	char *bytes;
	size_t n;
	FILE *chunk = open_memstream(&bytes, &n);

	CHECK(chunk);
	fwrite(&frame, sizeof(frame), 1, chunk);
	fwrite(&l, sizeof(l), 1, chunk);
	fwrite(function.at, function.left, 1, chunk);
	fwrite(file.at, file.left, 1, chunk);
	fclose(chunk);
	put_chunk(f, RAW_FRAME, bytes, n);
	free(bytes);
}

static void put_alloc(FILE *f, uint64_t id, uint32_t depth, bool promoted)
{
	const struct hs_rec_alloc alloc = { .h = { HS_REC_ALLOC, sizeof(alloc), 1000 + id, 1, 0, 1,
						   1 },
					    .id = id,
					    .size_words = 7,
					    .n_samples = 1,
					    .stack_hash = id,
					    .is_tracked = 1,
					    .depth = depth };
	const struct hs_rec_block block = {
		.h = { HS_REC_PROMOTE, sizeof(block), 2000 + id, 1, 0, 1, 1 }, .id = id
	};

	put_chunk(f, RAW_RECORD, &alloc, sizeof(alloc));
	if (promoted)
		put_chunk(f, RAW_RECORD, &block, sizeof(block));
}

/* A block at each frame, its stack being that frame and all before. */
static void put_frames(FILE *f, struct fuzz_bytes *b)
{
	struct hs_rec_stack *stack =
		calloc(1, sizeof(*stack) + FRAMES_MAX * sizeof(stack->frames[0]));

	CHECK(stack);
	stack->h = (struct hs_record){
		.type = HS_REC_STACK, .time_ns = 1000, .profile = 1, .tgid = 1, .tid = 1
	};
	for (uint32_t n = 1; n <= FRAMES_MAX && b->left; n++) {
		put_frame(f, 8ull * n, b);
		memmove(stack->frames + 1, stack->frames, (n - 1) * sizeof(stack->frames[0]));
		stack->frames[0] = 8ull * n;
		stack->hash = n;
		stack->depth = n;
		stack->h.size_bytes = (uint32_t)(sizeof(*stack) + n * sizeof(stack->frames[0]));
		put_chunk(f, RAW_RECORD, stack, stack->h.size_bytes);
		put_alloc(f, n, n, n & 1);
	}
	free(stack);
}

static void make_capture(struct fuzz_bytes *b)
{
	char *bytes;
	size_t n;
	FILE *f = open_memstream(&bytes, &n);

	CHECK(f);
	put_header(f, b);
	put_frames(f, b);
	put_json(f, json_pack("{s:s, s:I, s:s, s:{}}", "type", "summary", "time", (json_int_t)9000,
			      "reason", "stopped", "lost"));
	CHECK(!fclose(f));
	fuzz__file(0, bytes, n);
	free(bytes);
}

/* ---- what comes out ---- */

static void check_text(const char *text, size_t n)
{
	CHECK(strlen(text) == n);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		CHECK((*p >= ' ' && *p != 0x7f) || *p == '\n');
}

static void check_json(const char *text, size_t n)
{
	json_t *object = json_loadb(text, n, 0, NULL);

	CHECK(json_is_object(object));
	json_decref(object);
}

static void check_lines(const char *text, size_t n)
{
	for (const char *nl, *last = text + n; text < last; text = nl + 1) {
		nl = memchr(text, '\n', (size_t)(last - text));
		CHECK(nl);
		check_json(text, (size_t)(nl - text));
	}
}

/* "FRAME;FRAME N": as many lines as blocks at most, a number at the end of each. */
static void check_folded(const char *text, size_t n)
{
	check_text(text, n);
	for (const char *nl; (nl = strchr(text, '\n')); text = nl + 1) {
		const char *p = nl;

		while (p > text && strchr("0123456789", p[-1]))
			p--;
		CHECK(p < nl && p > text && p[-1] == ' ');
	}
	CHECK(!*text);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *p = text; (p = strcasestr(p, what)); p++)
		n++;
	return n;
}

/* JSON has DEL as it is, which in a page does nothing. */
static size_t count_controls(const char *text)
{
	size_t n = 0;

	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		n += *p < ' ' && *p != '\n';
	return n;
}

/* No name ends an element of the page, or begins one: it has as many as one without names. */
static void check_page(const char *text, size_t n)
{
	const size_t found[] = { count(text, "</script"), count(text, "<script"),
				 count(text, "<!--"), count_controls(text) };
	static size_t wanted[4];

	CHECK(strlen(text) == n);
	if (!wanted[0])
		memcpy(wanted, found, sizeof(wanted));
	CHECK(!memcmp(wanted, found, sizeof(wanted)));
}

static void check(const struct exporter *e, const char *text, size_t n)
{
	if (e == &export_jsonl)
		check_lines(text, n);
	else if (e == &export_folded)
		check_folded(text, n);
	else if (e == &export_speedscope)
		check_json(text, n);
	else if (e == &export_html)
		check_page(text, n);
}

static void export(const struct exporter *e)
{
	static const struct heap_options heap = { .want_timeline = true };
	const struct export_options o = { .ctf_version = 2, .metric = ROWS_ALLOC, .input = "i" };
	struct replay r = { .path = fuzz__path(0), .heap_options = e->write ? &heap : NULL };
	struct hs_error err;
	char *text = NULL;
	size_t n = 0;
	/* A memtrace file is cut back, which these streams are not made for. */
	FILE *f = e->is_binary ? fuzz__null() : open_memstream(&text, &n);

	CHECK(f);
	if (e->open)
		CHECK(!e->open(&r.sink, f, &o));
	CHECK(!replay__run(&r, &err));
	CHECK(!r.is_cut);
	if (e->write) {
		CHECK(!e->write(f, &r, &o, &err));
		fclose(f);
	}
	sink__free(r.sink);
	check(e, text, n);
	free(text);
	replay__deinit(&r);
}

/* With stdout in our hands, where the reports go. */
static void report(bool is_json)
{
	const struct report_options o = { .by = ROWS_BY_STACK,
					  .filter = ROWS_FILTER_ALL,
					  .is_json = is_json };
	struct recording rec = { 0 };
	FILE *saved = stdout;
	struct hs_error err;
	char *text;
	size_t n;

	CHECK(!recording__read(&rec, fuzz__path(0), NULL, NULL, NULL, &err));
	stdout = open_memstream(&text, &n);
	CHECK(stdout && !report__rows(&rec, &o, &err));
	CHECK(!fclose(stdout));
	stdout = saved;
	check_text(text, n);
	if (is_json)
		check_json(text, n);
	free(text);
	recording__deinit(&rec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = { data, size }, none = { data, 0 };
	unsigned int choice = (unsigned int)fuzz__number(&b, 1) & 7;
	static bool has_page;

	say__set_level(SAY_ERRORS);
	if (!has_page) {
		make_capture(&none);
		export(&export_html);
		has_page = true;
	}
	make_capture(&b);
	if (choice < 6)
		export(exporters[choice]);
	else
		report(choice == 7);
	return 0;
}
