/* SPDX-License-Identifier: BSD-2-Clause */
/* See registry.h, and target.h for what is public. */
#include "user/attach/registry.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/attach/notes.h"

/* OCaml 5 allows 4096; anything much beyond is not a registry. */
#define MAX_DOMAINS 65536u

/* No field of a frame descriptor's fixed part lies further in. */
#define MAX_FD_OFFSET 64u

int target__read(const struct target *t, uint64_t addr, void *buf, size_t len)
{
	size_t done = 0;

	if (t->mem_fd < 0)
		return -EPERM;
	if (addr > INT64_MAX || len > INT64_MAX - addr) /* pread's offset is signed */
		return -EFAULT;
	while (done < len) {
		ssize_t n = pread(t->mem_fd, (char *)buf + done, len - done, (off_t)(addr + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EIO ? -EFAULT : -errno;
		if (n == 0) /* nobody has this address space any more */
			return -ESRCH;
		done += (size_t)n;
	}
	return 0;
}

static bool version_is_text(const struct sonde_registry *reg)
{
	size_t len = strnlen(reg->ocaml_version, sizeof(reg->ocaml_version));

	for (size_t i = 0; i < len; i++)
		if (!isgraph((unsigned char)reg->ocaml_version[i]))
			return false;
	return len > 0 && len < sizeof(reg->ocaml_version);
}

static int check_registry(const struct target *t, struct hs_error *err)
{
	const struct sonde_registry *reg = &t->registry;
	const char *missing;

	if (reg->abi_version != SONDE_ABI_VERSION)
		return hs_error__set(err, -EPROTO,
				     "process %d has probes of version %u, this heapsonde reads "
				     "version %u: " HOW_TO_RELINK,
				     (int)t->pid, reg->abi_version, SONDE_ABI_VERSION);
	if (reg->size_bytes != sizeof(*reg) || !version_is_text(reg) ||
	    reg->max_domains > MAX_DOMAINS || reg->domains % sizeof(uint64_t) ||
	    (reg->fd_retaddr_bytes != 4 && reg->fd_retaddr_bytes != 8) ||
	    reg->fd_frame_data > MAX_FD_OFFSET || reg->fd_num_live > MAX_FD_OFFSET ||
	    reg->fd_live_ofs > MAX_FD_OFFSET)
		return hs_error__set(err, -EPROTO,
				     "process %d: the description of its probes is damaged",
				     (int)t->pid);
	missing = notes__missing(&t->probes);
	if (missing)
		return hs_error__set(err, -EPROTO, "process %d lacks the probe %s: " HOW_TO_RELINK,
				     (int)t->pid, missing);
	return 0;
}

int registry__read(struct target *t, const struct sonde_registry *in_file, struct hs_error *err)
{
	int ret;

	/*
	 * Yama can forbid reading memory where reading /proc is allowed. What
	 * the program has in its file will do until somebody attaches, except
	 * for the address, which is not relocated there.
	 */
	if (t->mem_fd < 0) {
		t->registry = *in_file;
		t->registry.domains = 0;
		return check_registry(t, err);
	}
	ret = target__read(t, t->load_bias + t->probes.registry_vaddr, &t->registry,
			   sizeof(t->registry));
	if (ret == -ESRCH)
		return target__gone(t, err);
	if (ret)
		return hs_error__set(err, -EPROTO,
				     "process %d: cannot read the description of its probes: %s",
				     (int)t->pid, strerror(-ret));
	return check_registry(t, err);
}

int registry__check_counted(const struct target *t, const struct probe_site *site,
			    struct hs_error *err)
{
	uint16_t count;

	if (target__read(t, t->load_bias + site->sem_vaddr, &count, sizeof(count)) || count)
		return 0;
	return hs_error__set(err, -EOPNOTSUPP,
			     "cannot reach the probes of process %d: its executable has been "
			     "changed since it was started, and overlayfs keeps the new one apart, "
			     "or it has changed its semaphores itself: restart the program",
			     (int)t->pid);
}

int target__domains(const struct target *t, struct sonde_domain_info **out)
{
	struct sonde_domain_info *live = NULL;
	struct sonde_registry reg;
	uint64_t *slots = NULL;
	int n = 0, ret;

	*out = NULL;
	/* Again, for the copy in *t may date from before the program started. */
	ret = target__read(t, t->load_bias + t->probes.registry_vaddr, &reg, sizeof(reg));
	if (ret)
		return ret;
	if (reg.max_domains > MAX_DOMAINS || reg.domains % sizeof(uint64_t))
		return -EPROTO;
	slots = calloc(reg.max_domains + 1u, sizeof(*slots));
	live = calloc(reg.max_domains + 1u, sizeof(*live));
	ret = -ENOMEM;
	if (!slots || !live)
		goto fail;
	/* Below the load address: not relocated yet, the program has not started. */
	if (reg.domains && reg.domains >= t->load_bias) {
		ret = target__read(t, reg.domains, slots, reg.max_domains * sizeof(*slots));
		if (ret)
			goto fail;
	}
	for (uint32_t i = 0; i < reg.max_domains; i++) {
		if (!slots[i])
			continue;
		ret = target__read(t, slots[i], &live[n], sizeof(live[n]));
		if (ret)
			goto fail;
		if (!live[n].live)
			continue;
		/* Not known to the domain itself yet: ask where the runtime keeps it. */
		if (live[n].unique_id == UINT32_MAX) {
			ret = target__read(t, live[n].unique_id_addr, &live[n].unique_id,
					   sizeof(live[n].unique_id));
			if (ret)
				goto fail;
		}
		n++;
	}
	free(slots);
	*out = live;
	return n;
fail:
	free(slots);
	free(live);
	return ret;
}

int target__counts(const struct target *t, const struct sonde_domain_info *domain,
		   struct sonde_gc *out)
{
	return target__read(t, domain->gc_addr, out, sizeof(*out));
}
