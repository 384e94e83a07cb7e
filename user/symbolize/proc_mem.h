/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target's memory by address, from the files it has mapped if possible.
 *
 * In:   proc_maps.h (address to file), /proc/PID/mem.
 * Out:  bytes, for frametable.c and symbolize.c.
 *
 * Frame tables never change, so the file has the same bytes as the memory, needs no
 * system call once cached, and is there when the target is not. What is in no file
 * is read from the process. Neither source is trusted. (Reading the process this way also
 * reaches pages that it has protected against reading.)
 */
#ifndef HEAPSONDE_PROC_MEM_H
#define HEAPSONDE_PROC_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "user/symbolize/page_cache.h"
#include "user/symbolize/proc_maps.h"

struct proc_mem {
	struct page_cache *pages; /* borrowed */
	struct proc_maps *maps;   /* borrowed */
	struct page_source live;  /* /proc/PID/mem; bound to the address space */
};

/* Everything given is borrowed; mem_fd: struct target's (user/attach/target.h). */
void proc_mem__init(struct proc_mem *m, int mem_fd, struct proc_maps *maps,
		    struct page_cache *pages);

/* What was read from the process is forgotten; files stay in the cache. */
void proc_mem__renew(struct proc_mem *m);

/* Copy exactly len bytes at addr. 0 or -EFAULT. */
int proc_mem__read(struct proc_mem *m, uint64_t addr, void *buf, size_t len);

/* The same from the process only: memory that the loader has changed. */
int proc_mem__read_live(struct proc_mem *m, uint64_t addr, void *buf, size_t len);

/*
 * Copy the string at addr, at most cap bytes of it, without its NUL. Returns its
 * length, or -EFAULT if memory ends before the string and before cap.
 */
ssize_t proc_mem__read_text(struct proc_mem *m, uint64_t addr, char *buf, size_t cap);

#endif /* HEAPSONDE_PROC_MEM_H */
