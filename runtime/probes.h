/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The probe sites: what stands at a site, and how it is described to tools.
 *
 * In:   SONDE_SITE in runtime/sites.c, once per probe.
 * Out:  an instruction sequence that a uprobe can replace, and a stapsdt note
 *       (the format of SystemTap's user-space probes, version 3) that
 *       `readelf -n`, bpftrace and user/attach/notes.c read.
 *
 * Bytes. A site is 16-byte aligned and holds a one-byte nop followed by a
 * ten-byte nop. The note names the one-byte nop: every kernel can emulate it.
 * Kernels from 7.2 on can turn the ten-byte nop into a jump; an attacher that
 * has found that out attaches one byte further. A five-byte nop must never
 * stand here: kernels 6.18 to 7.1 optimize it in a way that overwrites the red
 * zone and kills forked children. The alignment keeps the ten bytes within a
 * page, without which they cannot be attached.
 *
 * Registers. Arguments are in rdi, rsi, rdx, rcx, r8 and r9, as many as there
 * are, always: BPF programs read registers and need not parse the argument
 * strings.
 */
#ifndef SONDE_PROBES_H
#define SONDE_PROBES_H

#include "abi.h"

#if !defined(__x86_64__)
#error "heapsonde's probe sites are written for x86-64"
#endif

/* The note for the label 990 that precedes it. `sem` is an assembler
   expression for the semaphore's address. */
#define SONDE_NOTE(name, sem, args)                                            \
  ".pushsection .note.stapsdt, \"\", @note\n"                                  \
  ".balign 4\n"                                                                \
  ".4byte 992f - 991f, 994f - 993f, 3\n"                                       \
  "991: .asciz \"stapsdt\"\n"                                                  \
  "992: .balign 4\n"                                                           \
  "993: .8byte 990b\n"                                                         \
  ".8byte _.stapsdt.base\n"                                                    \
  ".8byte " sem "\n"                                                           \
  ".asciz \"" SONDE_PROVIDER "\"\n"                                            \
  ".asciz \"" name "\"\n"                                                      \
  ".asciz \"" args "\"\n"                                                      \
  "994: .balign 4\n"                                                           \
  ".popsection\n"                                                              \
  ".ifndef _.stapsdt.base\n"                                                   \
  ".pushsection .stapsdt.base, \"aG\", @progbits, .stapsdt.base, comdat\n"     \
  ".weak _.stapsdt.base\n"                                                     \
  ".hidden _.stapsdt.base\n"                                                   \
  "_.stapsdt.base: .space 1\n"                                                 \
  ".size _.stapsdt.base, 1\n"                                                  \
  ".popsection\n"                                                              \
  ".endif\n"

#define SONDE_SITE_BYTES                                                       \
  ".p2align 4\n"                                                               \
  "990: .byte 0x90\n"                                                          \
  ".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n"

/* Fire a probe whose argument 1 is the pointer `p` and argument 2 the byte
   count `bytes`. The memory clobber makes *p complete before the trap. */
#define SONDE_SITE(name, sem, p, bytes)                                        \
  __asm__ volatile(SONDE_SITE_BYTES SONDE_NOTE(name, sem, "8@%%rdi 8@%%rsi")   \
                   :                                                           \
                   : "D"(p), "S"((__u64)(bytes))                               \
                   : "memory")

/* The same with the arguments of the sampling probes; abi.h says what they are. */
#define SONDE_SITE_BATCH(name, sem, samples, bytes, unique_id, tier, now_ns, tid) \
  do {                                                                         \
    register __u64 r8_ __asm__("r8") = (now_ns);                               \
    register __u64 r9_ __asm__("r9") = (tid);                                  \
    __asm__ volatile(SONDE_SITE_BYTES                                          \
                     SONDE_NOTE(name, sem, "8@%%rdi 8@%%rsi 8@%%rdx 8@%%rcx "  \
                                           "8@%%r8 8@%%r9")                    \
                     :                                                         \
                     : "D"(samples), "S"((__u64)(bytes)),                      \
                       "d"((__u64)(unique_id)), "c"((__u64)(tier)), "r"(r8_),  \
                       "r"(r9_)                                                \
                     : "memory");                                              \
  } while (0)

#endif /* SONDE_PROBES_H */
