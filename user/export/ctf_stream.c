/* SPDX-License-Identifier: BSD-2-Clause */
/* One packet of a memtrace stream; see ctf_stream.h. */
#include "user/export/ctf_stream.h"

#include <errno.h>
#include <stdlib.h>

#define MAGIC 0xc1fc1fc1u
#define TIME_BITS 25

/* Where fields of the header stand that are known at the end only. */
#define AT_BITS 4
#define AT_TIME_BEGIN 8
#define AT_TIME_END 16

int ctf_codec__new(struct ctf_codec **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void ctf_codec__free(struct ctf_codec *c)
{
	if (!c)
		return;
	free(c->defined);
	free(c);
}

void ctf_codec__assign(struct ctf_codec *c, struct ctf_stream *stream)
{
	if (c->stream)
		c->stream->codec = NULL;
	c->stream = stream;
	memset(&c->names, 0, sizeof(c->names));
	if (stream->had_codec)
		ctf_frames__forget(&c->frames);
	else
		ctf_frames__init(&c->frames);
	if (c->defined)
		memset(c->defined, 0, c->room_defined * sizeof(*c->defined));
	stream->codec = c;
	stream->had_codec = true;
}

static void set_64(struct ctf_bytes *b, size_t at, uint64_t v)
{
	v = htole64(v);
	memcpy(b->at + at, &v, sizeof(v));
}

void ctf_codec__open(struct ctf_codec *c, int version, uint64_t pid, uint64_t time_us)
{
	struct ctf_bytes *b = &c->bytes;

	c->is_open = true;
	c->begin_us = c->end_us = time_us;
	c->begin_id = c->stream->next_id;
	b->n = 0;
	ctf_put_32(b, MAGIC);
	ctf_put_32(b, 0);
	ctf_put_64(b, 0);
	ctf_put_64(b, 0);
	ctf_put_32(b, 0); /* flush duration */
	ctf_put_16(b, (uint16_t)version);
	ctf_put_64(b, pid);
	if (version >= 3)
		ctf_put_16(b, c->stream->domain);
	ctf_frames__put_verifier(&c->frames, b);
	ctf_put_64(b, c->begin_id);
	ctf_put_64(b, 0);
}

void ctf_codec__close(struct ctf_codec *c, int version)
{
	struct ctf_bytes *b = &c->bytes;
	uint32_t bits = htole32((uint32_t)b->n * 8);

	memcpy(b->at + AT_BITS, &bits, sizeof(bits));
	set_64(b, AT_TIME_BEGIN, c->begin_us);
	set_64(b, AT_TIME_END, c->end_us);
	set_64(b, version >= 3 ? 60 : 58, c->stream->next_id);
	c->is_open = false;
}

void ctf_codec__put_event(struct ctf_codec *c, unsigned int event, uint64_t time_us)
{
	uint32_t low = (uint32_t)time_us & ((UINT32_C(1) << TIME_BITS) - 1);

	c->end_us = time_us;
	ctf_put_32(&c->bytes, event << TIME_BITS | low);
}

int ctf_codec__is_defined(struct ctf_codec *c, uint32_t code)
{
	uint32_t word = code / 64, room = c->room_defined ? c->room_defined : 64;
	uint64_t *defined;

	if (word >= c->room_defined) {
		while (room <= word)
			room *= 2;
		defined = reallocarray(c->defined, room, sizeof(*defined));
		if (!defined)
			return -ENOMEM;
		memset(defined + c->room_defined, 0, (room - c->room_defined) * sizeof(*defined));
		c->defined = defined;
		c->room_defined = room;
	}
	return c->defined[word] >> code % 64 & 1;
}

void ctf_codec__set_defined(struct ctf_codec *c, uint32_t code)
{
	c->defined[code / 64] |= UINT64_C(1) << code % 64;
}

void ctf_codec__put_alloc(struct ctf_codec *c, uint64_t time_us, const struct ctf_alloc *a)
{
	uint32_t common = ctf_frames__common(&c->frames, a->stack), n_codewords;
	struct ctf_bytes *b = &c->bytes;
	/* The short form counts codewords in a byte, and there are no more than frames. */
	bool is_short = a->source == CTF_MINOR && a->n_samples == 1 && a->size_words >= 1 &&
			a->size_words <= 16 && a->stack->n - common <= UINT8_MAX;
	size_t at_count;

	if (is_short) {
		ctf_codec__put_event(c, CTF_EV_SHORT_ALLOC + (unsigned int)a->size_words, time_us);
	} else {
		ctf_codec__put_event(c, CTF_EV_ALLOC, time_us);
		ctf_put_vint(b, a->size_words);
		ctf_put_vint(b, a->n_samples);
		ctf_put_8(b, (uint8_t)a->source);
	}
	ctf_put_vint(b, common);
	at_count = b->n;
	b->n += is_short ? 1 : 2;
	n_codewords = ctf_frames__put(&c->frames, b, a->stack, common);
	b->at[at_count] = (uint8_t)n_codewords;
	if (!is_short)
		b->at[at_count + 1] = (uint8_t)(n_codewords >> 8);
	c->stream->next_id++;
}
