/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lies in call stacks, and in what a frame of one leads to: frame descriptors, debug
 * information, names; and a memory map that is as long as the kernel allows.
 *
 * In:   how many.
 * Out:  samples fired whose stacks have never been.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/programs/liar.h"

#define PAGE 4096u

/* Where the liar's frame tables lie, and behind them a text that ends nowhere near. */
#define TABLE_BYTES ((size_t)16 << 20)
#define TEXT_BYTES ((size_t)2 << 30)
#define TEXT_PIECE ((size_t)32 << 20)

static struct sonde_sample stack_sample(const uint64_t *frames, uint64_t hash, unsigned int depth)
{
	static uint64_t block[2] = { 1, 1 };

	return (struct sonde_sample){ .block = (uintptr_t)&block[1],
				      .size_words = 1,
				      .n_samples = 1,
				      .stack_hash = hash,
				      .frames = (uintptr_t)frames,
				      .time_ns = now_ns(),
				      .depth = (uint16_t)depth };
}

static void fire_stack(const uint64_t *frames, uint64_t hash, unsigned int depth)
{
	struct sonde_sample s = stack_sample(frames, hash, depth);

	fire_all_tiers(honest_registers(&s, 1, LYING_DOMAIN));
}

/* The last words before memory that is not there, and depths beyond them. */
static void lie_of_depths(unsigned int n)
{
	char *p = mmap(NULL, 2 * (size_t)PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED || munmap(p + PAGE, PAGE))
		die("mmap");
	for (unsigned int i = 0; i < n; i++) {
		unsigned int readable = random_below(64), more = 1 + random_below(900);

		fire_stack((uint64_t *)(p + PAGE) - readable, ((uint64_t)1 << 40) + i,
			   readable + more);
	}
	munmap(p, PAGE);
}

void lie_of_stacks(unsigned int n, const char *kind)
{
	static uint64_t frames[SONDE_STACK_MAX];

	begin_domain(LYING_DOMAIN);
	if (!strcmp(kind, "depth")) {
		lie_of_depths(n);
		return;
	}
	for (unsigned int i = 0; i < n; i++) {
		uint64_t hash = random_u64() | 1;

		if (!i || strcmp(kind, "same-stack"))
			for (unsigned int f = 0; f < SONDE_STACK_MAX; f++)
				frames[f] = random_below(2) ? random_u64() : random_u64() >> 17;
		if (!strcmp(kind, "same-hash"))
			hash = 1234567;
		fire_stack(frames, hash, SONDE_STACK_MAX);
	}
}

/* ---- frame tables ---- */

static int make_file(const char *name, size_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		die("memfd_create");
	return fd;
}

/* Gigabytes of text that cost a few megabytes. */
static void map_text(char *at)
{
	int fd = make_file("text", TEXT_PIECE);
	char *piece = mmap(NULL, TEXT_PIECE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (piece == MAP_FAILED)
		die("mmap");
	memset(piece, '\xc3', TEXT_PIECE); /* not even UTF-8 */
	munmap(piece, TEXT_PIECE);
	for (size_t done = 0; done < TEXT_BYTES; done += TEXT_PIECE)
		if (mmap(at + done, TEXT_PIECE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			die("mmap");
	close(fd);
}

/* Room for tables, the text behind it, and nothing behind that. */
static char *tables(void)
{
	static char *all;

	if (all)
		return all;
	all = mmap(NULL, TABLE_BYTES + TEXT_BYTES + PAGE, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED || mprotect(all, TABLE_BYTES, PROT_READ | PROT_WRITE))
		die("mmap");
	map_text(all + TABLE_BYTES);
	return all;
}

/* A frame descriptor as the registry describes it. */
struct descriptor {
	uint64_t retaddr;
	uint16_t frame_data, num_live;
	uint16_t live[2];
	uint32_t debuginfo; /* from here, if frame_data has bit 0 */
	uint32_t padding;
};

/*
 * One lie at p: a descriptor that leads to nothing, to itself, behind the end of memory, or
 * to an entry that is "inlined" into the next one without end.
 */
static uint64_t lying_descriptor(char *p, unsigned int which)
{
	uint64_t distance = (uint64_t)(tables() + TABLE_BYTES - p);
	struct descriptor *d = (void *)p;
	uint64_t *entry = (uint64_t *)(p + sizeof(*d));

	*d = (struct descriptor){ .retaddr = wild_address(), .frame_data = 1 };
	d->num_live = 2;
	d->debuginfo = (uint32_t)((char *)entry - (char *)&d->debuginfo);
	switch (which % 8) {
	case 0: /* all slots live, allocations without number */
		d->frame_data = 3;
		d->num_live = UINT16_MAX;
		break;
	case 1: /* itself */
		d->debuginfo = (uint32_t)-(int32_t)offsetof(struct descriptor, debuginfo) & ~3u;
		break;
	case 2: /* four gigabytes away */
		d->debuginfo = ~3u;
		break;
	case 3: /* inlined for ever, and each is called by gigabytes of text */
		for (unsigned int i = 0; i < 64; i++)
			entry[i] = 1 | (distance / 4 & 0xffffff) << 2;
		break;
	case 4: /* the long form, in the text */
		for (unsigned int i = 0; i < 64; i++)
			entry[i] = (uint64_t)1 << 63 | (distance / 4 & 0xffffff) << 2 | 1;
		break;
	case 5: /* a frame of C */
		d->frame_data = UINT16_MAX;
		break;
	case 6: /* no debug information, and a return address of the kernel's */
		d->frame_data = 0;
		break;
	default: /* anything */
		for (unsigned int i = 0; i < 64; i++)
			entry[i] = random_u64();
		d->frame_data = (uint16_t)random_u64() | 1;
		d->num_live = (uint16_t)random_u64();
		break;
	}
	return (uintptr_t)p | (random_below(4) ? 0 : 2);
}

void lie_of_tables(unsigned int n)
{
	uint64_t frames[SONDE_STACK_MAX];
	char *all = tables();

	begin_domain(LYING_DOMAIN);
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int f = 0; f < N_ELEMENTS(frames); f++) {
			size_t at = random_below(TABLE_BYTES / 8 - 1024) * (size_t)8;

			/* They overlap, as often as not. */
			frames[f] = random_below(8) ? lying_descriptor(all + at, random_below(8))
						    : wild_address();
		}
		fire_stack(frames, random_u64() | 1, SONDE_STACK_MAX);
	}
}

/* ---- mappings ---- */

/* Pages of one file, each a line of /proc/PID/maps; and executable, for who wants to open it. */
void make_mappings(unsigned int n)
{
	char name[200];
	char *at;
	int fd;

	memset(name, 'm', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	fd = make_file(name, 4 * (size_t)PAGE);
	at = mmap(NULL, (size_t)n * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		  -1, 0);
	if (at == MAP_FAILED)
		die("mmap");
	/* Pages of the file that do not follow each other are not joined. */
	for (unsigned int i = 0; i < n; i++)
		if (mmap(at + (size_t)i * PAGE, PAGE, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_FIXED, fd, (off_t)(i * 2 % 4 * PAGE)) == MAP_FAILED)
			break; /* that was the limit */
	close(fd);
}
