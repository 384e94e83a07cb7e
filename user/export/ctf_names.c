/* SPDX-License-Identifier: BSD-2-Clause */
/* Locations in a memtrace stream; see ctf_codec.h. */
#include "user/export/ctf_codec.h"

#define NEW_NAME CTF_NAMES /* the index that says: a string follows */

static bool is_same(const struct ctf_name *a, const struct ctf_name *b)
{
	return a->n_bytes == b->n_bytes &&
	       (a->text == b->text || !memcmp(a->text, b->text, a->n_bytes));
}

/* To the front of the file table. Returns the index that it was at, or NEW_NAME. */
static unsigned int use_file(struct ctf_names *t, const struct ctf_name *name)
{
	struct ctf_file file = { .name = *name };
	unsigned int i = 0, found;

	while (i < t->n_files && !is_same(&t->files[i].name, name))
		i++;
	found = i < t->n_files ? i : NEW_NAME;
	if (found != NEW_NAME) {
		file = t->files[i];
	} else if (t->n_files < CTF_NAMES) {
		file.functions = t->n_files++;
	} else {
		i = CTF_NAMES - 1; /* falls out, and leaves its table */
		file.functions = t->files[i].functions;
	}
	if (found == NEW_NAME)
		t->functions[file.functions].n = 0;
	memmove(t->files + 1, t->files, i * sizeof(t->files[0]));
	t->files[0] = file;
	return found;
}

/* The same in the front file's table of functions. */
static unsigned int use_function(struct ctf_names *t, const struct ctf_name *name)
{
	struct ctf_name *names = t->functions[t->files[0].functions].names;
	uint8_t *n = &t->functions[t->files[0].functions].n;
	unsigned int i = 0, found;

	while (i < *n && !is_same(&names[i], name))
		i++;
	found = i < *n ? i : NEW_NAME;
	if (found == NEW_NAME && *n < CTF_NAMES)
		(*n)++;
	else if (found == NEW_NAME)
		i = CTF_NAMES - 1;
	memmove(names + 1, names, i * sizeof(names[0]));
	names[0] = *name;
	return found;
}

static struct ctf_name name_of(const char *text, const char *unknown, size_t max_bytes)
{
	if (!text)
		text = unknown;
	return (struct ctf_name){ text, ctf_text_bytes(text, max_bytes) };
}

static uint64_t at_most(uint32_t v, uint64_t max)
{
	return v < max ? v : max;
}

static void put_position(struct ctf_names *t, struct ctf_bytes *b, const struct hs_location *l,
			 size_t max_bytes)
{
	struct ctf_name file = name_of(l->file, "<unknown>", max_bytes);
	struct ctf_name function = name_of(l->function, "??", max_bytes);
	unsigned int file_index = use_file(t, &file);
	unsigned int function_index = use_function(t, &function);
	/* The format counts both characters from the start of the line, as
	 * Printexc.Slot.location does. */
	uint64_t word = at_most(l->line, 0xfffff) | at_most(l->start_char, 0xff) << 20 |
			at_most(l->end_offset, 0x3ff) << 28 | (uint64_t)file_index << 38 |
			(uint64_t)function_index << 43;

	ctf_put_32(b, (uint32_t)word);
	ctf_put_16(b, (uint16_t)(word >> 32));
	if (file_index == NEW_NAME)
		ctf_put_text(b, file.text, file.n_bytes);
	if (function_index == NEW_NAME)
		ctf_put_text(b, function.text, function.n_bytes);
}

/* What a position takes beside the bytes of its two names. */
#define POSITION_BYTES 8

/* So many bytes of each name can be kept. */
static size_t name_limit(const struct hs_location *locations, size_t n)
{
	size_t total = 9, room = CTF_LOCATION_BYTES - 9;

	for (size_t i = 0; i < n && total <= CTF_LOCATION_BYTES; i++) {
		const char *file = locations[i].file, *function = locations[i].function;

		total += POSITION_BYTES + 16; /* more than either stand-in */
		total += file ? strnlen(file, CTF_LOCATION_BYTES) : 0;
		total += function ? strnlen(function, CTF_LOCATION_BYTES) : 0;
	}
	return total <= CTF_LOCATION_BYTES ? CTF_LOCATION_BYTES : (room / n - POSITION_BYTES) / 2;
}

void ctf_names__put(struct ctf_names *t, struct ctf_bytes *b, uint64_t code,
		    const struct hs_location *locations, size_t n)
{
	size_t max_bytes = name_limit(locations, n);

	ctf_put_64(b, code);
	ctf_put_8(b, (uint8_t)n);
	while (n--)
		put_position(t, b, &locations[n], max_bytes);
}
