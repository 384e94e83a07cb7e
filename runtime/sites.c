/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The semaphores, the probe sites and the registry.
 *
 * In:   samples and GC states from batch.c and hooks.c.
 * Out:  traps, while somebody is attached; the semaphores' values, which the
 *       kernel writes and which are the only way an observer speaks to us.
 *
 * The semaphores stand in .probes, a writable and file-backed section, as the
 * kernel demands; the dynamic linker does not make it read-only.
 */
#define CAML_INTERNALS

#include <sys/mman.h>
#include <unistd.h>

#include "sonde.h"
#include "probes.h"

#include <caml/frame_descriptors.h>
#include <caml/version.h>

#define PROBES __attribute__((section(".probes"), used))

/* What holds probe sites stands together; the linker makes the symbols. */
#define SITES __attribute__((section("sonde_sites"), noinline))
extern const char __start_sonde_sites[] __attribute__((visibility("hidden")));
extern const char __stop_sonde_sites[] __attribute__((visibility("hidden")));

/* Counted up by the kernel while attached. Aligned so that all tiers can be
   tested a word at a time. */
__attribute__((visibility("hidden"), aligned(8)))
PROBES volatile uint16_t sonde_sem_alloc[SONDE_TIERS + 3];
__attribute__((visibility("hidden")))
PROBES volatile uint16_t sonde_sem_stack[SONDE_STACK_CLASSES];
__attribute__((visibility("hidden")))
PROBES volatile uint16_t sonde_sem_gc[SONDE_GC_PROBES];

/* What the semaphores were when this process was forked off: counts that are
   not about us. All zero in a process that was not forked. */
static uint16_t inherited_alloc[SONDE_TIERS];
static uint16_t inherited_stack[SONDE_STACK_CLASSES];
static uint16_t inherited_gc[SONDE_GC_PROBES];

struct sonde_domain *sonde_domains[SONDE_MAX_DOMAINS];

__attribute__((visibility("hidden")))
PROBES struct sonde_registry sonde_registry = {
  .abi_version = SONDE_ABI_VERSION,
  .size_bytes = sizeof(struct sonde_registry),
  .ocaml_version = OCAML_VERSION_STRING,
  .domains = (uintptr_t)sonde_domains,
  .max_domains = SONDE_MAX_DOMAINS,
  .fd_retaddr_bytes = offsetof(frame_descr, frame_data),
  .fd_frame_data = offsetof(frame_descr, frame_data),
  .fd_num_live = offsetof(frame_descr, num_live),
  .fd_live_ofs = offsetof(frame_descr, live_ofs),
};

/* An attached count beyond what was inherited. When the parent's observer goes
   the kernel may take its count back here as well, so the inherited count only
   ever falls. */
static int is_up(volatile uint16_t *sem, uint16_t *inherited)
{
  uint16_t now = *sem;
  if (now < *inherited) *inherited = now;
  return now > *inherited;
}

uint32_t sonde_tiers_up(void)
{
  /* Nothing attached is the usual case: seven loads. */
  const volatile uint64_t *words = (const volatile uint64_t *)sonde_sem_alloc;
  uint64_t any = 0;
  for (unsigned i = 0; i < sizeof(sonde_sem_alloc) / sizeof(uint64_t); i++)
    any |= words[i];
  if (any == 0) return 0;

  uint32_t mask = 0;
  for (int k = 0; k < SONDE_TIERS; k++)
    if (is_up(&sonde_sem_alloc[k], &inherited_alloc[k])) mask |= 1u << k;
  return mask;
}

uint32_t sonde_stack_depth_up(void)
{
  for (int i = SONDE_STACK_CLASSES - 1; i >= 0; i--)
    if (is_up(&sonde_sem_stack[i], &inherited_stack[i]))
      return SONDE_STACK_MIN << i;
  return 0;
}

int sonde_gc_up(enum sonde_gc_probe probe)
{
  return is_up(&sonde_sem_gc[probe], &inherited_gc[probe]);
}

/* The breakpoints are in copies of our pages that fork has copied once more. Without
   them the child has the file's pages again, as if nobody had ever attached, and
   the kernel puts breakpoints in, and counts them, when somebody attaches to the
   child: into a page that has one already it would not. */
static int take_out_breakpoints(void)
{
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t start = (uintptr_t)__start_sonde_sites & ~(page - 1);
  uintptr_t stop = ((uintptr_t)__stop_sonde_sites + page - 1) & ~(page - 1);

  return madvise((void *)start, stop - start, MADV_DONTNEED);
}

/* Is anything counted, by whomever? */
static int is_any_counted(void)
{
  uint32_t any = 0;
  for (int k = 0; k < SONDE_TIERS; k++) any |= sonde_sem_alloc[k];
  for (int i = 0; i < SONDE_STACK_CLASSES; i++) any |= sonde_sem_stack[i];
  for (int i = 0; i < SONDE_GC_PROBES; i++) any |= sonde_sem_gc[i];
  return any != 0;
}

void sonde_after_fork_in_child(void)
{
  /* Only what was attached to is certain to be pages of a file: of other memory
     (a program that has moved its code to huge pages) nothing would be left. */
  if (is_any_counted() && take_out_breakpoints() == 0) {
    for (int k = 0; k < SONDE_TIERS; k++) sonde_sem_alloc[k] = 0;
    for (int i = 0; i < SONDE_STACK_CLASSES; i++) sonde_sem_stack[i] = 0;
    for (int i = 0; i < SONDE_GC_PROBES; i++) sonde_sem_gc[i] = 0;
    sonde_registry.semaphore = 0;
  }
  for (int k = 0; k < SONDE_TIERS; k++)
    inherited_alloc[k] = sonde_sem_alloc[k];
  for (int i = 0; i < SONDE_STACK_CLASSES; i++)
    inherited_stack[i] = sonde_sem_stack[i];
  for (int i = 0; i < SONDE_GC_PROBES; i++)
    inherited_gc[i] = sonde_sem_gc[i];
}

/* One site per tier: each has its own semaphore and its own observers. */
SITES void sonde_fire_alloc(int tier, const struct sonde_sample *samples,
                            size_t bytes, const struct sonde_shown *shown)
{
  if (!is_up(&sonde_sem_alloc[tier], &inherited_alloc[tier])) return;

#define TIER(k)                                                                \
  case k:                                                                      \
    SONDE_SITE_BATCH("alloc_" #k, "sonde_sem_alloc + 2 * " #k, samples, bytes, \
                     shown->unique_id, k | (__u64)shown->flags << 32,          \
                     shown->now_ns, shown->tid);                               \
    break;
  switch (tier) {
    TIER(0) TIER(1) TIER(2) TIER(3) TIER(4) TIER(5) TIER(6) TIER(7) TIER(8)
    TIER(9) TIER(10) TIER(11) TIER(12) TIER(13) TIER(14) TIER(15) TIER(16)
    TIER(17) TIER(18) TIER(19) TIER(20) TIER(21) TIER(22) TIER(23) TIER(24)
  }
#undef TIER
}

SITES void sonde_fire_gc(enum sonde_gc_probe probe, struct sonde_gc *gc)
{
#define GC_PROBE(id, index, name)                                              \
  case id:                                                                     \
    _Static_assert(id == index, "the assembler needs the number");             \
    SONDE_SITE(name, "sonde_sem_gc + 2 * " #index, gc, sizeof *gc);            \
    break;
  switch (probe) {
    GC_PROBE(SONDE_MINOR_END, 0, "minor_end")
    GC_PROBE(SONDE_MAJOR_END, 1, "major_end")
    GC_PROBE(SONDE_COMPACT, 2, "compact")
    GC_PROBE(SONDE_DOMAIN_SPAWN, 3, "domain_spawn")
    GC_PROBE(SONDE_DOMAIN_TERMINATE, 4, "domain_terminate")
    GC_PROBE(SONDE_EXIT, 5, "exit")
  case SONDE_GC_PROBES:
    break;
  }
#undef GC_PROBE
}

/* Sites that are never executed: an observer attaches to them only to raise
   their semaphores. */
SITES __attribute__((used)) static void never_executed(void)
{
#define NEVER(name, sem)                                                       \
  __asm__ volatile(SONDE_SITE_BYTES SONDE_NOTE(name, sem, ""));
  NEVER("stack_16", "sonde_sem_stack")
  NEVER("stack_32", "sonde_sem_stack + 2")
  NEVER("stack_64", "sonde_sem_stack + 4")
  NEVER("stack_128", "sonde_sem_stack + 6")
  NEVER("stack_256", "sonde_sem_stack + 8")
  NEVER("stack_512", "sonde_sem_stack + 10")
  NEVER("stack_1024", "sonde_sem_stack + 12")
  NEVER("registry", "sonde_registry")
#undef NEVER
}
