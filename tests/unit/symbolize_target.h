/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A struct target for any process at all, with or without probes, as far as the
 * symbolizer looks at it.
 *
 * In:   a PID and the layout of frame descriptors that the process would tell.
 * Out:  for symbolizer__new in test_symbolize*.c.
 */
#ifndef SYMBOLIZE_TARGET_H
#define SYMBOLIZE_TARGET_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/attach/proc.h"
#include "user/attach/target.h"
#include "user/symbolize/symbolize.h"

/* What cannot be opened is -1. To be closed with target__close_by_hand. */
static inline struct target target__by_hand(pid_t pid, const struct frame_layout *layout)
{
	struct target t = { .pid = pid, .kind = TARGET_PROBED, .pidfd = -1, .exe_fd = -1 };
	struct stat st;

	t.registry.fd_retaddr_bytes = layout->retaddr_bytes;
	t.registry.fd_frame_data = layout->frame_data;
	t.registry.fd_num_live = layout->num_live;
	t.registry.fd_live_ofs = layout->live_ofs;
	t.proc_fd = proc__open(pid);
	t.mem_fd = openat(t.proc_fd, "mem", O_RDONLY | O_CLOEXEC);
	t.maps_fd = openat(t.proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	if (!fstatat(t.proc_fd, "exe", &st, 0)) {
		t.exe_dev = st.st_dev;
		t.exe_ino = st.st_ino;
	}
	return t;
}

static inline void target__close_by_hand(struct target *t)
{
	close(t->proc_fd);
	close(t->mem_fd);
	close(t->maps_fd);
}

/* The symbolizer lives on without the target. */
static inline int symbolizer__by_hand(struct symbolizer **out, pid_t pid,
				      const struct frame_layout *layout, struct hs_error *err)
{
	struct target t = target__by_hand(pid, layout);
	int ret = symbolizer__new(out, &t, err);

	target__close_by_hand(&t);
	return ret;
}

#endif /* SYMBOLIZE_TARGET_H */
