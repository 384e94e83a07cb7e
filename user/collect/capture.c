/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading a raw capture; see capture.h. */
#include "user/collect/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/sinks/raw_format.h"

/* More inlined functions in one frame than any symbolizer gives. */
#define LOCATIONS_MAX 256

/* Bytes still to be read of a payload. */
struct cursor {
	const char *at;
	size_t left;
};

static int take(struct cursor *c, void *to, size_t n)
{
	if (n > c->left)
		return -EBADMSG;
	memcpy(to, c->at, n);
	c->at += n;
	c->left -= n;
	return 0;
}

/* A string of n bytes; *to is the caller's (free()). */
static int take_text(struct cursor *c, size_t n, char **to)
{
	if (n > c->left)
		return -EBADMSG;
	*to = strndup(c->at, n);
	c->at += n;
	c->left -= n;
	return *to ? 0 : -ENOMEM;
}

static int take_location(struct cursor *c, struct hs_location *l, char **function, char **file)
{
	struct raw_location raw;
	int err = take(c, &raw, sizeof(raw));

	if (!err)
		err = take_text(c, raw.function_bytes, function);
	if (!err)
		err = take_text(c, raw.file_bytes, file);
	if (err)
		return err;
	l->function = raw.flags & RAW_LOCATION_FUNCTION ? *function : NULL;
	l->file = raw.flags & RAW_LOCATION_FILE ? *file : NULL;
	l->line = raw.line;
	l->start_char = raw.start_char;
	l->end_char = raw.end_char;
	l->end_line = raw.end_line;
	l->end_offset = raw.end_offset;
	l->is_inlined = raw.flags & RAW_LOCATION_INLINED;
	return 0;
}

static int on_frame(struct capture_reader *r, struct cursor c)
{
	struct hs_location *locations;
	struct raw_frame raw;
	char **texts;
	int err = take(&c, &raw, sizeof(raw));

	if (err || raw.n_locations == 0 || raw.n_locations > LOCATIONS_MAX)
		return -EBADMSG;
	locations = calloc(raw.n_locations, sizeof(*locations));
	texts = calloc(2 * raw.n_locations, sizeof(*texts));
	if (!locations || !texts)
		err = -ENOMEM;
	for (uint32_t i = 0; i < raw.n_locations && !err; i++)
		err = take_location(&c, &locations[i], &texts[2 * i], &texts[2 * i + 1]);
	if (!err)
		err = symbolizer__learn(r->symbolizer, raw.slot, locations, raw.n_locations);
	if (err == -EINVAL)
		err = -EBADMSG;
	for (uint32_t i = 0; texts && i < 2 * raw.n_locations; i++)
		free(texts[i]);
	free(texts);
	free(locations);
	return err;
}

static int on_json(struct capture_reader *r, struct cursor c)
{
	json_t *object = json_loadb(c.at, c.left, JSON_REJECT_DUPLICATES, NULL);
	int err;

	if (!json_is_object(object)) {
		json_decref(object);
		return -EBADMSG;
	}
	err = r->json(r->ctx, object);
	json_decref(object);
	return err;
}

static int on_chunk(struct capture_reader *r, enum raw_kind kind, struct cursor c)
{
	struct hs_event event;

	switch (kind) {
	case RAW_JSON:
		return on_json(r, c);
	case RAW_RECORD:
		if (decode__record(c.at, c.left, &event))
			return -EBADMSG;
		return r->event(r->ctx, &event);
	case RAW_FRAME:
		return on_frame(r, c);
	}
	return -EBADMSG;
}

/* Fill n bytes: 1 done, 0 the file ends here or within, -EIO. */
static int fill(FILE *f, void *to, size_t n, bool *is_cut)
{
	size_t got = fread(to, 1, n, f);

	if (got == n)
		return 1;
	if (ferror(f))
		return -EIO;
	*is_cut = *is_cut || got > 0;
	return 0;
}

static int read_header(FILE *f, struct hs_error *err)
{
	struct raw_header h;
	bool is_cut = false;

	if (fill(f, &h, sizeof(h), &is_cut) != 1 || memcmp(h.magic, RAW_MAGIC, sizeof(h.magic)))
		return hs_error__set(err, -EBADMSG,
				     "not a capture (record --format raw makes one)");
	/* Version 1 of the records has one type less than 2. */
	if (h.version != RAW_VERSION || h.records_version < 1 ||
	    h.records_version > HS_RECORDS_VERSION)
		return hs_error__set(err, -EBADMSG,
				     "a capture of version %u/%u, and this heapsonde reads %u/%u",
				     h.version, h.records_version, RAW_VERSION, HS_RECORDS_VERSION);
	return 0;
}

/* Make *payload hold at least n bytes; NULL: no memory. */
static char *room_for(char **payload, size_t *room, size_t n)
{
	if (n > *room) {
		char *grown = realloc(*payload, n);

		if (!grown)
			return NULL;
		*payload = grown;
		*room = n;
	}
	return *payload;
}

/* One chunk: 1 done, 0 the file ends here, or a negative errno. */
static int read_chunk(FILE *f, struct capture_reader *reader, char **payload, size_t *room)
{
	struct raw_chunk chunk;
	size_t padded;
	int ret = fill(f, &chunk, sizeof(chunk), &reader->is_cut);

	if (ret != 1)
		return ret;
	if (chunk.size_bytes == 0 || chunk.size_bytes > RAW_CHUNK_MAX_BYTES)
		return -EBADMSG;
	padded = ((size_t)chunk.size_bytes + 7) & ~(size_t)7;
	/* Records are read as structures: malloc aligns enough. */
	if (!room_for(payload, room, padded))
		return -ENOMEM;
	ret = fill(f, *payload, padded, &reader->is_cut);
	if (ret != 1) {
		reader->is_cut = true;
		return ret;
	}
	ret = on_chunk(reader, chunk.kind, (struct cursor){ *payload, chunk.size_bytes });
	return ret ? ret : 1;
}

int capture__read(FILE *f, struct capture_reader *reader, struct hs_error *err)
{
	char *payload = NULL;
	size_t room = 0;
	int ret = read_header(f, err);

	reader->is_cut = false;
	if (ret)
		return ret;
	do {
		ret = read_chunk(f, reader, &payload, &room);
	} while (ret == 1);
	free(payload);
	if (ret == -EBADMSG)
		return hs_error__set(err, ret, "the capture is damaged at byte %ld", ftell(f));
	if (ret == -EIO)
		return hs_error__set(err, ret, "cannot read the capture");
	if (ret == -ENOMEM)
		return hs_error__set(err, ret, "out of memory");
	return ret;
}
