/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mappings of a profile.proto, for tools that want to know which build it was.
 *
 * In:   `mappings` of a header record: objects with start, end, offset, file, build_id.
 *       Captures of older versions have none: then one mapping stands for `exe`.
 * Out:  Mapping messages, the executable's first, because pprof takes the first one for
 *       the main program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/export/pprof.h"

static const char *string_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static uint64_t address_of(const json_t *object, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(object, name));

	return n > 0 ? (uint64_t)n : 0;
}

/* Write one, and remember where it is. p->mappings has room for it. */
static void add(struct pprof *p, const json_t *object, const char *file)
{
	struct pprof_mapping *to = &p->mappings[p->n_mappings];
	Perftools__Profiles__Mapping mapping = PERFTOOLS__PROFILES__MAPPING__INIT;
	Perftools__Profiles__Profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Mapping *list = &mapping;

	to->id = mapping.id = p->n_mappings + 1;
	to->start = mapping.memory_start = address_of(object, "start");
	mapping.memory_limit = address_of(object, "end");
	mapping.file_offset = address_of(object, "offset");
	mapping.filename = pprof__string(p, file);
	mapping.build_id = pprof__string(p, string_of(object, "build_id"));
	/* All names are in the profile: no tool need look for more. */
	mapping.has_functions = true;
	mapping.has_filenames = true;
	mapping.has_line_numbers = true;
	mapping.has_inline_frames = true;
	m.n_mapping = 1;
	m.mapping = &list;
	pprof__write(p, &m);
	p->n_mappings++;
}

static int by_start(const void *left, const void *right)
{
	const struct pprof_mapping *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

static bool is_fine(const json_t *object)
{
	return string_of(object, "file") && address_of(object, "start") < address_of(object, "end");
}

/* Those of the executable, or all others. */
static void add_some(struct pprof *p, const json_t *mappings, const char *exe, bool is_exe)
{
	const char *file;
	json_t *object;
	size_t i;

	json_array_foreach(mappings, i, object)
	{
		file = string_of(object, "file");
		if (is_fine(object) && is_exe == (exe && !strcmp(file, exe)))
			add(p, object, file);
	}
}

void pprof__mappings(struct pprof *p, const json_t *header)
{
	const json_t *mappings = json_object_get(header, "mappings");
	const char *exe = string_of(header, "exe");

	p->mappings = calloc(json_array_size(mappings) + 1, sizeof(*p->mappings));
	if (!p->mappings) {
		p->err = p->err ? p->err : -ENOMEM;
		return;
	}
	add_some(p, mappings, exe, true);
	add_some(p, mappings, exe, false);
	if (!p->n_mappings && exe)
		add(p, NULL, exe);
	qsort(p->mappings, p->n_mappings, sizeof(*p->mappings), by_start);
}
