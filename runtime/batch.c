/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Batches: what is shown of a sampled block, and when.
 *
 * In:   sampled blocks, from hooks_alloc.c.
 * Out:  one struct sonde_sample for each, shown through the probes of all tiers
 *       that sample it, several at a time.
 *
 * A trap costs as much as a deep stack and more than all that an observer does
 * with a sample, so samples of young blocks wait in their domain until there is
 * something to trap for. abi.h says for how long at most. The next block that
 * is not young does not wait: a program may allocate much and then fall silent,
 * and what has not been told then is less than a minor heap.
 */
#define CAML_INTERNALS

#include "sonde.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

#include <caml/backtrace_prim.h>
#include <caml/fiber.h>
#include <caml/memprof.h>

/* ---- The thread and the time ---- */

/* Asked of the kernel once per thread. */
static __thread uint32_t this_tid;

static uint32_t sonde_tid(void)
{
  if (CAMLunlikely(this_tid == 0)) this_tid = syscall(SYS_gettid);
  return this_tid;
}

static uint64_t now_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- The call stack ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
  __uint128_t p = (__uint128_t)a * b;
  return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* Two chains at a time: a multiplication waits for the one before it in its own
   chain only. */
static uint64_t hash_frames(const uint64_t *frames, size_t depth)
{
  uint64_t h = 0x2d358dccaa6c78a5u ^ depth, g = 0x4b33a62ed433d4a3u;
  size_t i = 0;
  for (; i + 4 <= depth; i += 4) {
    h = mix(frames[i] ^ 0x8bb84b93962eacc9u, h ^ frames[i + 1]);
    g = mix(frames[i + 2] ^ 0x4b33a62ed433d4a3u, g ^ frames[i + 3]);
  }
  for (; i < depth; i++) h = mix(h ^ frames[i], 0x8bb84b93962eacc9u);
  h = mix(h ^ g, 0x8bb84b93962eacc9u);
  return h == 0 ? 1 : h; /* 0 says that there is no stack */
}

/* The call stack, as statmemprof would capture it, into [frames], which has room
   for as many as are asked for. */
static size_t capture_stack(caml_domain_state *dom,
                            const struct sonde_domain *d, uint64_t *frames,
                            intnat alloc_idx)
{
  struct stack_info *stack = dom->current_stack;
  if (d->stack_depth == 0 || stack == NULL) return 0;
  /* Before the first OCaml frame there is nothing to walk. */
  if (stack->sp == Stack_high(stack)) return 0;

  /* The buffer holds as many slots as are asked for, so it is not resized. */
  _Static_assert(sizeof(backtrace_slot) == sizeof(uint64_t), "64-bit slots");
  backtrace_slot *slots = (backtrace_slot *)frames;
  size_t capacity = d->stack_depth;
  return caml_get_callstack(d->stack_depth, &slots, &capacity, alloc_idx);
}

/* ---- The batch ---- */

int sonde_batch_new(struct sonde_domain *d)
{
  if (d->batch == NULL) d->batch = malloc(sizeof *d->batch);
  if (d->batch == NULL) return 0;
  /* Observers have come or gone: those who came have not met the thread. */
  d->batch->tid = 0;
  d->batch->n_frames = 0;
  d->batch->handed_ns = 0;
  return 1;
}

/* Of the samples those that are also of the next coarser tier. */
static uint32_t halve(struct sonde_domain *d, uint32_t n)
{
  struct sonde_sample *samples = d->batch->samples;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; i++) {
    uintnat n_samples = sonde_half_of(d, samples[i].n_samples);
    if (n_samples == 0) continue;
    samples[kept] = samples[i];
    samples[kept++].n_samples = n_samples;
  }
  return kept;
}

static void hand_over_at(struct sonde_domain *d, uint64_t time_ns)
{
  struct sonde_batch *b = d->batch;
  struct sonde_shown shown = {
    .unique_id = d->info.unique_id,
    .tid = b->tid,
    .now_ns = time_ns,
  };
  if (b->tid == sonde_tid()) {
    shown.flags = SONDE_BATCH_OWN;
    b->is_introduced = 1;
  }

  uint32_t n = d->n_waiting, mask = d->tier_mask;
  for (int k = b->tier; n > 0; n = halve(d, n), k++) {
    if (mask & 1u << k)
      sonde_fire_alloc(k, b->samples, n * sizeof b->samples[0], &shown);
    if (mask >> k <= 1) break; /* no coarser tier */
  }
  d->n_waiting = 0;
  b->n_frames = 0;
  b->handed_ns = time_ns;
}

void sonde_hand_over(struct sonde_domain *d)
{
  hand_over_at(d, now_ns());
}

/* Make room for one more sample of this thread and tier. */
static void prepare(struct sonde_domain *d, int tier)
{
  struct sonde_batch *b = d->batch;
  uint32_t tid = sonde_tid();
  if (b->tid != tid || b->tier != tier
      || b->n_frames + d->stack_depth > SONDE_BATCH_FRAMES)
    sonde_flush(d);
  if (b->tid != tid) b->is_introduced = 0;
  b->tid = tid;
  b->tier = tier;
}

void sonde_report(caml_domain_state *dom, struct sonde_domain *d, value block,
                  uintnat wosize, int tier, uintnat n_samples, int source,
                  int is_young, intnat alloc_idx)
{
  struct sonde_batch *b = d->batch;
  prepare(d, tier);

  struct sonde_sample *s = &b->samples[d->n_waiting];
  uint64_t *frames = b->frames + b->n_frames;
  size_t depth = capture_stack(dom, d, frames, alloc_idx);
  s->block = block;
  s->size_words = wosize;
  s->n_samples = n_samples;
  s->stack_hash = depth == 0 ? 0 : hash_frames(frames, depth);
  s->frames = (uintptr_t)frames;
  s->time_ns = now_ns();
  s->source = source;
  s->is_young = is_young;
  s->depth = depth;
  s->reserved = 0;
  b->n_frames += depth;
  d->n_waiting++;

  if (d->n_waiting == SONDE_BATCH_MAX || !is_young || !b->is_introduced
      || s->time_ns - b->handed_ns > SONDE_BATCH_NS)
    hand_over_at(d, s->time_ns);
}

void sonde_batch_after_fork_in_child(void)
{
  this_tid = 0;
  for (int i = 0; i < SONDE_MAX_DOMAINS; i++)
    if (sonde_domains[i] != NULL) sonde_domains[i]->n_waiting = 0;
}
