/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of a memtrace file; see ctf_writer.h. */
#include "user/export/ctf_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/export/ctf_stream.h"

/* A packet may last 30 s, which is nearly what 25 bits of µs can hold. */
#define PACKET_MAX_US 30000000u

/* So many numbers of blocks a stream of version 3 takes at a time. */
#define IDS_AT_A_TIME 10000u

/* The header has 16 bits for a domain; all from the last one on share a stream. */
#define STREAMS 65536u

/* So many streams are remembered, with 220 KiB each; the others begin anew. */
#define CODECS 256u

/* Room that the first packet has for each of its texts. */
#define TEXT_MAX_BYTES 4096u

struct ctf_writer {
	FILE *f;
	off_t begin, n_bytes; /* where the file began, and how much is whole */
	const struct ctf_stacks *stacks;
	int version;
	uint64_t pid;
	uint64_t next_id; /* that no stream has taken */
	uint64_t calls;
	struct ctf_stream **streams; /* STREAMS; NULL: not met */
	struct ctf_codec *codecs[CODECS];
	unsigned int n_codecs;
	struct ctf_codec *open[CODECS]; /* with packets under way, in the order of their begin */
	unsigned int n_open;
};

int ctf_writer__new(struct ctf_writer **out, FILE *f, const struct ctf_stacks *stacks, int version)
{
	struct ctf_writer *w = calloc(1, sizeof(*w));

	if (w)
		w->streams = calloc(STREAMS, sizeof(*w->streams));
	if (!w || !w->streams) {
		free(w);
		return -ENOMEM;
	}
	w->f = f;
	w->begin = lseek(fileno(f), 0, SEEK_CUR);
	w->stacks = stacks;
	w->version = version;
	/* Packets are written whole, so there is nothing that stdio could gather, and it is
	 * known how far the file is good. */
	setvbuf(f, NULL, _IONBF, 0);
	*out = w;
	return 0;
}

void ctf_writer__free(struct ctf_writer *w)
{
	if (!w)
		return;
	for (unsigned int i = 0; i < w->n_codecs; i++)
		ctf_codec__free(w->codecs[i]);
	for (unsigned int i = 0; i < STREAMS; i++)
		free(w->streams[i]);
	free(w->streams);
	free(w);
}

/* ---- writing ---- */

static int write_packet(struct ctf_writer *w, struct ctf_codec *c)
{
	struct stat st;
	int ret;

	ctf_codec__close(c, w->version);
	errno = 0;
	if (fwrite(c->bytes.at, c->bytes.n, 1, w->f) == 1) {
		w->n_bytes += (off_t)c->bytes.n;
		return 0;
	}
	ret = errno ? -errno : -EIO;
	if (w->begin >= 0 && !fstat(fileno(w->f), &st) && S_ISREG(st.st_mode) &&
	    ftruncate(fileno(w->f), w->begin + w->n_bytes))
		errno = 0; /* then it ends within a packet */
	return ret;
}

/*
 * All at once: if each stream wrote its packet when that was full, events of a domain that
 * does little would come in the file long after later ones of the others.
 */
int ctf_writer__flush(struct ctf_writer *w)
{
	int ret = 0;

	for (unsigned int i = 0; i < w->n_open && !ret; i++)
		ret = write_packet(w, w->open[i]);
	w->n_open = 0;
	return ret;
}

/* ---- streams ---- */

uint16_t ctf_writer__stream(const struct ctf_writer *w, uint32_t domain)
{
	if (w->version < 3)
		return 0;
	return domain < STREAMS ? (uint16_t)domain : STREAMS - 1;
}

static int find_stream(struct ctf_writer *w, uint16_t number, struct ctf_stream **out)
{
	struct ctf_stream *s = w->streams[number];

	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		s->domain = number;
		w->streams[number] = s;
		if (w->version < 3)
			s->end_id = UINT64_MAX;
	}
	*out = s;
	return 0;
}

/* A codec for a stream that has none: a new one, or that of the stream used longest ago. */
static int give_codec(struct ctf_writer *w, struct ctf_stream *s)
{
	struct ctf_codec *oldest = w->codecs[0];
	int ret;

	if (w->n_codecs < CODECS) {
		ret = ctf_codec__new(&oldest);
		if (ret)
			return ret;
		w->codecs[w->n_codecs++] = oldest;
	} else {
		for (unsigned int i = 1; i < CODECS; i++) {
			if (w->codecs[i]->used < oldest->used)
				oldest = w->codecs[i];
		}
		ret = ctf_writer__flush(w);
		if (ret)
			return ret;
	}
	ctf_codec__assign(oldest, s);
	return 0;
}

/*
 * Have a packet of the stream in which there is room for so many bytes at this time, and a
 * number for another block.
 */
static int make_room(struct ctf_writer *w, struct ctf_stream *s, uint64_t time_us, size_t n_bytes)
{
	struct ctf_codec *c;
	int ret = s->codec ? 0 : give_codec(w, s);

	if (ret)
		return ret;
	c = s->codec;
	c->used = ++w->calls;
	if (c->is_open && (ctf_bytes__room(&c->bytes) < n_bytes || s->next_id == s->end_id ||
			   time_us - c->begin_us > PACKET_MAX_US))
		ret = ctf_writer__flush(w);
	if (ret || c->is_open)
		return ret;
	if (s->next_id == s->end_id) {
		s->next_id = w->next_id;
		s->end_id = w->next_id += IDS_AT_A_TIME;
	}
	ctf_codec__open(c, w->version, w->pid, time_us);
	w->open[w->n_open++] = c;
	return 0;
}

/* ---- events ---- */

static void put_text(struct ctf_bytes *b, const char *text)
{
	ctf_put_text(b, text, ctf_text_bytes(text, TEXT_MAX_BYTES));
}

int ctf_writer__begin(struct ctf_writer *w, const struct ctf_info *info)
{
	struct ctf_stream stream = { 0 }; /* this packet belongs to none */
	struct ctf_codec *c;
	int ret = ctf_codec__new(&c);

	if (ret)
		return ret;
	w->pid = info->pid;
	ctf_codec__assign(c, &stream);
	c->frames.is_partial = true;
	ctf_codec__open(c, w->version, info->pid, info->start_us);
	ctf_codec__put_event(c, CTF_EV_INFO, info->start_us);
	ctf_put_double(&c->bytes, info->rate);
	ctf_put_8(&c->bytes, 64); /* bits of a word */
	put_text(&c->bytes, info->executable);
	put_text(&c->bytes, info->host);
	put_text(&c->bytes, ""); /* the runtime's parameters: captures have none */
	ctf_put_64(&c->bytes, info->pid);
	put_text(&c->bytes, info->context);
	ret = write_packet(w, c);
	ctf_codec__free(c);
	return ret;
}

/* Location events for those frames of the stack that have none yet in this stream. */
static int define(struct ctf_writer *w, struct ctf_stream *s, uint64_t time_us,
		  const struct ctf_stack *stack)
{
	const struct hs_location *locations;
	size_t n;
	int ret;

	/* The frames shared with the stack before are defined. */
	for (uint32_t i = ctf_frames__common(&s->codec->frames, stack); i < stack->n; i++) {
		ret = ctf_codec__is_defined(s->codec, stack->codes[i]);
		if (ret < 0)
			return ret;
		if (ret)
			continue;
		ret = make_room(w, s, time_us, CTF_EVENT_BYTES + CTF_LOCATION_BYTES);
		if (ret)
			return ret;
		n = ctf_stacks__locations(w->stacks, stack->codes[i], &locations);
		ctf_codec__put_event(s->codec, CTF_EV_LOCATION, time_us);
		ctf_names__put(&s->codec->names, &s->codec->bytes, stack->codes[i], locations, n);
		ctf_codec__set_defined(s->codec, stack->codes[i]);
	}
	return 0;
}

int ctf_writer__alloc(struct ctf_writer *w, uint16_t stream, uint64_t time_us,
		      const struct ctf_alloc *alloc, uint64_t *id)
{
	struct ctf_stream *s;
	int ret = find_stream(w, stream, &s);

	if (!ret)
		ret = make_room(w, s, time_us, 0);
	if (!ret)
		ret = define(w, s, time_us, alloc->stack);
	if (!ret)
		ret = make_room(
			w, s, time_us,
			CTF_ALLOC_BYTES(alloc->stack->n -
					ctf_frames__common(&s->codec->frames, alloc->stack)));
	if (ret)
		return ret;
	*id = s->next_id;
	ctf_codec__put_alloc(s->codec, time_us, alloc);
	return 0;
}

static int put_block(struct ctf_writer *w, uint16_t stream, uint64_t time_us, enum ctf_event event,
		     uint64_t id)
{
	struct ctf_stream *s;
	int ret = find_stream(w, stream, &s);

	if (!ret)
		ret = make_room(w, s, time_us, CTF_EVENT_BYTES + CTF_VINT_BYTES);
	if (ret)
		return ret;
	ctf_codec__put_event(s->codec, event, time_us);
	ctf_put_vint(&s->codec->bytes, s->next_id - 1 - id);
	return 0;
}

int ctf_writer__promote(struct ctf_writer *w, uint16_t stream, uint64_t time_us, uint64_t id)
{
	return put_block(w, stream, time_us, CTF_EV_PROMOTE, id);
}

int ctf_writer__collect(struct ctf_writer *w, uint16_t stream, uint64_t time_us, uint64_t id)
{
	return put_block(w, stream, time_us, CTF_EV_COLLECT, id);
}
