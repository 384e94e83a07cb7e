/* SPDX-License-Identifier: BSD-2-Clause */
/* See probe_state.h. */
#include "user/attach/probe_state.h"

#include <elf.h>
#include <errno.h>
#include <libelf.h>
#include <string.h>
#include <unistd.h>

#include "user/attach/notes.h"

/*
 * The nop, at which some kernels put their breakpoint, and the first five bytes of the
 * ten-byte nop behind it, where others put theirs or a longer instruction. The last five are
 * that nop's operand, in which the kernel leaves a call that nobody reaches (seen on 7.2).
 */
#define SITE_BYTES 6

static void compare(struct probe_state *s, const uint8_t *here, const uint8_t *file)
{
	for (size_t i = 0; i < SITE_BYTES && !s->is_armed; i++) {
		s->is_armed = here[i] != file[i];
		s->here = here[i];
		s->file = file[i];
	}
}

static int read_one(const struct target *t, Elf *elf, const struct probe_site *site,
		    struct probe_state *s)
{
	uint8_t here[SITE_BYTES], file[SITE_BYTES];
	uint64_t code, semaphore;
	int ret;

	if (notes__vaddr(elf, site->offset, SITE_BYTES, PF_X, &code) ||
	    notes__vaddr(elf, site->sem_offset, sizeof(s->semaphore), PF_W, &semaphore))
		return -EBADMSG;
	ret = target__read(t, t->load_bias + semaphore, &s->semaphore, sizeof(s->semaphore));
	if (!ret)
		ret = target__read(t, t->load_bias + code, here, sizeof(here));
	if (ret)
		return ret;
	if (pread(t->exe_fd, file, sizeof(file), (off_t)site->offset) != SITE_BYTES)
		return -EIO;
	compare(s, here, file);
	return 0;
}

static int failed(const struct target *t, int code, struct hs_error *err)
{
	switch (code) {
	case -ESRCH:
		return target__gone(t, err);
	case -EACCES:
	case -EPERM:
		return hs_error__set(err, -EACCES,
				     "not permitted to read the memory of process %d: that needs "
				     "the capability CAP_SYS_PTRACE (run as root)",
				     (int)t->pid);
	default:
		return hs_error__set(err, code, "cannot read the probes of process %d: %s",
				     (int)t->pid, strerror(-code));
	}
}

int probe_states__read(const struct target *t, struct probe_state *out, struct hs_error *err)
{
	const struct probe_site *site;
	int n = 0, ret = 0;
	Elf *elf;

	if (t->mem_fd < 0)
		return failed(t, -EACCES, err);
	elf_version(EV_CURRENT);
	elf = elf_begin(t->exe_fd, ELF_C_READ, NULL);
	if (!elf)
		return failed(t, -EIO, err);
	for (; !ret && n < PROBE_STATES_MAX; n++) {
		struct probe_state *s = &out[n];

		memset(s, 0, sizeof(*s));
		site = notes__site(&t->probes, (unsigned)n, s->name, sizeof(s->name));
		if (!site)
			break;
		ret = read_one(t, elf, site, s);
	}
	elf_end(elf);
	return ret ? failed(t, ret, err) : n;
}
