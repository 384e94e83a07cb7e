/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a memtrace trace, and does not forgive anything.
 *
 *   read-ctf TRACE
 *
 * In:   a trace, version 2 or 3. Written from the format's description, with nothing shared
 *       with what writes traces.
 * Out:  on stdout a line about the trace, then one for each block, with tabs between:
 *
 *           trace VERSION RATE PID START EXECUTABLE CONTEXT
 *           block TIME DOMAIN SIZE SAMPLES SOURCE PROMOTED COLLECTED FRAMES
 *
 *       Times in µs since 1970, "-": that did not happen; FRAMES innermost first, each
 *       function@file:line and ";". On stderr how many packets and events there were. Exit
 *       status 1, with the place and the reason, if the format or anything that readers
 *       rely on is violated: see the calls of `must`.
 */
#include "read-ctf-bytes.h"

struct block {
	uint64_t time, size, n_samples, promoted, collected;
	char *frames; /* NULL: no such block */
	uint8_t source;
	uint16_t domain;
};

static struct stream *streams[65536];
static struct block *blocks;
static size_t room_blocks, end_block; /* one beyond the highest */
static uint64_t n_packets, n_events;

/* ---- blocks ---- */

static void read_alloc(struct stream *s, const struct header *h, unsigned int event, uint64_t id)
{
	bool is_short = event != 2;
	struct block b = { .time = s->time,
			   .size = is_short ? event - 100 : get_vint(),
			   .n_samples = is_short ? 1 : get_vint(),
			   .source = is_short ? 0 : (uint8_t)get(1),
			   .promoted = NEVER,
			   .collected = NEVER,
			   .domain = (uint16_t)h->domain };

	must(b.n_samples, "a block without samples");
	must(b.source <= 2, "source %u", b.source);
	must(id < 1u << 28, "block %" PRIu64, id);
	b.frames = read_stack(s, is_short);
	if (id >= room_blocks) {
		size_t room = 2 * id + 1024;

		blocks = need(reallocarray(blocks, room, sizeof(b)));
		memset(blocks + room_blocks, 0, (room - room_blocks) * sizeof(b));
		room_blocks = room;
	}
	must(!blocks[id].frames, "block %" PRIu64 " again", id);
	blocks[id] = b;
	end_block = id >= end_block ? id + 1 : end_block;
}

static void read_fate(struct stream *s, bool is_promotion, uint64_t next_id)
{
	uint64_t delta = get_vint();
	struct block *b;

	must(delta < next_id && next_id - 1 - delta < end_block, "no block %" PRIu64 " before this",
	     delta);
	b = &blocks[next_id - 1 - delta];
	must(b->frames, "no block %" PRIu64, next_id - 1 - delta);
	must(b->collected == NEVER, "block %" PRIu64 " is dead", next_id - 1 - delta);
	must(s->time >= b->time, "block %" PRIu64 " is younger", next_id - 1 - delta);
	if (!is_promotion) {
		b->collected = s->time;
		return;
	}
	must(!b->source, "block %" PRIu64 " is not in the minor heap", next_id - 1 - delta);
	must(b->promoted == NEVER, "block %" PRIu64 " is promoted again", next_id - 1 - delta);
	b->promoted = s->time;
}

/* ---- packets ---- */

/* The packet's header; in.end becomes the packet's. */
static void read_header(struct header *h)
{
	const uint8_t *begin = in.at;
	uint64_t bits;

	must(get(4) == 0xc1fc1fc1, "not a packet");
	bits = get(4);
	h->begin = get(8);
	h->end = get(8);
	must(get(4) == 0, "a flush duration");
	h->version = (unsigned int)get(2);
	must(h->version == 2 || h->version == 3, "version %u", h->version);
	h->pid = get(8);
	h->domain = h->version == 3 ? (unsigned int)get(2) : 0;
	h->verify_ix = (unsigned int)get(2);
	h->verify_pred = (unsigned int)get(2);
	h->verify_value = get(8);
	h->id_begin = get(8);
	h->id_end = get(8);
	must(bits % 8 == 0 && bits / 8 <= 32768, "a packet of %" PRIu64 " bits", bits);
	must(bits / 8 > (uint64_t)(in.at - begin), "an empty packet");
	must(bits / 8 <= (uint64_t)(in.end - begin), "the file ends within a packet");
	must(h->begin <= h->end && h->end - h->begin <= 30000000, "a packet of %" PRId64 " us",
	     (int64_t)(h->end - h->begin));
	must(h->id_begin <= h->id_end && h->id_end <= INT64_MAX, "ids fall");
	in.end = begin + bits / 8;
	n_packets++;
}

static void verify(const struct stream *s, const struct header *h)
{
	if (h->verify_ix == 0xffff) {
		must(!h->verify_pred && !h->verify_value, "a verifier that is none");
		return;
	}
	must(h->verify_ix < CACHE, "a verifier of place %u", h->verify_ix);
	must(s->pred[h->verify_ix] == h->verify_pred && s->loc[h->verify_ix] == h->verify_value,
	     "place %u is not what the writer thinks", h->verify_ix);
}

static unsigned int read_event_header(struct stream *s, const struct header *h)
{
	uint32_t word = (uint32_t)get(4);
	uint64_t time = (h->begin & ~UINT64_C(0x1ffffff)) | (word & 0x1ffffff);

	if (time < h->begin)
		time += 0x2000000;
	must(time <= h->end, "an event after its packet's end");
	must(time >= s->time, "an event at %" PRIu64 " after one at %" PRIu64, time, s->time);
	s->time = time;
	n_events++;
	return word >> 25;
}

static void read_packet(const struct header *first, uint64_t *next_id)
{
	struct stream *s;
	struct header h;
	uint64_t id;

	read_header(&h);
	must(h.version == first->version && h.pid == first->pid, "another version or process");
	s = streams[h.domain];
	if (!s) {
		s = streams[h.domain] = need(calloc(1, sizeof(*s)));
		s->time = first->begin;
	}
	must(h.begin >= s->time, "packets overlap");
	must(h.version == 3 || h.id_begin == *next_id, "ids have a gap");
	verify(s, &h);
	id = h.id_begin;
	while (in.at < in.end) {
		unsigned int event = read_event_header(s, &h);

		if (event == 1)
			read_location(s);
		else if (event == 2 || (event >= 101 && event <= 116))
			read_alloc(s, &h, event, id++);
		else if (event == 3 || event == 4)
			read_fate(s, event == 3, id);
		else
			must(false, "event %u", event);
	}
	must(id == h.id_end, "%" PRIu64 " blocks, not as many as the header has", id - h.id_begin);
	must(s->time == h.end, "no event at the packet's end");
	*next_id = id;
}

static void read_info(struct header *h)
{
	char *executable, *context;
	struct stream s = { 0 };
	uint64_t bits;
	double rate;

	read_header(h);
	must(!h->id_begin && !h->id_end, "blocks in the first packet");
	must(read_event_header(&s, h) == 0, "the first packet is another one");
	must(h->begin == h->end && s.time == h->begin, "the first packet lasts");
	bits = get(8);
	memcpy(&rate, &bits, sizeof(rate));
	must(rate > 0 && rate <= 1, "rate %g", rate);
	must(get(1) == 64, "words are not of 64 bits");
	executable = get_string();
	free(get_string());
	free(get_string());
	must(get(8) == h->pid, "another process");
	context = get_string();
	must(in.at == in.end, "more in the first packet");
	printf("trace\t%u\t%.17g\t%" PRIu64 "\t%" PRIu64 "\t%s\t%s\n", h->version, rate, h->pid,
	       h->begin, executable, context);
	free(executable);
	free(context);
}

static void print_time(uint64_t time)
{
	if (time == NEVER)
		printf("\t-");
	else
		printf("\t%" PRIu64, time);
}

static void print_block(const struct block *b)
{
	static const char *const sources[] = { "minor", "major", "external" };

	printf("block\t%" PRIu64 "\t%u\t%" PRIu64 "\t%" PRIu64 "\t%s", b->time, b->domain, b->size,
	       b->n_samples, sources[b->source]);
	print_time(b->promoted);
	print_time(b->collected);
	printf("\t%s\n", b->frames);
}

static void load(const char *path)
{
	size_t n = 0, room = 1 << 20, got;
	uint8_t *all = need(malloc(room));
	FILE *f = fopen(path, "re");

	must(f, "cannot open %s", path);
	while ((got = fread(all + n, 1, room - n, f)) > 0) {
		n += got;
		if (n == room)
			all = need(realloc(all, room *= 2));
	}
	must(!ferror(f), "cannot read %s", path);
	fclose(f);
	in = (struct bytes){ all, all, all + n };
}

int main(int argc, char **argv)
{
	struct header first = { 0 };
	uint64_t next_id = 0;
	const uint8_t *end;

	if (argc != 2) {
		fputs("usage: read-ctf TRACE\n", stderr);
		return 2;
	}
	load(argv[1]);
	end = in.end;
	read_info(&first);
	for (in.end = end; in.at < end; in.end = end)
		read_packet(&first, &next_id);
	for (size_t i = 0; i < end_block; i++)
		if (blocks[i].frames)
			print_block(&blocks[i]);
	fprintf(stderr, "%" PRIu64 " packets, %" PRIu64 " events\n", n_packets, n_events);
	if (fflush(stdout) || ferror(stdout)) {
		perror("read-ctf");
		return 1;
	}
	return 0;
}
