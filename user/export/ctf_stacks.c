/* SPDX-License-Identifier: BSD-2-Clause */
/* Codes for the frames of call stacks; see ctf_stacks.h. */
#include "user/export/ctf_stacks.h"

#include <errno.h>
#include <stdlib.h>

#include "user/track/blocks.h"

struct meaning {
	const struct hs_location *locations;
	size_t n;
};

struct ctf_stacks {
	struct block_table *codes; /* by the address of the locations; entries are uint32_t */
	struct meaning *meanings;  /* of code i + 1 */
	uint32_t n_codes, room_codes;
	struct ctf_stack **stacks; /* of id i + 1; NULL: not told */
	uint32_t room_stacks;
	struct ctf_stack *empty, *lost;
};

static int code_of(struct ctf_stacks *t, const struct hs_location *locations, size_t n,
		   uint32_t *code)
{
	uint32_t *entry = block_table__add(t->codes, (uintptr_t)locations, NULL);

	if (!entry)
		return -ENOMEM;
	if (!*entry) {
		if (t->n_codes == t->room_codes) {
			uint32_t room = t->room_codes ? 2 * t->room_codes : 1024;
			struct meaning *m = reallocarray(t->meanings, room, sizeof(*m));

			if (!m || room < t->room_codes)
				return -ENOMEM;
			t->meanings = m;
			t->room_codes = room;
		}
		t->meanings[t->n_codes++] = (struct meaning){ locations, n };
		*entry = t->n_codes;
	}
	*code = *entry;
	return 0;
}

static struct ctf_stack *stack_new(uint32_t n)
{
	struct ctf_stack *s = malloc(sizeof(*s) + n * sizeof(s->codes[0]));

	if (s)
		s->n = n;
	return s;
}

/* What stands for a stack that there is none of. */
static int placeholder(struct ctf_stacks *t, const struct hs_location *location,
		       struct ctf_stack **out)
{
	*out = stack_new(1);
	return *out ? code_of(t, location, 1, &(*out)->codes[0]) : -ENOMEM;
}

int ctf_stacks__new(struct ctf_stacks **out)
{
	static const struct hs_location empty = { .function = "[empty stack]" };
	static const struct hs_location lost = { .function = "[stack lost]" };
	struct ctf_stacks *t = calloc(1, sizeof(*t));
	int ret = t ? 0 : -ENOMEM;

	if (!ret)
		ret = block_table__new(&t->codes, sizeof(uint32_t));
	if (!ret)
		ret = placeholder(t, &empty, &t->empty);
	if (!ret)
		ret = placeholder(t, &lost, &t->lost);
	if (ret)
		ctf_stacks__free(t);
	else
		*out = t;
	return ret;
}

void ctf_stacks__free(struct ctf_stacks *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->room_stacks; i++)
		free(t->stacks[i]);
	free(t->stacks);
	free(t->empty);
	free(t->lost);
	free(t->meanings);
	block_table__free(t->codes);
	free(t);
}

static int make_room(struct ctf_stacks *t, uint32_t id)
{
	uint32_t room = t->room_stacks ? t->room_stacks : 1024;
	struct ctf_stack **stacks;

	if (id <= t->room_stacks)
		return 0;
	while (room < id && room <= UINT32_MAX / 2)
		room *= 2;
	if (room < id)
		return -ENOMEM;
	stacks = reallocarray(t->stacks, room, sizeof(*stacks));
	if (!stacks)
		return -ENOMEM;
	for (uint32_t i = t->room_stacks; i < room; i++)
		stacks[i] = NULL;
	t->stacks = stacks;
	t->room_stacks = room;
	return 0;
}

int ctf_stacks__learn(struct ctf_stacks *t, const struct stack *stack)
{
	struct ctf_stack *s;
	int ret = make_room(t, stack->id);

	if (ret || t->stacks[stack->id - 1])
		return ret;
	s = stack_new(stack->depth);
	if (!s)
		return -ENOMEM;
	for (uint32_t i = 0; i < stack->depth && !ret; i++) {
		const struct stack_frame *f = &stack->frames[stack->depth - 1 - i];

		ret = code_of(t, f->locations, f->n_locations, &s->codes[i]);
	}
	if (ret)
		free(s);
	else
		t->stacks[stack->id - 1] = s;
	return ret;
}

const struct ctf_stack *ctf_stacks__find(const struct ctf_stacks *t, const struct stack *stack,
					 bool is_lost)
{
	if (stack && stack->id <= t->room_stacks && t->stacks[stack->id - 1])
		return t->stacks[stack->id - 1];
	return stack || is_lost ? t->lost : t->empty;
}

size_t ctf_stacks__locations(const struct ctf_stacks *t, uint32_t code,
			     const struct hs_location **locations)
{
	*locations = t->meanings[code - 1].locations;
	return t->meanings[code - 1].n;
}
