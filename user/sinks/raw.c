/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures: everything needed to make any other output later.
 *
 * In:   what every sink gets (sink.h).
 * Out:  a file in the layout of raw_format.h, plain or compressed (byte_writer.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "user/sinks/byte_writer.h"
#include "user/sinks/json.h"
#include "user/sinks/raw_format.h"
#include "user/sinks/sink.h"

/* A frame whose names are in the file. Names that could not be found at first may
 * be found later: then they are written again. */
struct known_slot {
	uint64_t slot;                       /* key */
	const struct hs_location *locations; /* as written */
	UT_hash_handle hh;
};

/* Beyond these the names of a frame are written with each new stack that has it: a target can
 * make up frames without end. */
#define KNOWN_MAX (1u << 20)

struct raw_sink {
	struct sink base;
	struct byte_writer *writer;
	struct known_slot *known;
	bool has_summary; /* nothing will come after it */
};

static int put(struct raw_sink *s, const void *bytes, size_t n)
{
	return byte_writer__put(s->writer, bytes, n);
}

static int put_chunk_header(struct raw_sink *s, enum raw_kind kind, size_t size)
{
	struct raw_chunk chunk = { .kind = kind, .size_bytes = (uint32_t)size };

	return size > RAW_CHUNK_MAX_BYTES ? -E2BIG : put(s, &chunk, sizeof(chunk));
}

static int put_padding(struct raw_sink *s, size_t size)
{
	static const char zeros[8];

	return put(s, zeros, -size & 7);
}

static int put_chunk(struct raw_sink *s, enum raw_kind kind, const void *bytes, size_t size)
{
	int err = put_chunk_header(s, kind, size);

	if (!err)
		err = put(s, bytes, size);
	return err ? err : put_padding(s, size);
}

static size_t text_bytes(const char *text)
{
	return text ? strlen(text) : 0;
}

static int put_location(struct raw_sink *s, const struct hs_location *l)
{
	struct raw_location raw = {
		.line = l->line,
		.end_line = l->end_line,
		.start_char = l->start_char,
		.end_char = l->end_char,
		.end_offset = l->end_offset,
		.flags = (l->is_inlined ? RAW_LOCATION_INLINED : 0) |
			 (l->function ? RAW_LOCATION_FUNCTION : 0) |
			 (l->file ? RAW_LOCATION_FILE : 0),
		.function_bytes = (uint32_t)text_bytes(l->function),
		.file_bytes = (uint32_t)text_bytes(l->file),
	};
	int err = put(s, &raw, sizeof(raw));

	if (!err)
		err = put(s, l->function, raw.function_bytes);
	return err ? err : put(s, l->file, raw.file_bytes);
}

static int put_frame(struct raw_sink *s, const struct stack_frame *f)
{
	struct raw_frame raw = { .slot = f->slot, .n_locations = (uint32_t)f->n_locations };
	size_t size = sizeof(raw);
	int err;

	for (size_t i = 0; i < f->n_locations; i++)
		size += sizeof(struct raw_location) + text_bytes(f->locations[i].function) +
			text_bytes(f->locations[i].file);
	err = put_chunk_header(s, RAW_FRAME, size);
	if (!err)
		err = put(s, &raw, sizeof(raw));
	for (size_t i = 0; i < f->n_locations && !err; i++)
		err = put_location(s, &f->locations[i]);
	return err ? err : put_padding(s, size);
}

static int raw_sink__json(struct sink *base, json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));
	char *text = json_dumps(object, JSON_LINE_FLAGS);
	struct raw_sink *s = (struct raw_sink *)base;
	int err;

	if (!text)
		return -ENOMEM;
	err = put_chunk(s, RAW_JSON, text, strlen(text));
	s->has_summary |= type && !strcmp(type, "summary");
	free(text);
	return err;
}

static int raw_sink__record(struct sink *base, const struct hs_event *event)
{
	return put_chunk((struct raw_sink *)base, RAW_RECORD, event->h, event->h->size_bytes);
}

static int known_slot__add(struct raw_sink *s, uint64_t slot, struct known_slot **out)
{
	struct known_slot *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->slot = slot;
	HASH_ADD(hh, s->known, slot, sizeof(k->slot), k);
	if (!k->hh.tbl) {
		free(k);
		return -ENOMEM;
	}
	*out = k;
	return 0;
}

static int raw_sink__stack(struct sink *base, const struct hs_event *event,
			   const struct stack *stack)
{
	struct raw_sink *s = (struct raw_sink *)base;
	struct known_slot *k;
	int err;

	for (uint32_t i = 0; i < stack->depth; i++) {
		HASH_FIND(hh, s->known, &stack->frames[i].slot, sizeof(k->slot), k);
		if (k && k->locations == stack->frames[i].locations)
			continue;
		err = put_frame(s, &stack->frames[i]);
		if (!err && !k && HASH_COUNT(s->known) < KNOWN_MAX)
			err = known_slot__add(s, stack->frames[i].slot, &k);
		if (err)
			return err;
		if (k)
			k->locations = stack->frames[i].locations;
	}
	return raw_sink__record(base, event);
}

static int raw_sink__stack_again(struct sink *base, const struct hs_event *event,
				 const struct stack *stack)
{
	(void)stack;
	return raw_sink__record(base, event);
}

static int raw_sink__event(struct sink *base, const struct hs_event *event,
			   const struct stack *stack)
{
	(void)stack;
	return raw_sink__record(base, event);
}

static int raw_sink__flush(struct sink *base)
{
	struct raw_sink *s = (struct raw_sink *)base;

	return s->has_summary ? byte_writer__end(s->writer) : byte_writer__flush(s->writer);
}

static void raw_sink__free(struct sink *base)
{
	struct raw_sink *s = (struct raw_sink *)base;
	struct known_slot *k, *next;

	HASH_ITER (hh, s->known, k, next) {
		HASH_DEL(s->known, k);
		free(k);
	}
	byte_writer__free(s->writer);
	free(s);
}

static const struct sink_ops raw_ops = {
	.json = raw_sink__json,
	.stack = raw_sink__stack,
	.stack_again = raw_sink__stack_again,
	.event = raw_sink__event,
	.flush = raw_sink__flush,
	.free = raw_sink__free,
};

static int new_file(struct sink **out, FILE *f, bool is_compressed)
{
	struct raw_header header = { .magic = RAW_MAGIC,
				     .version = RAW_VERSION,
				     .records_version = HS_RECORDS_VERSION };
	struct raw_sink *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		fclose(f);
		return -ENOMEM;
	}
	s->base.ops = &raw_ops;
	err = byte_writer__new(&s->writer, f, is_compressed);
	if (!err)
		err = put(s, &header, sizeof(header));
	if (err) {
		raw_sink__free(&s->base);
		return err;
	}
	*out = &s->base;
	return 0;
}

int raw_sink__new_file(struct sink **out, FILE *f)
{
	return new_file(out, f, false);
}

int hsd_sink__new_file(struct sink **out, FILE *f)
{
	return new_file(out, f, true);
}
