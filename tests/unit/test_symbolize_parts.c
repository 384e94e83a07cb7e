/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of user/symbolize that need no process: what is taught, names, text,
 * ELF files.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "user/symbolize/elf_image.h"
#include "user/symbolize/ocaml_name.h"
#include "user/symbolize/symbolize.h"
#include "user/symbolize/text.h"

static void test_learn(void **state)
{
	struct hs_location given[2] = {
		{ .function = "A.f", .file = "a.ml", .line = 1, .is_inlined = true },
		{ .function = "B.\ng", .start_char = 3, .end_char = 4 },
	};
	const struct hs_location *l, *old;
	struct symbolizer *s;

	(void)state;
	assert_int_equal(symbolizer__new_empty(&s), 0);
	assert_int_equal(symbolizer__resolve(s, 8, &l), 1);
	assert_true(!l->function && !l->file && !l->line);
	assert_int_equal(symbolizer__learn(s, 8, given, 2), 0);
	assert_int_equal(symbolizer__resolve(s, 8, &old), 2);
	assert_string_equal(old[0].function, "A.f");
	assert_string_equal(old[0].file, "a.ml");
	assert_true(old[0].line == 1 && old[0].is_inlined);
	assert_string_equal(old[1].function, "B.\xEF\xBF\xBDg");
	assert_null(old[1].file);
	assert_int_equal(symbolizer__learn(s, 8, given + 1, 1), 0);
	assert_int_equal(symbolizer__resolve(s, 8, &l), 1);
	assert_ptr_equal(l[0].function, old[1].function); /* stored once */
	assert_string_equal(old[0].function, "A.f");      /* still there */
	assert_int_equal(symbolizer__learn(s, 8, given, 0), -EINVAL);
	assert_int_equal(symbolizer__learn(s, 8, given, 65), -EINVAL);
	symbolizer__free(s);
	symbolizer__free(NULL);
}

/* Memory is limited: what comes too late stays unknown, what is known stays. */
static void test_full(void **state)
{
	static const struct hs_location given[64] = { { .function = "A.f" } };
	const struct hs_location *l;
	struct symbolizer *s;
	uint64_t slot = 0;
	size_t n;

	(void)state;
	assert_int_equal(symbolizer__new_empty(&s), 0);
	do {
		assert_int_equal(symbolizer__learn(s, slot += 4, given, 64), 0);
		n = (size_t)symbolizer__resolve(s, slot, &l);
	} while (n == 64 && slot < 4000000);
	assert_int_equal(n, 1);
	assert_int_equal(symbolizer__resolve(s, 4, &l), 64);
	assert_string_equal(l->function, "A.f");
	assert_int_equal(symbolizer__resolve(s, slot, &l), 1);
	assert_null(l->function);
	symbolizer__free(s);
}

static void test_names(void **state)
{
	static const char *const pairs[][2] = {
		{ "camlFoo.bar_123", "Foo.bar" },
		{ "camlFoo.$3e$3e$3d_273", "Foo.>>=" },
		{ "camlFoo.f$27_363", "Foo.f'" },
		{ "camlMylib__Inner.go_270", "Mylib__Inner.go" },
		{ "camlFoo.x_1_270", "Foo.x_1" },
		{ "camlFoo.bar_123_code", "Foo.bar" },
		{ "camlFoo.entry", "Foo.entry" },
		{ "camlFoo.f$", "Foo.f$" },
		{ "camlFoo.f$2", "Foo.f$2" },
		{ "camlFoo.f$00_1", "Foo.f$00" },
		{ "camlFoo._12", "Foo._12" },
		{ "camlFoo__bar_123", "Foo.bar" },
		{ "camlLib__Foo__bar__baz_123", "Lib__Foo.bar__baz" },
		{ "camlFoo__$3e_1", "Foo.>" },
		{ "camlFoo", "camlFoo" },
		{ "caml_alloc_shr", "caml_alloc_shr" },
		{ "caml_system.frametable", "caml_system.frametable" },
		{ "main", "main" },
		{ "cam", "cam" },
		{ "", "" },
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		ocaml_name__demangle(pairs[i][0], out, sizeof(out));
		assert_string_equal(out, pairs[i][1]);
	}
	ocaml_name__demangle("camlFoo.bar_123", out, 5);
	assert_string_equal(out, "Foo.");
}

static void test_text(void **state)
{
	static const char bad[][5] = {
		"\x80",         "\xC0\x80",         "\xC3", "\xE0\x80\x80",
		"\xED\xA0\x80", "\xF4\x90\x80\x80", "\x7F",
	};
	static const char good[][5] = { "a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x90\xAB", "" };
	struct text_pool *p = text_pool__new();

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_memory_equal(text_pool__intern(p, bad[i], strlen(bad[i])), "\xEF\xBF\xBD",
				    3);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_string_equal(text_pool__intern(p, good[i], strlen(good[i])), good[i]);
	text_pool__free(p);
}

/* This program's own file with bytes changed where the structure is. */
static void test_damaged_elf(void **state)
{
	static uint8_t head[4096], tail[8192];
	struct page_cache *pages;
	int fd = memfd_create("elf", 0), self = open("/proc/self/exe", O_RDONLY);
	off_t size = lseek(self, 0, SEEK_END), tail_at = size - (off_t)sizeof(tail), at = 0;

	(void)state;
	while (at < size)
		assert_true(sendfile(fd, self, &at, (size_t)(size - at)) > 0);
	assert_int_equal(pread(fd, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pread(fd, tail, sizeof(tail), tail_at), sizeof(tail));
	srandom(2);
	for (unsigned int i = 0; i < 500; i++) {
		size_t budget = 100000;
		struct elf_image *img;
		uint64_t v;
		char name[100];

		for (unsigned int j = 0; j < 1 + i % 8; j++) {
			off_t to = random() % 2 ? random() % 1024 : tail_at + random() % 8192;

			assert_int_equal(pwrite(fd, &(uint8_t){ (uint8_t)random() }, 1, to), 1);
		}
		pages = page_cache__new();
		assert_int_equal(elf_image__new(&img, dup(fd), 2, pages), 0);
		for (uint64_t offset = 0; offset < (uint64_t)size; offset += 4096) {
			if (elf_image__vaddr(img, offset, i % 2, &v) == 0)
				elf_image__function(img, v, &budget, name, sizeof(name));
			elf_image__pointer(img, offset, &v);
		}
		elf_image__free(img);
		page_cache__free(pages);
		assert_int_equal(pwrite(fd, head, sizeof(head), 0), sizeof(head));
		assert_int_equal(pwrite(fd, tail, sizeof(tail), tail_at), sizeof(tail));
	}
	close(fd);
	close(self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learn),       cmocka_unit_test(test_full),
		cmocka_unit_test(test_names),       cmocka_unit_test(test_text),
		cmocka_unit_test(test_damaged_elf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
