/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampling engine: statmemprof's mathematics without its tables.
 *
 * In:   the semaphores (sites.c), allocations (hooks_alloc.c).
 * Out:  how many samples an allocation has; batch.c shows the block.
 *
 * Every word that is allocated, headers included, is sampled with probability
 * 2^-k, where k is the finest tier that somebody watches. The distance to the
 * next sample is geometric; since that law has no memory, the distance may be
 * drawn anew at any moment that does not depend on where the next sample lies.
 * So a block of n words holds Binomial(n, 2^-k) samples.
 *
 * Tiers nest: each sample of tier k is also one of tier k + 1 with probability
 * 1/2, independently. Thinning a Bernoulli process so gives a Bernoulli process
 * of half the rate, and every observer sees just the law of its own tier,
 * whoever else is watching.
 */
#define CAML_INTERNALS

#include "sonde.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include <caml/frame_descriptors.h>
#include <caml/memprof.h>

/* ---- Random numbers ---- */

static uint64_t splitmix64(uint64_t *state)
{
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k)
{
  return (x << k) | (x >> (64 - k));
}

/* xoshiro256++ 1.0 (Blackman and Vigna). */
static uint64_t random64(struct sonde_domain *d)
{
  uint64_t *s = d->rng;
  uint64_t result = rotl(s[0] + s[3], 23) + s[0];
  uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotl(s[3], 45);
  return result;
}

/* The seed need not be secret, only different for each domain and run. */
static void seed(struct sonde_domain *d)
{
  uint64_t x = 0;
  if (getrandom(&x, sizeof x, GRND_NONBLOCK) != sizeof x) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    x = (uint64_t)ts.tv_sec * 1000000007u ^ (uint64_t)ts.tv_nsec << 20
      ^ (uint64_t)getpid() << 40 ^ (uintptr_t)d;
  }
  for (int i = 0; i < 4; i++) d->rng[i] = splitmix64(&x);
}

/* Words up to and including the next sample of the domain's tier k: geometric
   on 1, 2, … with parameter 2^-k, by inversion of a uniform u in (0, 1]. */
static uintnat geometric(struct sonde_domain *d)
{
  if (d->tier == 0) return 1;
  double u = (double)((random64(d) >> 11) + 1) * 0x1p-53;
  return 1 + (uintnat)(log(u) * d->inverse_log);
}

/* The ones among n random bits. */
uintnat sonde_half_of(struct sonde_domain *d, uintnat n)
{
  uintnat ones = 0;
  for (; n >= 64; n -= 64) ones += __builtin_popcountll(random64(d));
  if (n > 0) ones += __builtin_popcountll(random64(d) >> (64 - n));
  return ones;
}

/* Binomial(n, 2^-k) for the domain's tier k. By geometric steps, which cost
   n 2^-k draws; where that is much, by k halvings, which cost about n / 32. */
static uintnat binomial(struct sonde_domain *d, uintnat n)
{
  if (d->tier < 9 && n > 4096) {
    for (int i = 0; i < d->tier; i++) n = sonde_half_of(d, n);
    return n;
  }
  uintnat samples = 0, step;
  while ((step = geometric(d)) <= n) {
    samples++;
    n -= step;
  }
  return samples;
}

/* ---- The state of a domain ---- */

struct sonde_domain *sonde_domain_new(caml_domain_state *parent,
                                      caml_domain_state *dom)
{
  struct sonde_domain *d = sonde_domains[dom->id];
  if (d == NULL) {
    d = calloc(1, sizeof *d);
    if (d == NULL) return NULL;
  }
  struct sonde_batch *batch = d->batch;
  memset(d, 0, sizeof *d);
  d->batch = batch;
  d->tier = SONDE_NO_TIER;
  d->words_left = SONDE_NEVER;
  d->gc.domain_id = dom->id;
  d->begin_minor_words = dom->stat_minor_words;
  d->begin_promoted_words = dom->stat_promoted_words;
  d->begin_major_words = dom->stat_major_words;
  d->gc.parent_unique_id = parent ? parent->unique_id : 0;

  /* The runtime gives out the unique id a little later. */
  d->is_unannounced = 1;
  d->info.domain_id = dom->id;
  d->info.unique_id = parent ? UINT32_MAX : 0;
  d->info.unique_id_addr = (uintptr_t)&dom->unique_id;
  d->info.gc_addr = (uintptr_t)&d->gc;
  d->info.tid = syscall(SYS_gettid);
  d->info.live = 1;
  sonde_domains[dom->id] = d;
  return d;
}

void sonde_refresh(struct sonde_domain *d)
{
  uint32_t mask = sonde_tiers_up();
  if (mask == 0 && d->tier_mask == 0) return;
  d->stack_depth = sonde_stack_depth_up();
  if (mask == d->tier_mask) return;

  sonde_flush(d); /* for those who were watching */
  if (mask != 0 && !sonde_batch_new(d)) return; /* once more at the next collection */
  if (d->rng[0] == 0 && d->rng[1] == 0) seed(d);
  d->tier_mask = mask;
  d->tier = mask == 0 ? SONDE_NO_TIER : __builtin_ctz(mask);
  if (mask != 0) d->inverse_log = 1.0 / log1p(-ldexp(1.0, -d->tier));
  d->words_left = mask == 0 ? SONDE_NEVER : geometric(d);
}

/* The higher trigger of the two is what the runtime looks at. */
static void publish(caml_domain_state *dom, struct sonde_domain *d)
{
  dom->memprof_young_trigger = d->our_trigger > d->memprof_trigger
    ? d->our_trigger : d->memprof_trigger;
}

void sonde_arm(caml_domain_state *dom, struct sonde_domain *d)
{
  d->our_trigger = NULL;
  if (d->tier != SONDE_NO_TIER) {
    /* It may lie below the minor heap, and yet within the block that will not
       fit into it. The longest distance drawn is some 2^30 words: no wrap. */
    d->our_trigger = dom->young_ptr - (geometric(d) - 1);
  }
  d->armed_heap = dom->young_end;
  d->is_collecting = 0;
  publish(dom, d);
}

void sonde_move_trigger(caml_domain_state *dom, struct sonde_domain *d,
                        intnat words)
{
  if (d->our_trigger == NULL) return;
  d->our_trigger += words;
  publish(dom, d);
}

void sonde_before_minor_gc(caml_domain_state *dom, struct sonde_domain *d)
{
  if (d->tier == SONDE_NO_TIER) return;
  d->residue = dom->young_ptr - d->our_trigger;
  d->is_collecting = 1;
}

void sonde_rearm(caml_domain_state *dom, struct sonde_domain *d)
{
  if (d->armed_heap != dom->young_end) {
    sonde_arm(dom, d);
    return;
  }
  if (d->is_collecting) {
    d->our_trigger = dom->young_ptr - d->residue;
    d->is_collecting = 0;
  }
  publish(dom, d);
}

void sonde_update_gc(caml_domain_state *dom, struct sonde_domain *d)
{
  struct sonde_gc *gc = &d->gc;
  gc->tier_mask = d->tier_mask;
  gc->minor_words = dom->stat_minor_words + (dom->young_end - dom->young_ptr)
    - d->begin_minor_words;
  gc->promoted_words = dom->stat_promoted_words - d->begin_promoted_words;
  gc->major_words = dom->stat_major_words + dom->allocated_words
    - d->begin_major_words;
}

/* ---- Counting samples ---- */

void sonde_count_young(caml_domain_state *dom, struct sonde_domain *d,
                       uintnat wosize, int nallocs, unsigned char *lens,
                       unsigned short *n_samples)
{
  /* Both offsets in words from the bottom of the allocation; signed, because
     the next sample may lie below it. Sub-blocks are taken from the top down,
     as pointer-bumping would have met them. */
  intnat next_sample = d->our_trigger - dom->young_ptr;
  intnat bottom = Whsize_wosize(wosize);
  for (int i = nallocs - 1; i >= 0; i--) {
    uintnat size = lens == NULL ? wosize : Wosize_encoded_alloc_len(lens[i]);
    bottom -= Whsize_wosize(size);
    n_samples[i] = 0;
    while (bottom < next_sample) {
      n_samples[i]++;
      next_sample -= geometric(d);
    }
  }
  d->our_trigger = dom->young_ptr + next_sample;
  publish(dom, d);
}

uintnat sonde_count_block(struct sonde_domain *d, uintnat words)
{
  /* The countdown says that the first sample is this far in; what lies behind
     it is untouched, and so is what follows the block. */
  uintnat samples = 1 + binomial(d, words - d->words_left);
  d->words_left = geometric(d);
  return samples;
}
