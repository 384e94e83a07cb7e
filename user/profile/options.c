/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is wished for of a profile; see profile.h.
 *
 * In:   the texts of options, whether from a command line or from a request.
 * Out:  struct profile_options.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/profile/profile.h"

#define SIZE_PREFIX "size="
/* The size field of a header has 54 bits. */
#define SIZE_WORDS_MAX ((1ull << 54) - 1)

void profile_options__init(struct profile_options *o)
{
	memset(o, 0, sizeof(*o));
	o->attach.number = 1;
	o->attach.stack_depth = PROFILE_DEPTH_DEFAULT;
	tier_choice__make(PROFILE_RATE_DEFAULT, &o->attach.tier);
	profile_options__set_track(o, "all");
}

void profile_options__deinit(struct profile_options *o)
{
	free(o->domains);
	o->domains = NULL;
	o->attach.domains = NULL;
	o->attach.n_domains = 0;
}

struct wanted {
	uint32_t heaps, sources;
	uint64_t min_words, max_words; /* 0: any */
	bool lifetimes;
};

/*
 * A number of words at the beginning of text, perhaps in k, M or G, which count in 1024s;
 * *end: behind it. 0 or -EINVAL.
 */
static int take_words(const char *text, uint64_t *words, const char **end)
{
	unsigned int shift = 0;
	char *stop;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*words = strtoull(text, &stop, 10);
	if (errno)
		return -EINVAL;
	if (*stop == 'k' || *stop == 'K')
		shift = 10;
	else if (*stop == 'M')
		shift = 20;
	else if (*stop == 'G')
		shift = 30;
	*end = stop + (shift > 0);
	if (*words > SIZE_WORDS_MAX >> shift)
		return -EINVAL;
	*words <<= shift;
	return 0;
}

/* A range of sizes, to the end of n bytes: "16", "16-", "-16", "16-31", "4k-". */
static int set_size(struct wanted *w, const char *text, size_t n)
{
	const char *end = text + n, *at = text;
	uint64_t min = 0, max = 0;

	if (w->max_words || w->min_words || !n)
		return -EINVAL;
	if (*at != '-' && take_words(at, &min, &at))
		return -EINVAL;
	if (at == end) {
		max = min;
	} else {
		if (*at++ != '-')
			return -EINVAL;
		if (at == end ? !min : take_words(at, &max, &at))
			return -EINVAL;
	}
	if (at != end || (max && max < min) || !(min || max))
		return -EINVAL;
	w->min_words = min;
	w->max_words = max;
	return 0;
}

/* One kind, the first n bytes of word. 0 or -EINVAL. */
static int add_kind(struct wanted *w, const char *word, size_t n)
{
	static const struct {
		const char *name;
		uint32_t heaps, sources;
	} kinds[] = {
		{ "all", 0, 0 },
		{ "alloc", 0, 0 },
		{ "minor", 1u << HS_HEAP_MINOR, 0 },
		{ "major", 1u << HS_HEAP_MAJOR, 0 },
		{ "normal", 0, 1u << SONDE_SRC_NORMAL },
		{ "marshal", 0, 1u << SONDE_SRC_MARSHAL },
		{ "custom", 0, 1u << SONDE_SRC_CUSTOM },
		{ "map_file", 0, 1u << SONDE_SRC_MAP_FILE },
	};

	if (n >= strlen(SIZE_PREFIX) && !memcmp(word, SIZE_PREFIX, strlen(SIZE_PREFIX)))
		return set_size(w, word + strlen(SIZE_PREFIX), n - strlen(SIZE_PREFIX));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strlen(kinds[i].name) != n || memcmp(word, kinds[i].name, n))
			continue;
		w->heaps |= kinds[i].heaps;
		w->sources |= kinds[i].sources;
		if (!strcmp(kinds[i].name, "alloc"))
			w->lifetimes = false;
		return 0;
	}
	return -EINVAL;
}

int profile_options__set_track(struct profile_options *o, const char *text)
{
	struct wanted w = { .lifetimes = true };
	const char *word = text;

	if (strlen(text) >= sizeof(o->track))
		return -EINVAL;
	for (;;) {
		size_t n = strcspn(word, ",");

		if (add_kind(&w, word, n))
			return -EINVAL;
		if (!word[n])
			break;
		word += n + 1;
	}
	memcpy(o->track, text, strlen(text) + 1);
	o->attach.heaps = w.heaps ? w.heaps : ~0u;
	o->attach.sources = w.sources ? w.sources : ~0u;
	o->attach.min_words = w.min_words;
	o->attach.max_words = w.max_words;
	o->attach.lifetimes = w.lifetimes;
	return 0;
}

int profile_options__add_domain(struct profile_options *o, uint32_t unique_id)
{
	uint32_t *grown = realloc(o->domains, (o->attach.n_domains + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[o->attach.n_domains++] = unique_id;
	o->domains = grown;
	o->attach.domains = grown;
	return 0;
}
