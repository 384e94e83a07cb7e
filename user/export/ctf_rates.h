/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One sampling rate for a whole trace.
 *
 * In:   the rate in force in each domain, which may change during a recording.
 * Out:  how many samples a block would count at the rate of the trace.
 *
 * A block that was hit by n samples at rate λ stands for n/λ words. In a trace of rate λ0
 * it is to stand for m/λ0 with the same mean, so m is n·λ0/λ, rounded up or down at random
 * by its fraction. Where λ is the higher one, some blocks round to 0 and are left out, as
 * they would have been if sampled at λ0. So the highest rate of a recording is the one to
 * take, if it is known in time.
 */
#ifndef HEAPSONDE_CTF_RATES_H
#define HEAPSONDE_CTF_RATES_H

#include <stdint.h>

struct ctf_rates;

/* Errors: -ENOMEM. */
int ctf_rates__new(struct ctf_rates **out);

/* NULL is fine. */
void ctf_rates__free(struct ctf_rates *r);

/* The rate of domains that have told no other, and of the trace: in (0, 1]. 1 until told. */
void ctf_rates__set_first(struct ctf_rates *r, double rate);
void ctf_rates__set_trace(struct ctf_rates *r, double rate);
double ctf_rates__trace(const struct ctf_rates *r);

/* A domain samples at this rate from here on, in (0, 1]; or has ended. Errors: -ENOMEM. */
int ctf_rates__change(struct ctf_rates *r, uint32_t domain, double rate);
void ctf_rates__end(struct ctf_rates *r, uint32_t domain);

/*
 * n_samples >= 1 of a block of the domain, at the rate of the trace: 0 to CTF_INT_MAX. The
 * same for the same block each time.
 */
uint64_t ctf_rates__samples(const struct ctf_rates *r, uint32_t domain, uint64_t block_id,
			    uint64_t n_samples);

#endif /* HEAPSONDE_CTF_RATES_H */
