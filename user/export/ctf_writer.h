/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of a memtrace file.
 *
 * In:   events in the order of time, each with the stream that it belongs to.
 * Out:  the file.
 *
 * Version 2 has one stream for all domains, and blocks are numbered from 0 without gaps.
 * Version 3 has a stream for each domain, and each takes its numbers by the ten thousand.
 */
#ifndef HEAPSONDE_CTF_WRITER_H
#define HEAPSONDE_CTF_WRITER_H

#include <stdint.h>
#include <stdio.h>

#include "user/export/ctf_stacks.h"

/* What the first packet says. Strings may not be NULL. */
struct ctf_info {
	double rate;
	uint64_t pid;
	uint64_t start_us; /* since 1970 */
	const char *executable;
	const char *host;
	const char *context;
};

enum ctf_source { CTF_MINOR = 0, CTF_MAJOR = 1, CTF_EXTERNAL = 2 };

struct ctf_alloc {
	uint64_t size_words; /* <= CTF_INT_MAX */
	uint64_t n_samples;  /* 1 to CTF_INT_MAX */
	enum ctf_source source;
	const struct ctf_stack *stack;
};

struct ctf_writer;

/* version: 2 or 3. f and stacks are borrowed. Errors: -ENOMEM. */
int ctf_writer__new(struct ctf_writer **out, FILE *f, const struct ctf_stacks *stacks, int version);

/* NULL is fine. Writes nothing. */
void ctf_writer__free(struct ctf_writer *w);

/*
 * All that follows returns 0 or a negative errno: -ENOMEM, those of write(2). After an
 * error the file is cut back to its last whole packet, if it is a regular one, and only
 * ctf_writer__free may follow.
 *
 * The first packet, which must come first.
 */
int ctf_writer__begin(struct ctf_writer *w, const struct ctf_info *info);

/* The stream of a domain's blocks. */
uint16_t ctf_writer__stream(const struct ctf_writer *w, uint32_t domain);

/*
 * A block was allocated. time_us must not fall from one call of these three to the next,
 * nor be below start_us. *id: its number.
 */
int ctf_writer__alloc(struct ctf_writer *w, uint16_t stream, uint64_t time_us,
		      const struct ctf_alloc *alloc, uint64_t *id);

/* What became of it; in the stream in which it was allocated. */
int ctf_writer__promote(struct ctf_writer *w, uint16_t stream, uint64_t time_us, uint64_t id);
int ctf_writer__collect(struct ctf_writer *w, uint16_t stream, uint64_t time_us, uint64_t id);

/* Write what has been put so far. */
int ctf_writer__flush(struct ctf_writer *w);

#endif /* HEAPSONDE_CTF_WRITER_H */
