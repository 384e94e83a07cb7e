/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The runtime's functions that heapsonde stands in for: allocations.
 *
 * In:   the calls that the runtime makes to statmemprof for its trigger and for
 *       allocations, and to the minor heap's slow path.
 * Out:  the same calls to the runtime's own functions (see hooks.c); what the
 *       engine decides is sampled goes to batch.c.
 *
 * An in-process Gc.Memprof is not disturbed: its trigger is kept apart from
 * ours, is put back before its code looks at it, and is redrawn only when the
 * runtime asks for it.
 */
#define CAML_INTERNALS

#include "sonde.h"

#include <caml/address_class.h>
#include <caml/frame_descriptors.h>
#include <caml/memory.h>
#include <caml/memprof.h>
#include <caml/minor_gc.h>
#include <caml/signals.h>

extern value sonde_orig_caml_memprof_start(value rate, value depth,
                                           value tracker);
extern void sonde_orig_caml_memprof_set_trigger(caml_domain_state *dom);
extern void sonde_orig_caml_alloc_small_dispatch(caml_domain_state *dom,
                                                 intnat wosize, int flags,
                                                 int nallocs,
                                                 unsigned char *lens);
extern void sonde_orig_caml_memprof_sample_young(uintnat wosize, int from_caml,
                                                 int nallocs,
                                                 unsigned char *lens);
extern void sonde_orig_caml_memprof_sample_block(value block,
                                                 size_t allocated_words,
                                                 size_t sampled_words,
                                                 int source);

/* ---- Gc.Memprof in this process ---- */

/* Has the program ever started a profile of its own? Domains that it spawns
   later inherit profiles, so this is never taken back. */
static int memprof_has_started = 0;

CAMLprim value caml_memprof_start(value rate, value depth, value tracker)
{
  memprof_has_started = 1;
  return sonde_orig_caml_memprof_start(rate, depth, tracker);
}

/* ---- The trigger ---- */

/* Called by caml_memprof_set_trigger below. */
__attribute__((used, visibility("hidden")))
void sonde_set_trigger(caml_domain_state *dom)
{
  sonde_orig_caml_memprof_set_trigger(dom);
  struct sonde_domain *d = sonde_domain_of(dom);
  if (d == NULL) return;
  d->memprof_trigger = dom->memprof_young_trigger;
  sonde_rearm(dom, d);
}

/* memprof.c calls this function itself, and a compiler that sees both (gcc's
   -fipa-ra) may have let the caller count on registers which the original does
   not touch. So this keeps every register that a C function may change. It
   runs once per minor collection and sample: the cost does not matter. */
__asm__(
  ".pushsection .text\n"
  ".globl caml_memprof_set_trigger\n"
  ".type caml_memprof_set_trigger, @function\n"
  "caml_memprof_set_trigger:\n"
  ".cfi_startproc\n"
  "push %rbp\n"
  ".cfi_adjust_cfa_offset 8\n"
  ".cfi_rel_offset %rbp, 0\n"
  "mov %rsp, %rbp\n"
  ".cfi_def_cfa_register %rbp\n"
  "push %rax; push %rcx; push %rdx; push %rsi; push %rdi\n"
  "push %r8; push %r9; push %r10; push %r11\n"
  "sub $264, %rsp\n" /* 16 vector registers, and 16-byte alignment */
  "movups %xmm0, (%rsp); movups %xmm1, 16(%rsp)\n"
  "movups %xmm2, 32(%rsp); movups %xmm3, 48(%rsp)\n"
  "movups %xmm4, 64(%rsp); movups %xmm5, 80(%rsp)\n"
  "movups %xmm6, 96(%rsp); movups %xmm7, 112(%rsp)\n"
  "movups %xmm8, 128(%rsp); movups %xmm9, 144(%rsp)\n"
  "movups %xmm10, 160(%rsp); movups %xmm11, 176(%rsp)\n"
  "movups %xmm12, 192(%rsp); movups %xmm13, 208(%rsp)\n"
  "movups %xmm14, 224(%rsp); movups %xmm15, 240(%rsp)\n"
  "call sonde_set_trigger\n"
  "movups (%rsp), %xmm0; movups 16(%rsp), %xmm1\n"
  "movups 32(%rsp), %xmm2; movups 48(%rsp), %xmm3\n"
  "movups 64(%rsp), %xmm4; movups 80(%rsp), %xmm5\n"
  "movups 96(%rsp), %xmm6; movups 112(%rsp), %xmm7\n"
  "movups 128(%rsp), %xmm8; movups 144(%rsp), %xmm9\n"
  "movups 160(%rsp), %xmm10; movups 176(%rsp), %xmm11\n"
  "movups 192(%rsp), %xmm12; movups 208(%rsp), %xmm13\n"
  "movups 224(%rsp), %xmm14; movups 240(%rsp), %xmm15\n"
  "add $264, %rsp\n"
  "pop %r11; pop %r10; pop %r9; pop %r8\n"
  "pop %rdi; pop %rsi; pop %rdx; pop %rcx; pop %rax\n"
  "pop %rbp\n"
  ".cfi_def_cfa %rsp, 8\n"
  "ret\n"
  ".cfi_endproc\n"
  ".size caml_memprof_set_trigger, . - caml_memprof_set_trigger\n"
  ".popsection\n");

/* ---- Allocations ---- */

/* A combined allocation is at most Max_young_wosize words with the headers. */
#define MAX_SUB_BLOCKS (Max_young_whsize / 2 + 1)

/* Report the sampled sub-blocks, which stand from young_ptr on, in the order of
   their allocation: from the top down. */
static void report_young(caml_domain_state *dom, struct sonde_domain *d,
                         uintnat wosize, int from_caml, int nallocs,
                         unsigned char *lens, int tier,
                         const unsigned short *n_samples)
{
  value *bottom = dom->young_ptr + Whsize_wosize(wosize);
  for (int i = nallocs - 1; i >= 0; i--) {
    uintnat size = lens == NULL ? wosize : Wosize_encoded_alloc_len(lens[i]);
    bottom -= Whsize_wosize(size);
    if (n_samples[i] > 0)
      sonde_report(dom, d, Val_hp(bottom), size, tier, n_samples[i],
                   SONDE_SRC_NORMAL, 1, from_caml ? i : -1);
  }
}

/* Sampling has begun in a collection that this allocation brought about. The
   trigger was drawn where the block has gone since, so it is decided now. */
__attribute__((noinline))
static void sample_first(caml_domain_state *dom, struct sonde_domain *d,
                         uintnat wosize, int flags, int nallocs,
                         unsigned char *lens)
{
  unsigned short n_samples[MAX_SUB_BLOCKS];
  if (dom->young_ptr >= d->our_trigger) return;
  int is_hit = flags & CAML_DO_TRACK && nallocs <= MAX_SUB_BLOCKS;
  int tier = d->tier;
  if (is_hit) {
    sonde_announce(dom, d);
    sonde_count_young(dom, d, wosize, nallocs, lens, n_samples);
  } else {
    sonde_arm(dom, d);
  }
  caml_reset_young_limit(dom);
  if (is_hit)
    report_young(dom, d, wosize, flags & CAML_FROM_CAML, nallocs, lens, tier,
                 n_samples);
}

/* Called when an allocation of [wosize] words in all, which has been subtracted
   from young_ptr, went below young_limit: because of our trigger, memprof's, an
   interrupt, or the end of the minor heap.

   Whether the block is sampled is decided here, before anything else happens,
   by where it lies to our trigger. Were it decided where memprof decides, after
   the original has polled for work, samples would be lost: the poll collects if
   fewer than Max_young_whsize words are left, and so a hit in that part of the
   minor heap would bring about a collection and with it a new trigger, while a
   block that is not hit would be allocated there all the same.

   The decision takes the words of the block out of the game: the trigger lies as
   far below young_ptr then as it lay below the block. Until the block is allocated
   other code may allocate: signal handlers, finalisers, memprof's callbacks, other
   threads. It goes by that trigger. When the original returns, young_ptr says where
   the block really goes, and sampling goes on below it. If the original raises
   instead, the allocation does not take place, and what was counted is forgotten
   with this frame. */
void caml_alloc_small_dispatch(caml_domain_state *dom, intnat wosize, int flags,
                               int nallocs, unsigned char *lens)
{
  struct sonde_domain *d = sonde_domain_of(dom);
  if (d == NULL || d->tier == SONDE_NO_TIER) {
    sonde_orig_caml_alloc_small_dispatch(dom, wosize, flags, nallocs, lens);
    if (d != NULL && d->tier != SONDE_NO_TIER)
      sample_first(dom, d, wosize, flags, nallocs, lens);
    return;
  }

  int tier = d->tier;
  unsigned short n_samples[MAX_SUB_BLOCKS];
  int is_hit = dom->young_ptr < d->our_trigger && flags & CAML_DO_TRACK
    && nallocs <= MAX_SUB_BLOCKS;
  if (is_hit) {
    sonde_announce(dom, d);
    sonde_count_young(dom, d, wosize, nallocs, lens, n_samples);
  } else if (dom->young_ptr < d->our_trigger) {
    sonde_arm(dom, d); /* not to be sampled: it takes its samples with it */
  }
  /* young_limit may stay too high for now: that brings others here in vain. */
  sonde_move_trigger(dom, d, Whsize_wosize(wosize));
  sonde_orig_caml_alloc_small_dispatch(dom, wosize, flags, nallocs, lens);
  sonde_move_trigger(dom, d, -(intnat)Whsize_wosize(wosize));
  caml_reset_young_limit(dom);
  /* Observers may have come or gone meanwhile. */
  if (is_hit && d->tier != SONDE_NO_TIER)
    report_young(dom, d, wosize, flags & CAML_FROM_CAML, nallocs, lens, tier,
                 n_samples);
}

/* The original of the function above found young_ptr below the trigger in the
   domain state, which is the higher of memprof's and ours. */
void caml_memprof_sample_young(uintnat wosize, int from_caml, int nallocs,
                               unsigned char *lens)
{
  caml_domain_state *dom = Caml_state;
  struct sonde_domain *d = sonde_domain_of(dom);
  if (d != NULL) {
    /* Ours alone: the decision has been taken. The original must not run, for it
       takes any sample for its own. */
    if (dom->young_ptr >= d->memprof_trigger) return;
    /* It computes its samples from this field. */
    dom->memprof_young_trigger = d->memprof_trigger;
  }
  sonde_orig_caml_memprof_sample_young(wosize, from_caml, nallocs, lens);
}

/* Apart from its caller, which runs for every major allocation of a program that
   nobody watches and must not pay for these arguments. */
Caml_noinline static void sample_block(caml_domain_state *dom,
                                       struct sonde_domain *d, value block,
                                       size_t allocated_words,
                                       size_t sampled_words, int source)
{
  sonde_announce(dom, d);
  uintnat n_samples = sonde_count_block(d, sampled_words);
  sonde_report(dom, d, block, allocated_words, d->tier, n_samples, source,
               Is_young(block), -1);
}

/* A block allocated in the major heap, by unmarshalling, or off the heap. */
void caml_memprof_sample_block(value block, size_t allocated_words,
                               size_t sampled_words, int source)
{
  caml_domain_state *dom = Caml_state;
  struct sonde_domain *d = sonde_domain_of(dom);
  if (CAMLlikely(d != NULL)) {
    if (CAMLlikely(sampled_words < d->words_left))
      d->words_left -= sampled_words;
    else
      sample_block(dom, d, block, allocated_words, sampled_words, source);
  }
  /* Without a profile of the program's own the original finds out, at some
     length, that it has nothing to do. */
  if (memprof_has_started)
    sonde_orig_caml_memprof_sample_block(block, allocated_words, sampled_words,
                                         source);
}
