/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of read-ctf that reads numbers, strings, locations and call stacks.
 *
 * In:   `in`, the bytes of a packet that are still to be read.
 * Out:  what they say; or the end, with a message, if they are not what they must be.
 */
#ifndef READ_CTF_BYTES_H
#define READ_CTF_BYTES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* asprintf */
#endif
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE 16384
#define NAMES 31
#define FRAMES_MAX 4096
#define NEVER UINT64_MAX

/* Bytes from at to end. */
struct bytes {
	const uint8_t *all, *at, *end;
};

struct header {
	uint64_t begin, end, pid, verify_value, id_begin, id_end;
	unsigned int version, domain, verify_ix, verify_pred;
};

struct names {
	unsigned int n;
	char *text[NAMES];
	struct names *below[NAMES]; /* of files: their functions */
};

struct stream {
	struct names files;
	uint64_t loc[CACHE];
	uint16_t pred[CACHE];
	uint64_t last[FRAMES_MAX]; /* outermost first */
	uint64_t n_last;
	uint64_t time;
};

struct location {
	uint64_t code;
	char *text; /* innermost first; NULL: free */
};

static struct location *locations; /* open hashing */
static size_t n_locations, room_locations;
static struct bytes in;

static void must(bool is_so, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void must(bool is_so, const char *fmt, ...)
{
	va_list args;

	if (is_so)
		return;
	fprintf(stderr, "read-ctf: near byte %td: ", in.at - in.all);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void *need(void *p)
{
	must(p, "out of memory");
	return p;
}

/* ---- numbers and strings ---- */

static uint64_t get(unsigned int n_bytes)
{
	uint64_t v = 0;

	must((size_t)(in.end - in.at) >= n_bytes, "the packet ends within an event");
	for (unsigned int i = 0; i < n_bytes; i++)
		v |= (uint64_t)in.at[i] << 8 * i;
	in.at += n_bytes;
	return v;
}

static uint64_t get_vint(void)
{
	uint64_t v = get(1);

	if (v == 253)
		v = get(2);
	else if (v == 254)
		v = (uint64_t)(int64_t)(int32_t)get(4);
	else if (v == 255)
		v = get(8);
	must(v <= INT64_MAX / 2, "a number of 63 bits or more, or a negative one");
	return v;
}

static char *get_string(void)
{
	const uint8_t *end = memchr(in.at, 0, (size_t)(in.end - in.at));
	const char *text = (const char *)in.at;

	must(end, "a string without an end");
	in.at = end + 1;
	return need(strdup(text));
}

/* ---- locations ---- */

static struct location *location_at(uint64_t code)
{
	size_t i;

	if (2 * n_locations >= room_locations) {
		struct location *old = locations;
		size_t room = room_locations;

		room_locations = room ? 4 * room : 1024;
		locations = need(calloc(room_locations, sizeof(*locations)));
		for (i = 0; i < room; i++)
			if (old[i].text)
				*location_at(old[i].code) = old[i];
		free(old);
	}
	i = code * UINT64_C(0x9e3779b97f4a7c15) % room_locations;
	while (locations[i].text && locations[i].code != code)
		i = (i + 1) % room_locations;
	return &locations[i];
}

/* To the front of the table: entry `index`, or a new string. */
static struct names *use(struct names *t, unsigned int index, const char **text)
{
	struct names *below = NULL;
	char *name;

	must(index == NAMES || index < t->n, "name %u of %u", index, t->n);
	if (index < NAMES) {
		name = t->text[index];
		below = t->below[index];
	} else {
		name = get_string();
		below = need(calloc(1, sizeof(*below)));
		if (t->n < NAMES)
			t->n++;
		index = t->n - 1;
	}
	memmove(t->text + 1, t->text, index * sizeof(t->text[0]));
	memmove(t->below + 1, t->below, index * sizeof(t->below[0]));
	t->text[0] = name;
	t->below[0] = below;
	*text = name;
	return below;
}

static void read_location(struct stream *s)
{
	uint64_t code = get(8), n = get(1), word;
	const char *file, *function;
	struct location *l;
	char *text = need(strdup("")), *longer;
	struct names *functions;

	must(code <= INT64_MAX, "a location code of 64 bits");
	must(n, "a location without a position");
	while (n--) {
		word = get(4);
		word |= get(2) << 32;
		functions = use(&s->files, word >> 38 & 31, &file);
		use(functions, word >> 43 & 31, &function);
		/* Positions come outermost first. */
		must(asprintf(&longer, "%s@%s:%u;%s", function, file, (unsigned)(word & 0xfffff),
			      text) > 0,
		     "out of memory");
		free(text);
		text = longer;
	}
	l = location_at(code);
	if (l->text) {
		must(!strcmp(l->text, text), "location %" PRIu64 " means something else now", code);
		free(text);
		return;
	}
	*l = (struct location){ code, text };
	n_locations++;
}

/* ---- call stacks ---- */

static void push(struct stream *s, uint64_t code)
{
	must(code, "a frame from a place where none was put");
	must(location_at(code)->text, "location %" PRIu64 " is not defined", code);
	must(s->n_last < FRAMES_MAX, "more than %d frames", FRAMES_MAX);
	s->last[s->n_last++] = code;
}

static void read_codeword(struct stream *s, unsigned int *p)
{
	unsigned int word = (unsigned int)get(2), bucket = word >> 2, n = word & 3;

	s->pred[*p] = (uint16_t)bucket;
	*p = bucket;
	if (n == 3) {
		s->loc[bucket] = get(8);
		n = 0;
	} else if (n == 2) {
		n = (unsigned int)get(1);
	}
	push(s, s->loc[bucket]);
	for (; n; n--) {
		*p = s->pred[*p];
		push(s, s->loc[*p]);
	}
}

/* The frames as text; the caller's. */
static char *read_stack(struct stream *s, bool is_short)
{
	uint64_t common = get_vint(), n = get(is_short ? 1 : 2);
	unsigned int p = 0;
	char *text;
	size_t size;
	FILE *f;

	must(common <= s->n_last, "%" PRIu64 " frames in common with %" PRIu64, common, s->n_last);
	s->n_last = common;
	while (n--)
		read_codeword(s, &p);
	must(s->n_last, "a stack without frames");
	f = need(open_memstream(&text, &size));
	for (uint64_t i = s->n_last; i--;)
		fputs(location_at(s->last[i])->text, f);
	must(!fclose(f), "out of memory");
	return text;
}

#endif /* READ_CTF_BYTES_H */
