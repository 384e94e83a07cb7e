/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Thinning: which samples of a tier belong to a profile of a lower rate.
 *
 * In:   n samples of a Bernoulli process at rate 2^-k, and the probability
 *       p = λ 2^k with which each is kept.
 * Out:  Binomial(n, p): so the samples kept are a Bernoulli process at rate λ.
 *
 * p lies in (1/2, 1] but for rates below the coarsest tier, so a countdown to
 * the next kept sample would save less than one draw per sample, and would need
 * logarithms, which BPF has not. Instead each sample is a trial of its own: a
 * uniform 32-bit number is compared with p, bit by bit from the top, for up to
 * 32 samples at a time. It takes about two words of random bits for one sample
 * and seven for 32.
 *
 * The user of this file defines HS_RANDOM_U32(), a uniform 32-bit number. So the
 * unit tests run the same code as the kernel.
 */
#ifndef HEAPSONDE_THIN_H
#define HEAPSONDE_THIN_H

#include <linux/types.h>

/* A probability in units of 2^-32. */
#define HS_P_ONE (1ull << 32)
#define HS_TRIALS_PER_WORD 32

/*
 * Binomial(n_trials, p), n_trials <= 32.
 *
 * `open` holds a bit for each trial whose number agrees with p so far. The next
 * bit of p decides half of them: where p has a 1 those with a 0 are below p,
 * where it has a 0 those with a 1 are above. What agrees to the end equals p and
 * is not below it.
 */
static inline __attribute__((always_inline)) __u32 hs_thin_word(__u32 n_trials, __u64 p)
{
	__u32 open, below = 0;

	if (p >= HS_P_ONE)
		return n_trials;
	open = n_trials >= 32 ? ~0u : (1u << n_trials) - 1;
	for (int bit = 31; bit >= 0 && open; bit--) {
		__u32 random = HS_RANDOM_U32();
		__u32 p_bit = -((__u32)p >> bit & 1); /* 0 or all ones */

		/* Without a branch on p: the verifier would follow both ways at
		 * each of 32 bits. */
		below |= open & ~random & p_bit;
		open &= random ^ ~p_bit;
	}
	return __builtin_popcount(below);
}

#endif /* HEAPSONDE_THIN_H */
