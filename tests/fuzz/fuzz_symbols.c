/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that a target has mapped: segments, relocations, symbols, build id; and from
 * symbols to names.
 *
 * In:   an ELF file, or anything else.
 * Out:  user/symbolize/elf_image.h, build_id.h, ocaml_name.h and text.h.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <unistd.h>

#include "user/symbolize/build_id.h"
#include "user/symbolize/elf_image.h"
#include "user/symbolize/ocaml_name.h"
#include "user/symbolize/text.h"

#define BUDGET 65536 /* of symbols; the program has some more */

static void check_name(struct text_pool *texts, const char *symbol)
{
	char name[TEXT_MAX], cut[8];
	const char *text;

	ocaml_name__demangle(symbol, name, sizeof(name));
	CHECK(strlen(name) < sizeof(name));
	ocaml_name__demangle(symbol, cut, sizeof(cut));
	ocaml_name__demangle(symbol, cut, 1);
	CHECK(!cut[0]);
	text = text_pool__intern(texts, name, strlen(name));
	CHECK(text && text == text_pool__intern(texts, name, strlen(name)));
	for (const char *p = text; *p; p++)
		CHECK((unsigned char)*p >= ' ' && *p != 0x7f);
}

static void look_up(struct elf_image *img, struct text_pool *texts, size_t *budget, uint64_t vaddr)
{
	char symbol[64];

	if (!elf_image__function(img, vaddr, budget, symbol, sizeof(symbol)))
		check_name(texts, symbol);
}

static void look_around(struct elf_image *img, struct text_pool *texts)
{
	size_t budget = BUDGET;

	for (unsigned int i = 0; i < img->n_segments; i++) {
		const struct elf_segment *s = &img->segments[i];
		uint64_t step = s->filesz / 61 + 1, vaddr, value;

		for (uint64_t at = 0; at < s->filesz && at + step > at; at += step) {
			elf_image__vaddr(img, s->offset + at, true, &vaddr);
			elf_image__vaddr(img, s->offset + at, false, &vaddr);
			elf_image__pointer(img, s->offset + (at & ~(uint64_t)7), &value);
			look_up(img, texts, &budget, s->vaddr + at);
		}
	}
	look_up(img, texts, &budget, 0);
	look_up(img, texts, &budget, UINT64_MAX);
	CHECK(budget <= BUDGET);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct page_cache *pages = page_cache__new();
	struct text_pool *texts = text_pool__new();
	uint8_t id[BUILD_ID_MAX_BYTES];
	struct elf_image *img;

	CHECK(pages && texts);
	CHECK(!elf_image__new(&img, dup(fuzz__file(0, data, size)), 1, pages));
	CHECK(img->n_segments <= ELF_IMAGE_MAX_SEGMENTS);
	look_around(img, texts);
	CHECK(build_id__read(img, id) <= sizeof(id));
	elf_image__free(img);
	text_pool__free(texts);
	page_cache__free(pages);
	return 0;
}
