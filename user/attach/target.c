/* SPDX-License-Identifier: BSD-2-Clause */
/* See target.h. */
#include "user/attach/target.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "user/attach/exe.h"
#include "user/attach/notes.h"
#include "user/attach/proc.h"

/* OCaml 5 allows 4096; anything much beyond is not a registry. */
#define MAX_DOMAINS 65536u

/* No field of a frame descriptor's fixed part lies further in. */
#define MAX_FD_OFFSET 64u

#define PAGE_BYTES 4096u

#define HOW_TO_RELINK                                                                              \
	"install them with `heapsonde-variant --install`, then relink with "                       \
	"OCAMLPARAM='_,runtime-variant=_sonde' or `ocamlopt -runtime-variant _sonde`"

/* ---- memory ------------------------------------------------------------------- */

int target__read(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	struct iovec local = { buf, len };
	struct iovec remote = { (void *)(uintptr_t)addr, len };
	ssize_t n;

	if (len == 0)
		return 0;
	n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

/* ---- the registry ------------------------------------------------------------- */

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

int target__domains(const struct target *t, struct sonde_domain_info **out)
{
	struct sonde_domain_info *live = NULL;
	struct sonde_registry reg;
	uint64_t *slots = NULL;
	int n = 0, ret;

	*out = NULL;
	/* Again, for the copy in *t may date from before the program started. */
	ret = target__read(t->pid, t->load_bias + t->probes.registry_vaddr, &reg, sizeof(reg));
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
		ret = target__read(t->pid, reg.domains, slots, reg.max_domains * sizeof(*slots));
		if (ret)
			goto fail;
	}
	for (uint32_t i = 0; i < reg.max_domains; i++) {
		if (!slots[i])
			continue;
		ret = target__read(t->pid, slots[i], &live[n], sizeof(live[n]));
		if (ret)
			goto fail;
		if (!live[n].live)
			continue;
		/* Not known to the domain itself yet: ask where the runtime keeps it. */
		if (live[n].unique_id == UINT32_MAX) {
			ret = target__read(t->pid, live[n].unique_id_addr, &live[n].unique_id,
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
	return target__read(t->pid, domain->gc_addr, out, sizeof(*out));
}

/* ---- opening ------------------------------------------------------------------ */

static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, 0) != 0;
}

static int no_process(pid_t pid, struct hs_error *err)
{
	return hs_error__set(err, -ESRCH, "no process with PID %d", (int)pid);
}

static int open_failed(const struct target *t, int code, struct hs_error *err)
{
	switch (code) {
	case -ENOENT:
	case -ESRCH:
		return hs_error__set(err, -ESRCH, "process %d has ended", (int)t->pid);
	case -EACCES:
	case -EPERM:
		return hs_error__set(err, code,
				     "not permitted to look into process %d of user %u: that needs "
				     "the capability CAP_SYS_PTRACE (%s)",
				     (int)t->pid, (unsigned)t->uid,
				     geteuid()
					     ? "run as root"
					     : "taken from root here, or a security module denies");
	case -ENOMEM:
		return hs_error__set(err, code, "out of memory");
	default:
		return hs_error__set(err, -ENOEXEC, "cannot read the executable of process %d: %s",
				     (int)t->pid, strerror(-code));
	}
}

static int open_pidfd(struct target *t, struct proc_status *status, struct hs_error *err)
{
	int ret = proc__status(t->pid, status), saved;

	if (!ret && status->tgid != t->pid)
		return hs_error__set(err, -ESRCH, "%d is a thread of process %d: use that PID",
				     (int)t->pid, (int)status->tgid);
	t->pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	saved = errno;
	if (t->pidfd < 0 && saved == ENOSYS)
		return hs_error__set(err, -ENOSYS, "this kernel lacks pidfd_open");
	if (t->pidfd < 0)
		return no_process(t->pid, err);
	/* Only from here on is it certain that the PID means this process. */
	ret = proc__status(t->pid, status);
	if (ret && !has_ended(t->pidfd))
		return hs_error__set(
			err, -EACCES,
			"process %d is hidden (/proc mounted with hidepid?): run as root",
			(int)t->pid);
	if (ret)
		return no_process(t->pid, err);
	t->uid = status->uid;
	if (status->state == 'Z' || status->state == 'X')
		return hs_error__set(err, -ESRCH, "process %d has ended (it is a zombie)",
				     (int)t->pid);
	return 0;
}

/*
 * The kernel notes where it put the entry point of the executable (not of the
 * dynamic linker): no guessing from the order of mappings.
 */
static int read_load_bias(struct target *t, uint64_t link_entry)
{
	int ret = proc__auxv(t->pid, AT_ENTRY, &t->entry);

	if (ret)
		return ret;
	t->load_bias = t->entry - link_entry;
	return t->load_bias % PAGE_BYTES ? -ENOEXEC : 0;
}

static int read_registry(struct target *t, const struct exe_info *info, struct hs_error *err)
{
	int ret = target__read(t->pid, t->load_bias + t->probes.registry_vaddr, &t->registry,
			       sizeof(t->registry));

	/*
	 * Yama can forbid reading memory where reading /proc is allowed. What
	 * the program has in its file will do until somebody attaches, except
	 * for the address, which is not relocated there.
	 */
	if (ret == -EPERM) {
		t->registry = info->registry;
		t->registry.domains = 0;
		ret = 0;
	}
	if (ret == -ESRCH)
		return open_failed(t, ret, err);
	if (ret)
		return hs_error__set(err, -EPROTO,
				     "process %d: cannot read the description of its probes: %s",
				     (int)t->pid, strerror(-ret));
	return check_registry(t, err);
}

static int look_into_exe(struct target *t, int fd, struct exe_cache *cache, struct hs_error *err)
{
	struct hs_error why;
	struct exe_info info;
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return open_failed(t, -errno, err);
	t->exe_dev = st.st_dev;
	t->exe_ino = st.st_ino;
	ret = exe_cache__inspect(cache, fd, &st, &info, &why);
	if (ret == -EBADMSG)
		return hs_error__set(err, -EPROTO, "process %d: %s", (int)t->pid, why.text);
	if (ret)
		return open_failed(t, ret, err);
	t->kind = info.kind;
	if (t->kind == TARGET_NOT_OCAML)
		return 0;
	ret = read_load_bias(t, info.entry);
	if (ret)
		return open_failed(t, ret, err);
	if (t->kind != TARGET_PROBED)
		return 0;
	t->probes = info.probes;
	return read_registry(t, &info, err);
}

static int fill_in(struct target *t, struct exe_cache *cache, struct hs_error *err)
{
	struct proc_status status;
	int ret = open_pidfd(t, &status, err), fd;

	if (ret)
		return ret;
	ret = proc__command(t->pid, &t->command);
	if (ret)
		return open_failed(t, ret, err);
	if (!status.has_memory) {
		/* A kernel thread runs no file, and asking for it could be forbidden. */
		t->exe = strdup("");
		return t->exe ? 0 : open_failed(t, -ENOMEM, err);
	}
	ret = proc__exe(t->pid, &t->exe);
	if (ret)
		return open_failed(t, ret, err);
	fd = open(t->exe_proc, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return open_failed(t, -errno, err);
	ret = look_into_exe(t, fd, cache, err);
	close(fd);
	if (ret)
		return ret;
	/* What was read belongs together only if nothing happened meanwhile. */
	if (!target__same_exe(t))
		return hs_error__set(
			err, -ESRCH,
			"process %d ended or ran another program while being looked at",
			(int)t->pid);
	return 0;
}

int target__open_cached(struct target **out, pid_t pid, struct exe_cache *cache,
			struct hs_error *err)
{
	struct target *t;
	int ret;

	*out = NULL;
	if (pid <= 0)
		return no_process(pid, err);
	t = calloc(1, sizeof(*t));
	if (!t)
		return hs_error__set(err, -ENOMEM, "out of memory");
	t->pid = pid;
	t->pidfd = -1;
	snprintf(t->exe_proc, sizeof(t->exe_proc), "/proc/%d/exe", (int)pid);
	ret = fill_in(t, cache, err);
	if (ret) {
		target__free(t);
		return ret;
	}
	*out = t;
	return 0;
}

int target__open(struct target **out, pid_t pid, struct hs_error *err)
{
	return target__open_cached(out, pid, NULL, err);
}

int target__open_probed(struct target **out, pid_t pid, struct hs_error *err)
{
	int ret = target__open(out, pid, err);
	struct target *t = *out;

	if (ret || t->kind == TARGET_PROBED)
		return ret;
	if (t->kind == TARGET_NATIVE)
		ret = hs_error__set(
			err, -ENOENT,
			"process %d (%.80s) runs OCaml without heapsonde's probes: " HOW_TO_RELINK,
			(int)pid, t->exe);
	else if (t->kind == TARGET_BYTECODE)
		ret = hs_error__set(err, -ENOEXEC,
				    "process %d (%.80s) runs OCaml bytecode: only native programs "
				    "can be attached, so build it with ocamlopt",
				    (int)pid, t->exe);
	else
		ret = hs_error__set(err, -ENOEXEC, "process %d (%.80s) is not an OCaml program",
				    (int)pid, *t->exe ? t->exe : t->command);
	target__free(t);
	*out = NULL;
	return ret;
}

void target__free(struct target *t)
{
	if (!t)
		return;
	if (t->pidfd >= 0)
		close(t->pidfd);
	free(t->command);
	free(t->exe);
	free(t);
}

bool target__same_exe(const struct target *t)
{
	uint64_t entry_now;
	struct stat st;

	if (has_ended(t->pidfd))
		return false;
	if (stat(t->exe_proc, &st))
		/* Forbidden, once privileges were dropped: then there is no telling. */
		return errno == EACCES || errno == EPERM;
	if (st.st_dev != t->exe_dev || st.st_ino != t->exe_ino)
		return false;
	/* The same file executed anew is another program: its addresses moved. */
	return !t->entry || proc__auxv(t->pid, AT_ENTRY, &entry_now) || entry_now == t->entry;
}

bool target__has_execed(const struct target *t)
{
	uint64_t entry_now;
	struct stat st;

	/* A process on its way out has no executable any more: its pidfd tells. */
	if (has_ended(t->pidfd) || stat(t->exe_proc, &st))
		return false;
	if (st.st_dev != t->exe_dev || st.st_ino != t->exe_ino)
		return true;
	return t->entry && !proc__auxv(t->pid, AT_ENTRY, &entry_now) && entry_now != t->entry;
}
