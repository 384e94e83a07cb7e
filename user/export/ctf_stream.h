/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One packet of a memtrace stream, and what the stream remembers from one to the next.
 *
 * In:   events, with room made for them by ctf_writer.c.
 * Out:  the bytes of a packet.
 */
#ifndef HEAPSONDE_CTF_STREAM_H
#define HEAPSONDE_CTF_STREAM_H

#include "user/export/ctf_codec.h"
#include "user/export/ctf_writer.h"

enum ctf_event {
	CTF_EV_INFO = 0,
	CTF_EV_LOCATION = 1,
	CTF_EV_ALLOC = 2,
	CTF_EV_PROMOTE = 3,
	CTF_EV_COLLECT = 4,
	CTF_EV_SHORT_ALLOC = 100, /* + the size, 1 to 16 words */
};

struct ctf_stream {
	uint16_t domain;
	uint64_t next_id;        /* of the next block */
	uint64_t end_id;         /* up to here, exclusive, it may number */
	struct ctf_codec *codec; /* NULL: forgotten, as there are too many streams */
	bool had_codec;
};

/* What takes much memory, in the streams used last. */
struct ctf_codec {
	struct ctf_stream *stream;
	uint64_t used; /* when it was used last, in the writer's calls */
	struct ctf_names names;
	struct ctf_frames frames;
	uint64_t *defined;     /* a bit for each code that has had its location event */
	uint32_t room_defined; /* in words of 64 bits */
	/* The packet under way: */
	bool is_open;
	uint64_t begin_us, end_us;
	uint64_t begin_id;
	struct ctf_bytes bytes;
};

/* Errors: -ENOMEM. */
int ctf_codec__new(struct ctf_codec **out);

/* NULL is fine. */
void ctf_codec__free(struct ctf_codec *c);

/* Take the codec for another stream; it must have no packet open. */
void ctf_codec__assign(struct ctf_codec *c, struct ctf_stream *stream);

/* Begin a packet, of version 2 or 3, and finish it: then bytes are to be written. */
void ctf_codec__open(struct ctf_codec *c, int version, uint64_t pid, uint64_t time_us);
void ctf_codec__close(struct ctf_codec *c, int version);

/* The 4 bytes before each event. */
#define CTF_EVENT_BYTES 4
void ctf_codec__put_event(struct ctf_codec *c, unsigned int event, uint64_t time_us);

/* Has code been defined? Errors: -ENOMEM. */
int ctf_codec__is_defined(struct ctf_codec *c, uint32_t code);
void ctf_codec__set_defined(struct ctf_codec *c, uint32_t code);

/* The most that an alloc event takes that puts n_frames. */
#define CTF_ALLOC_BYTES(n_frames)                                                                  \
	(CTF_EVENT_BYTES + 3 * CTF_VINT_BYTES + 3 + (size_t)(n_frames) * CTF_FRAME_BYTES)

/* The next block of the stream; its locations are defined. */
void ctf_codec__put_alloc(struct ctf_codec *c, uint64_t time_us, const struct ctf_alloc *a);

#endif /* HEAPSONDE_CTF_STREAM_H */
