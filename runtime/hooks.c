/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The runtime's functions that heapsonde stands in for: collections, blocking
 * sections, domains and the process. Those about allocations are in
 * hooks_alloc.c.
 *
 * In:   the calls that the runtime makes to statmemprof around collections, to
 *       the finalisers at the end of a minor one, before it blocks, and when a
 *       domain begins or ends.
 * Out:  the same calls to the runtime's own functions, under their aliases
 *       sonde_orig_*, so that the program behaves as with the stock runtime;
 *       and the GC probes, with the domain's counters.
 *
 * heapsonde-variant weakens the originals, gives them the aliases and joins
 * them with these objects. So even memprof's calls to its own functions come
 * here. The list of functions is runtime/symbols.list.
 */
#define CAML_INTERNALS

#include "sonde.h"

#include <pthread.h>

#include <caml/finalise.h>
#include <caml/memprof.h>
#include <caml/roots.h>
#include <caml/shared_heap.h>
#include <caml/signals.h>

extern void sonde_orig_caml_memprof_after_minor_gc(caml_domain_state *dom);
extern void sonde_orig_caml_memprof_after_major_gc(caml_domain_state *dom);
extern void sonde_orig_caml_memprof_scan_roots(scanning_action f,
                                               scanning_action_flags fflags,
                                               void *fdata,
                                               caml_domain_state *dom,
                                               _Bool weak);
extern void sonde_orig_caml_memprof_new_domain(caml_domain_state *parent,
                                               caml_domain_state *child);
extern void sonde_orig_caml_memprof_delete_domain(caml_domain_state *dom);
extern void sonde_orig_caml_final_update_last_minor(caml_domain_state *dom);

extern void sonde_orig_caml_enter_blocking_section(void);
extern void sonde_orig_caml_enter_blocking_section_no_pending(void);

extern int caml_domain_terminating(caml_domain_state *dom);

void sonde_announce(caml_domain_state *dom, struct sonde_domain *d)
{
  if (CAMLlikely(!d->is_unannounced)) return;
  d->is_unannounced = 0;
  d->info.unique_id = d->gc.unique_id = dom->unique_id;
  if (sonde_gc_up(SONDE_DOMAIN_SPAWN)) sonde_fire_gc(SONDE_DOMAIN_SPAWN, &d->gc);
}

static void fire_gc(enum sonde_gc_probe probe, caml_domain_state *dom,
                    struct sonde_domain *d)
{
  sonde_flush(d);
  /* Kept up to date for whoever comes and reads the registry. */
  sonde_update_gc(dom, d);
  if (sonde_gc_up(probe)) sonde_fire_gc(probe, &d->gc);
}

/* ---- Collections ---- */

/* Called once per domain and minor collection: the place to look at the
   semaphores, because nothing is allocated between here and minor_end, which
   tells the counters. On 5.3 the runtime sets the trigger after this; later
   versions have done so already. */
void caml_memprof_after_minor_gc(caml_domain_state *dom)
{
  sonde_orig_caml_memprof_after_minor_gc(dom);
  struct sonde_domain *d = sonde_domain_of(dom);
  if (d == NULL) return;
  uint32_t before = d->tier_mask;
  sonde_refresh(d);
  if (d->tier_mask != before) {
    sonde_arm(dom, d);
    caml_reset_young_limit(dom);
    d->armed_heap = NULL; /* on 5.3 young_ptr is yet to be reset: draw again */
  }
}

/* Called by every domain after the barrier that ends a minor collection: from
   here on no block is being promoted, and the minor heap still stands. */
void caml_final_update_last_minor(caml_domain_state *dom)
{
  struct sonde_domain *d = sonde_domain_of(dom);
  if (d != NULL) {
    sonde_announce(dom, d);
    d->gc.minor_collections++;
    /* A terminating domain hands over its blocks here, while no major cycle
       can end: by the time of delete_domain it has left the stop-the-world
       set, and a cycle could end unseen. */
    d->gc.flags = caml_domain_terminating(dom) ? SONDE_GC_TERMINATING : 0;
    fire_gc(SONDE_MINOR_END, dom, d);
  }
  sonde_orig_caml_final_update_last_minor(dom);
}

/* Called by every domain as a major cycle ends, before the colours rotate:
   what is not marked now is dead. */
void caml_memprof_after_major_gc(caml_domain_state *dom)
{
  struct sonde_domain *d = sonde_domain_of(dom);
  if (d != NULL) {
    sonde_announce(dom, d);
    d->gc.major_collections++;
    d->gc.colour_unmarked = caml_global_heap_state.UNMARKED;
    d->gc.colour_marked = caml_global_heap_state.MARKED;
    fire_gc(SONDE_MAJOR_END, dom, d);
  }
  sonde_orig_caml_memprof_after_major_gc(dom);
}

/* In a minor collection, where young_ptr still stands as the program left it: the
   next sample stays as many words away as it was. A collection may come about
   because of where our trigger lies: a poll point in OCaml code enters the runtime
   when young_ptr has come down to young_limit, that is when the very next word is
   to be sampled, and collects if few words are left. To draw again would lose
   that sample.

   [weak] only during a compaction, after the blocks have moved and before their
   old places are freed. A block that has moved is marked at its old place, and
   its first field is its new address. */
void caml_memprof_scan_roots(scanning_action f, scanning_action_flags fflags,
                             void *fdata, caml_domain_state *dom, _Bool weak)
{
  struct sonde_domain *d = sonde_domain_of(dom);
  if (d != NULL && fflags & SCANNING_ONLY_YOUNG_VALUES)
    sonde_before_minor_gc(dom, d);
  sonde_orig_caml_memprof_scan_roots(f, fflags, fdata, dom, weak);
  if (d == NULL || !weak) return;
  d->gc.colour_unmarked = caml_global_heap_state.UNMARKED;
  d->gc.colour_marked = caml_global_heap_state.MARKED;
  fire_gc(SONDE_COMPACT, dom, d);
}

/* ---- Blocking sections ---- */

/* The thread may wait here for long, and others may take the domain over. */
static void before_blocking(void)
{
  caml_domain_state *dom = Caml_state_opt;
  if (dom == NULL) return;
  struct sonde_domain *d = sonde_domain_of(dom);
  if (d != NULL) sonde_flush(d);
}

void caml_enter_blocking_section(void)
{
  before_blocking();
  sonde_orig_caml_enter_blocking_section();
}

void caml_enter_blocking_section_no_pending(void)
{
  before_blocking();
  sonde_orig_caml_enter_blocking_section_no_pending();
}

/* ---- Domains and the process ---- */

void caml_memprof_new_domain(caml_domain_state *parent,
                             caml_domain_state *child)
{
  sonde_orig_caml_memprof_new_domain(parent, child);
  if (child->memprof == NULL) return; /* the domain will not come to be */
  struct sonde_domain *d = sonde_domain_new(parent, child);
  if (d == NULL) return;
  sonde_refresh(d);
  d->gc.tier_mask = d->tier_mask;
}

void caml_memprof_delete_domain(caml_domain_state *dom)
{
  struct sonde_domain *d = sonde_domain_of(dom);
  if (d != NULL) {
    /* One that was never announced was not made in the end. */
    if (!d->is_unannounced) fire_gc(SONDE_DOMAIN_TERMINATE, dom, d);
    d->info.live = 0;
  }
  sonde_orig_caml_memprof_delete_domain(dom);
}

/* The last counters of the domain that exits, which no collection tells. */
__attribute__((destructor)) static void at_exit(void)
{
  caml_domain_state *dom = Caml_state_opt;
  if (dom == NULL) return;
  struct sonde_domain *d = sonde_domain_of(dom);
  if (d == NULL || !d->info.live) return;
  sonde_announce(dom, d);
  fire_gc(SONDE_EXIT, dom, d);
}

/* A forked child samples for nobody, until somebody attaches to it. */
static void in_child(void)
{
  sonde_after_fork_in_child();
  sonde_batch_after_fork_in_child();
  caml_domain_state *dom = Caml_state_opt;
  if (dom == NULL) return;
  struct sonde_domain *d = sonde_domain_of(dom);
  if (d == NULL) return;
  sonde_refresh(d);
  sonde_arm(dom, d);
}

__attribute__((constructor)) static void at_start(void)
{
  pthread_atfork(NULL, NULL, in_child);
}
