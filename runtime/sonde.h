/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the probed runtime: the state of a domain, and what the five
 * files of runtime/ offer one another.
 *
 *   hooks_alloc.c  the runtime's functions that we define in the place of its
 *                  own: those that allocate
 *   hooks.c        the others: collections, blocking sections, domains
 *   engine.c       which words are sampled
 *   batch.c        what is shown of a sampled block, and when
 *   sites.c        the semaphores, the probe sites, the registry
 *
 * In:   the headers of the user's own OCaml (ocamlc -where)/caml, under
 *       CAML_INTERNALS.
 * Out:  runtime/abi.h.
 */
#ifndef SONDE_H
#define SONDE_H

#include <stdint.h>
#include <caml/mlvalues.h>
#include <caml/domain.h>
#include <caml/domain_state.h>
#include <caml/misc.h>

#include "abi.h"

#ifdef Max_domains_max
#define SONDE_MAX_DOMAINS Max_domains_max
#else
#define SONDE_MAX_DOMAINS Max_domains
#endif

/* No tier of ours is up. */
#define SONDE_NO_TIER (-1)

/* A distance in words that no program reaches. */
#define SONDE_NEVER (~(uintnat)0)

/* The state of one domain. Touched only by threads that hold the domain's
   lock, or by the last thread of a domain that terminates. */
struct sonde_domain {
  /* What the registry shows; must come first. */
  struct sonde_domain_info info;

  /* The domain has not yet shown itself (see sonde_announce). */
  int is_unannounced;

  /* The finest tier that samples (lowest k), or SONDE_NO_TIER. */
  int tier;

  /* Bit k: tier k samples. The lowest bit set is [tier]. */
  uint32_t tier_mask;

  /* Frames to capture per sample; 0: none. */
  uint32_t stack_depth;

  /* The trigger that memprof wants, for an in-process Gc.Memprof. What stands
     in the domain state is the higher of this and [our_trigger]. */
  value *memprof_trigger;

  /* The next word that we sample is the one just below this address, which may
     lie below the minor heap; NULL: none. */
  value *our_trigger;

  /* The minor heap that [our_trigger] was set for: its young_end, which differs
     after a resize. */
  value *armed_heap;

  /* While a minor collection goes on: the words between young_ptr and
     [our_trigger] at its beginning. */
  int is_collecting;
  uintnat residue;

  /* Words until and including the next one that we sample among those that are
     not allocated by pointer-bumping; or SONDE_NEVER. */
  uintnat words_left;

  /* 1 / log(1 - 2^-tier), for the geometric law; not used for tier 0. */
  double inverse_log;

  /* xoshiro256++; all zero: not seeded yet. */
  uint64_t rng[4];

  /* What the GC probes show. */
  struct sonde_gc gc;

  /* What the runtime's statistics said when the domain began: some versions let
     them run on when another domain takes over the slot. */
  uintnat begin_minor_words, begin_promoted_words, begin_major_words;

  /* Samples that wait to be handed over: batch->samples[0 .. n_waiting - 1]. */
  uint32_t n_waiting;

  /* Allocated when first needed, kept for the next domain of the slot. */
  struct sonde_batch *batch;
};

/* Frames that a batch has room for. A full one of usual stacks takes a quarter;
   with less than the frames that are asked for left it is handed over. */
#define SONDE_BATCH_FRAMES (4 * SONDE_STACK_MAX)

/* The samples of a domain that wait to be handed over; all were drawn for the
   same tier and allocated by the same thread. */
struct sonde_batch {
  struct sonde_sample samples[SONDE_BATCH_MAX];
  uint32_t n_frames;
  int tier;
  uint32_t tid;       /* of that thread, as sonde_tid tells it */
  int is_introduced;  /* the thread has handed over a batch of its own itself */
  uint64_t handed_ns; /* when a batch was last handed over */
  uint64_t frames[SONDE_BATCH_FRAMES];
};

/* What a sampling probe shows besides the samples. */
struct sonde_shown {
  uint32_t unique_id;
  uint32_t flags; /* SONDE_BATCH_* */
  uint32_t tid;
  uint64_t now_ns;
};

/* ---- sites.c ---- */

/* The domains by slot; an entry, once set, is never freed. */
extern struct sonde_domain *sonde_domains[SONDE_MAX_DOMAINS];

/* The state of [dom]; NULL before sonde_domain_new. */
Caml_inline struct sonde_domain *sonde_domain_of(caml_domain_state *dom)
{
  return sonde_domains[dom->id];
}

/* Which tiers are attached (bit k), in this process and not just in the one
   that it was forked from. */
uint32_t sonde_tiers_up(void);

/* How many frames the observers want at most; 0: none. */
uint32_t sonde_stack_depth_up(void);

/* A forked child has the semaphores of its parent, but no observer. */
void sonde_after_fork_in_child(void);

/* Fire alloc_<tier> if its semaphore is up. */
void sonde_fire_alloc(int tier, const struct sonde_sample *samples,
                      size_t bytes, const struct sonde_shown *shown);

enum sonde_gc_probe {
  SONDE_MINOR_END,
  SONDE_MAJOR_END,
  SONDE_COMPACT,
  SONDE_DOMAIN_SPAWN,
  SONDE_DOMAIN_TERMINATE,
  SONDE_EXIT,
  SONDE_GC_PROBES
};

/* Is that probe's semaphore up? */
int sonde_gc_up(enum sonde_gc_probe probe);

/* Fire that probe with [gc]. Call only if it is up. */
void sonde_fire_gc(enum sonde_gc_probe probe, struct sonde_gc *gc);

/* ---- hooks.c ---- */

/* The domain's unique id is not there yet when the domain is made: say that it
   has begun as soon as it first does something, with the counters it began
   with. Does nothing after that. */
void sonde_announce(caml_domain_state *dom, struct sonde_domain *d);

/* ---- engine.c ---- */

/* Make the state for a domain that begins in the slot of [dom], spawned by
   [parent] (NULL: the first). Returns NULL if memory is short: then the domain
   runs unsampled. */
struct sonde_domain *sonde_domain_new(caml_domain_state *parent,
                                      caml_domain_state *dom);

/* Look at the semaphores. Call once per minor collection and at creation, so
   that the counters of the GC probes tell exactly which words were sampled. */
void sonde_refresh(struct sonde_domain *d);

/* Draw our trigger anew from young_ptr on, and put the higher of memprof's and
   ours into the domain state. Does not touch young_limit.

   Not to be called where coming there may depend on where the trigger lies:
   then it would draw again until the sample goes elsewhere. */
void sonde_arm(caml_domain_state *dom, struct sonde_domain *d);

/* Move our trigger by so many words, upwards if positive, and put the higher of
   memprof's and ours into the domain state. */
void sonde_move_trigger(caml_domain_state *dom, struct sonde_domain *d,
                        intnat words);

/* Remember how far the next sample is when a minor collection begins. */
void sonde_before_minor_gc(caml_domain_state *dom, struct sonde_domain *d);

/* After memprof has set its trigger: put ours back, as far below young_ptr as it
   was before a collection. Draws only if the minor heap is another one. */
void sonde_rearm(caml_domain_state *dom, struct sonde_domain *d);

/* How many of our samples fall on the sub-blocks of an allocation of [wosize]
   words in all that begins at young_ptr. [lens] as in the frame descriptor,
   NULL for a single block. Fills n_samples[0 .. nallocs - 1], index 0 being the
   lowest address. Our trigger lies below the allocation then. */
void sonde_count_young(caml_domain_state *dom, struct sonde_domain *d,
                       uintnat wosize, int nallocs, unsigned char *lens,
                       unsigned short *n_samples);

/* Account for [words] words allocated otherwise; returns the samples on them.
   Call only if words >= d->words_left. */
uintnat sonde_count_block(struct sonde_domain *d, uintnat words);

/* Binomial(n, 1/2): of a tier's n samples those of the next coarser one. */
uintnat sonde_half_of(struct sonde_domain *d, uintnat n);

/* Bring d->gc up to date with the domain's own statistics. */
void sonde_update_gc(caml_domain_state *dom, struct sonde_domain *d);

/* ---- batch.c ---- */

/* Make room for samples. Returns 0 if memory is short. */
int sonde_batch_new(struct sonde_domain *d);

/* Take a block with [n_samples] >= 1 samples, drawn for [tier], for every
   observer of that tier and of coarser ones. [alloc_idx] as in
   caml_get_callstack. */
void sonde_report(caml_domain_state *dom, struct sonde_domain *d, value block,
                  uintnat wosize, int tier, uintnat n_samples, int source,
                  int is_young, intnat alloc_idx);

/* Hand over all that waits. Call only if something does; sonde_flush asks. */
void sonde_hand_over(struct sonde_domain *d);

Caml_inline void sonde_flush(struct sonde_domain *d)
{
  if (CAMLunlikely(d->n_waiting > 0)) sonde_hand_over(d);
}

/* What waits is the parent's, which hands it over itself. */
void sonde_batch_after_fork_in_child(void);

#endif /* SONDE_H */
