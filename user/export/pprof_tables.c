/* SPDX-License-Identifier: BSD-2-Clause */
/* What a profile.proto numbers: strings, functions, locations; see pprof.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/export/ordered.h"
#include "user/export/pprof.h"

int pprof__init(struct pprof *p, FILE *f)
{
	memset(p, 0, sizeof(*p));
	p->err = gzip__new(&p->out, f);
	if (!p->err)
		p->err = id_table__new(&p->strings);
	if (!p->err)
		p->err = id_table__new(&p->functions);
	if (!p->err)
		p->err = id_table__new(&p->locations);
	/* String 0 is the empty one: so it is laid down. */
	pprof__string(p, "");
	return p->err;
}

void pprof__deinit(struct pprof *p)
{
	gzip__free(p->out);
	id_table__free(p->strings);
	id_table__free(p->functions);
	id_table__free(p->locations);
	free(p->mappings);
	memset(p, 0, sizeof(*p));
}

/* ---- writing ---- */

/* protobuf-c's idea of a place to write to. */
struct sink_buffer {
	ProtobufCBuffer base;
	struct pprof *pprof;
};

static void append(ProtobufCBuffer *base, size_t n_bytes, const uint8_t *bytes)
{
	struct pprof *p = ((struct sink_buffer *)base)->pprof;

	if (!p->err)
		p->err = gzip__write(p->out, bytes, n_bytes);
}

void pprof__write(struct pprof *p, const Perftools__Profiles__Profile *m)
{
	struct sink_buffer buffer = { .base.append = append, .pprof = p };

	if (!p->err)
		perftools__profiles__profile__pack_to_buffer(m, &buffer.base);
}

/* The number of a key, from 0; -1 after an error. */
static int64_t number(struct pprof *p, struct id_table *t, const void *key, size_t bytes,
		      bool *is_new)
{
	int64_t id;

	*is_new = false;
	if (p->err)
		return -1;
	id = id_table__of(t, key, bytes, is_new);
	if (id >= 0)
		return id;
	p->err = (int)id;
	return -1;
}

/* ---- strings ---- */

/* Text of a header has not been cleaned, and tools print it. */
static char *without_controls(const char *text)
{
	char *copy = strdup(text);

	for (unsigned char *c = (unsigned char *)copy; c && *c; c++) {
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
		/* C1, U+0080 to U+009F, is C2 and one more byte in UTF-8. */
		if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			c[0] = c[1] = '?';
	}
	return copy;
}

int64_t pprof__string(struct pprof *p, const char *text)
{
	Perftools__Profiles__Profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	char *clean = without_controls(text ? text : "");
	int64_t id;
	bool is_new;

	if (!clean && !p->err)
		p->err = -ENOMEM;
	if (p->err) {
		free(clean);
		return 0;
	}
	id = number(p, p->strings, clean, strlen(clean), &is_new);
	if (is_new) {
		m.n_string_table = 1;
		m.string_table = &clean;
		pprof__write(p, &m);
	}
	free(clean);
	return id < 0 ? 0 : id;
}

/* ---- functions and locations ---- */

static uint64_t function_id(struct pprof *p, const char *name, const char *file)
{
	int64_t key[2] = { pprof__string(p, name), pprof__string(p, file) };
	Perftools__Profiles__Function f = PERFTOOLS__PROFILES__FUNCTION__INIT;
	Perftools__Profiles__Profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Function *list = &f;
	bool is_new;

	f.id = (uint64_t)(number(p, p->functions, key, sizeof(key), &is_new) + 1);
	if (is_new) {
		f.name = key[0];
		f.system_name = key[0];
		f.filename = key[1];
		m.n_function = 1;
		m.function = &list;
		pprof__write(p, &m);
	}
	return f.id;
}

/*
 * The mapping that a frame's address belongs to, 0: none. It is the address of a frame
 * descriptor, which is in its file's data. The header tells where code is mapped; the data
 * of the same file follow it.
 */
static uint64_t mapping_of(const struct pprof *p, uint64_t address)
{
	size_t low = 0, high = p->n_mappings;

	/* The last one that begins at or before the address. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->mappings[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? p->mappings[low - 1].id : 0;
}

static void write_location(struct pprof *p, Perftools__Profiles__Location *l,
			   const struct hs_location *lines, size_t n_lines)
{
	Perftools__Profiles__Line *line = calloc(n_lines, sizeof(*line));
	Perftools__Profiles__Line **list = calloc(n_lines, sizeof(*list));
	Perftools__Profiles__Profile m = PERFTOOLS__PROFILES__PROFILE__INIT;

	for (size_t i = 0; line && list && i < n_lines; i++) {
		perftools__profiles__line__init(&line[i]);
		line[i].function_id = function_id(p, ordered__function(&lines[i]), lines[i].file);
		line[i].line = lines[i].line;
		list[i] = &line[i];
	}
	if (!line || !list) {
		p->err = p->err ? p->err : -ENOMEM;
	} else {
		l->n_line = n_lines;
		l->line = list;
		m.n_location = 1;
		m.location = &l;
		pprof__write(p, &m);
	}
	free(line);
	free(list);
}

uint64_t pprof__location(struct pprof *p, const struct stack_frame *frame)
{
	/* A slot may get other names in the course of a capture. */
	uint64_t key[2] = { frame->slot, (uint64_t)(uintptr_t)frame->locations };
	Perftools__Profiles__Location l = PERFTOOLS__PROFILES__LOCATION__INIT;
	bool is_new;

	l.id = (uint64_t)(number(p, p->locations, key, sizeof(key), &is_new) + 1);
	if (is_new) {
		l.mapping_id = mapping_of(p, frame->slot);
		l.address = frame->slot;
		write_location(p, &l, frame->locations, frame->n_locations);
	}
	return l.id;
}

uint64_t pprof__placeholder(struct pprof *p, const char *name)
{
	Perftools__Profiles__Location l = PERFTOOLS__PROFILES__LOCATION__INIT;
	struct hs_location line = { .function = name };
	bool is_new;

	/* With its NUL, so that no key of a frame is as long. */
	l.id = (uint64_t)(number(p, p->locations, name, strlen(name) + 1, &is_new) + 1);
	if (is_new)
		write_location(p, &l, &line, 1);
	return l.id;
}
