/* SPDX-License-Identifier: BSD-2-Clause */
/* Call stacks in a memtrace stream; see ctf_codec.h. */
#include "user/export/ctf_codec.h"

/* The two low bits of a codeword. */
enum { HIT = 0, HIT_1 = 1, HIT_N = 2, MISS = 3 };

#define NO_VERIFIER 0xffff
#define VERIFY_STEP 5413 /* odd, so that all places have their turn */

void ctf_frames__init(struct ctf_frames *f)
{
	memset(f, 0, sizeof(*f)); /* which is what readers begin with */
}

void ctf_frames__forget(struct ctf_frames *f)
{
	memset(f, 0, sizeof(*f));
	memset(f->next, 0xff, sizeof(f->next));
	f->is_partial = true;
}

uint32_t ctf_frames__common(const struct ctf_frames *f, const struct ctf_stack *stack)
{
	uint32_t i = 0, n;

	if (!f->last)
		return 0;
	if (f->last == stack)
		return stack->n;
	n = f->last->n < stack->n ? f->last->n : stack->n;
	while (i < n && f->last->codes[i] == stack->codes[i])
		i++;
	return i;
}

/* The first 2^14 codes have a place of their own, and all have another one. */
static uint16_t place_of(uint32_t code)
{
	return code % CTF_CACHE;
}

static uint16_t other_place_of(uint32_t code)
{
	return (uint16_t)((code * UINT32_C(2654435761)) >> 18);
}

/* Put where the frame stands, and how many further ones are guessed right. */
static void put_hit(struct ctf_bytes *b, uint16_t place, uint32_t n_guessed)
{
	ctf_put_16(b, (uint16_t)((uint32_t)place << 2 | (n_guessed < HIT_N ? n_guessed : HIT_N)));
	if (n_guessed >= HIT_N)
		ctf_put_8(b, (uint8_t)n_guessed);
}

static void put_miss(struct ctf_frames *f, struct ctf_bytes *b, uint16_t place, uint32_t code)
{
	f->code[place] = code;
	ctf_put_16(b, (uint16_t)(place << 2 | MISS));
	ctf_put_64(b, code);
}

/* Where code stands, or, *is_hit false, where it may be put: the older one gives way. */
static uint16_t find_place(const struct ctf_frames *f, uint32_t code, bool *is_hit)
{
	uint16_t a = place_of(code), b = other_place_of(code);

	*is_hit = f->code[a] == code || f->code[b] == code;
	if (*is_hit)
		return f->code[a] == code ? a : b;
	if (!f->code[a] || !f->code[b])
		return f->code[a] ? b : a;
	return f->date[a] < f->date[b] ? a : b;
}

uint32_t ctf_frames__put(struct ctf_frames *f, struct ctf_bytes *b, const struct ctf_stack *stack,
			 uint32_t common)
{
	uint32_t n_codewords = 0, i = common;
	uint16_t previous = 0;

	f->clock++;
	while (i < stack->n) {
		uint32_t code = stack->codes[i++], n_guessed = 0;
		bool is_hit;
		uint16_t place = find_place(f, code, &is_hit), first = place;

		f->next[previous] = place;
		f->date[place] = f->clock;
		previous = place;
		n_codewords++;
		if (!is_hit) {
			put_miss(f, b, place, code);
			continue;
		}
		for (; i < stack->n && n_guessed < UINT8_MAX; i++, n_guessed++) {
			uint16_t guess = f->next[previous];

			if (guess == CTF_UNKNOWN || f->code[guess] != stack->codes[i])
				break;
			previous = guess;
			f->date[guess] = f->clock;
		}
		put_hit(b, first, n_guessed);
	}
	f->last = stack;
	return n_codewords;
}

void ctf_frames__put_verifier(struct ctf_frames *f, struct ctf_bytes *b)
{
	uint16_t at = f->verify;

	if (f->is_partial) {
		ctf_put_16(b, NO_VERIFIER);
		ctf_put_16(b, 0);
		ctf_put_64(b, 0);
		return;
	}
	ctf_put_16(b, at);
	ctf_put_16(b, f->next[at]);
	ctf_put_64(b, f->code[at]);
	f->verify = (uint16_t)((at + VERIFY_STEP) % CTF_CACHE);
}
