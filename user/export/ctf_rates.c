/* SPDX-License-Identifier: BSD-2-Clause */
/* One sampling rate for a whole trace; see ctf_rates.h. */
#include "user/export/ctf_rates.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "user/export/ctf_bytes.h"
#include "user/track/blocks.h"

/*
 * A rate in force is the one asked for to within 2^-32 (bpf/records.h). Such a difference
 * is none: a bias of a millionth is far below what sampling can show.
 */
#define SAME 1e-6

struct ctf_rates {
	double first, trace;
	struct block_table *changed; /* by domain; entries are double */
};

int ctf_rates__new(struct ctf_rates **out)
{
	struct ctf_rates *r = calloc(1, sizeof(*r));

	if (!r || block_table__new(&r->changed, sizeof(double))) {
		free(r);
		return -ENOMEM;
	}
	r->first = r->trace = 1;
	*out = r;
	return 0;
}

void ctf_rates__free(struct ctf_rates *r)
{
	if (!r)
		return;
	block_table__free(r->changed);
	free(r);
}

void ctf_rates__set_first(struct ctf_rates *r, double rate)
{
	r->first = rate;
}

void ctf_rates__set_trace(struct ctf_rates *r, double rate)
{
	r->trace = rate;
}

double ctf_rates__trace(const struct ctf_rates *r)
{
	return r->trace;
}

int ctf_rates__change(struct ctf_rates *r, uint32_t domain, double rate)
{
	double *entry = block_table__add(r->changed, domain, NULL);

	if (!entry)
		return -ENOMEM;
	*entry = rate;
	return 0;
}

void ctf_rates__end(struct ctf_rates *r, uint32_t domain)
{
	block_table__remove(r->changed, domain, block_table__find(r->changed, domain));
}

/* In [0, 1), as good as random, but the same for the same block (splitmix64). */
static double draw(uint64_t block_id)
{
	uint64_t z = block_id * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return (double)(z >> 11) * 0x1p-53;
}

static uint64_t at_most(uint64_t v)
{
	return v < CTF_INT_MAX ? v : CTF_INT_MAX;
}

uint64_t ctf_rates__samples(const struct ctf_rates *r, uint32_t domain, uint64_t block_id,
			    uint64_t n_samples)
{
	const double *changed =
		block_table__count(r->changed) ? block_table__find(r->changed, domain) : NULL;
	double ratio = r->trace / (changed ? *changed : r->first), scaled, whole;

	if (fabs(ratio - 1) < SAME)
		return at_most(n_samples);
	scaled = (double)n_samples * ratio;
	if (!(scaled < (double)CTF_INT_MAX))
		return CTF_INT_MAX;
	whole = floor(scaled);
	return at_most((uint64_t)whole + (draw(block_id) < scaled - whole));
}
