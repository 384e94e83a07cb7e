/* SPDX-License-Identifier: BSD-2-Clause */
/* See capture_chunk.h. */
#include "user/collect/capture_chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "user/sinks/raw_format.h"

/* Inlined functions in one frame: no symbolizer gives more. */
#define LOCATIONS_MAX 64

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

static int on_frame(const struct capture_reader *r, struct cursor c)
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
	if (!err && r->symbolizer)
		err = symbolizer__learn(r->symbolizer, raw.slot, locations, raw.n_locations);
	if (err == -EINVAL)
		err = -EBADMSG;
	for (uint32_t i = 0; texts && i < 2 * raw.n_locations; i++)
		free(texts[i]);
	free(texts);
	free(locations);
	return err;
}

static int on_json(const struct capture_reader *r, struct cursor c)
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

int capture_chunk__take(const struct capture_reader *r, uint32_t kind, const void *payload,
			size_t n_bytes)
{
	const struct cursor c = { payload, n_bytes };
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
