/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trying what the kernel offers; see kernel.h.
 *
 * In:   the kernel, the capabilities of this process, HEAPSONDE_WITHOUT.
 * Out:  struct kernel_features.
 */
#include "user/attach/kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#define UPROBE_PMU "/sys/bus/event_source/devices/uprobe/"

/* uprobe(2), where an optimized probe enters the kernel. glibc has no name yet. */
#define SYS_UPROBE_X86_64 336

#define INSN(code_, dst, src, off_, imm_)                                                          \
	((struct bpf_insn){ .code = (code_),                                                       \
			    .dst_reg = (dst),                                                      \
			    .src_reg = (src),                                                      \
			    .off = (off_),                                                         \
			    .imm = (imm_) })
#define MOV_IMM(dst, imm) INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm)
#define MOV_REG(dst, src) INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define ADD_IMM(dst, imm) INSN(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, imm)
#define CALL(helper) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, helper)
#define EXIT() INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* ---- text files ------------------------------------------------------------- */

static bool read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = 0;
	return n > 0;
}

static uint64_t effective_caps(void)
{
	char text[4096], *p;

	if (!read_text("/proc/self/status", text, sizeof(text)))
		return 0;
	p = strstr(text, "\nCapEff:");
	return p ? strtoull(p + strlen("\nCapEff:"), NULL, 16) : 0;
}

static enum kernel_lockdown lockdown(void)
{
	char text[128];

	if (!read_text("/sys/kernel/security/lockdown", text, sizeof(text)))
		return LOCKDOWN_UNKNOWN;
	if (strstr(text, "[confidentiality]"))
		return LOCKDOWN_CONFIDENTIALITY;
	if (strstr(text, "[integrity]"))
		return LOCKDOWN_INTEGRITY;
	return strstr(text, "[none]") ? LOCKDOWN_NONE : LOCKDOWN_UNKNOWN;
}

static bool has_btf(void)
{
	unsigned short magic = 0;
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = read(fd, &magic, sizeof(magic)) == (ssize_t)sizeof(magic) && magic == 0xeb9f;
	close(fd);
	return ok;
}

/* ---- BPF -------------------------------------------------------------------- */

/* A file descriptor or a negative errno. */
static int load(const struct bpf_insn *insns, size_t n, __u32 flags, enum bpf_attach_type attach)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = flags, .expected_attach_type = attach);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "hs_probe", "Dual BSD/GPL", insns, n, &opts);
}

static int try_program(void)
{
	const struct bpf_insn insns[] = { MOV_IMM(BPF_REG_0, 0), EXIT() };
	int fd = load(insns, sizeof(insns) / sizeof(insns[0]), 0, 0);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int try_ringbuf(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "hs_probe", 0, 0,
				(__u32)sysconf(_SC_PAGESIZE), NULL);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static bool try_sleepable(void)
{
	const struct bpf_insn insns[] = {
		MOV_REG(BPF_REG_1, BPF_REG_10),
		ADD_IMM(BPF_REG_1, -8),
		MOV_IMM(BPF_REG_2, 8),
		MOV_IMM(BPF_REG_3, 0),
		CALL(BPF_FUNC_copy_from_user),
		MOV_IMM(BPF_REG_0, 0),
		EXIT(),
	};
	int fd = load(insns, sizeof(insns) / sizeof(insns[0]), BPF_F_SLEEPABLE, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * Attach to a directory. A kernel that knows these links gets as far as the path
 * and answers EBADF, as it is no regular file; one that does not says EINVAL. A
 * kernel that filters by process refuses a negative PID before it looks at the
 * path; early ones, which filter by thread, do not mind.
 */
static void try_uprobe_multi(struct kernel_features *f)
{
	const struct bpf_insn insns[] = { MOV_IMM(BPF_REG_0, 0), EXIT() };
	const unsigned long offset = 0;
	LIBBPF_OPTS(bpf_link_create_opts, opts, .uprobe_multi.path = "/",
		    .uprobe_multi.offsets = &offset, .uprobe_multi.cnt = 1);
	int prog = load(insns, sizeof(insns) / sizeof(insns[0]), 0, BPF_TRACE_UPROBE_MULTI);
	int link;

	if (prog < 0)
		return;
	link = bpf_link_create(prog, -1, BPF_TRACE_UPROBE_MULTI, &opts);
	f->uprobe_multi = link == -EBADF;
	if (link >= 0)
		close(link);
	if (f->uprobe_multi) {
		opts.uprobe_multi.pid = (__u32)-1;
		link = bpf_link_create(prog, -1, BPF_TRACE_UPROBE_MULTI, &opts);
		f->uprobe_multi_by_pid = link == -EINVAL;
		if (link >= 0)
			close(link);
	}
	close(prog);
}

static void try_bpf(struct kernel_features *f)
{
	/* What fails here is an answer, not something to log. */
	libbpf_print_fn_t print = libbpf_set_print(NULL);

	f->bpf_error = try_program();
	f->bpf = f->bpf_error == 0;
	if (f->bpf) {
		f->ringbuf_error = try_ringbuf();
		f->ringbuf = f->ringbuf_error == 0;
		f->bpf_loop =
			libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_loop, NULL) == 1;
		f->sleepable_uprobe = try_sleepable();
		try_uprobe_multi(f);
	}
	libbpf_set_print(print);
}

/* ---- the rest --------------------------------------------------------------- */

/*
 * Open a uprobe with a semaphore on a file that does not exist: the kernel looks
 * at the permission first, at the attributes next, at the path last.
 */
static int try_perf_uprobe(void)
{
	static const char path[] = "/proc/self/fd/heapsonde-no-such-file";
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.uprobe_path = (uintptr_t)path,
		.probe_offset = 16,
	};
	char text[64];
	unsigned first_bit;
	int fd;

	if (!read_text(UPROBE_PMU "type", text, sizeof(text)))
		return -EOPNOTSUPP;
	attr.type = (__u32)strtoul(text, NULL, 10);
	if (!read_text(UPROBE_PMU "format/ref_ctr_offset", text, sizeof(text)) ||
	    sscanf(text, "config:%u", &first_bit) != 1 || first_bit > 63)
		return -EOPNOTSUPP;
	attr.config = 16ull << first_bit;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	close(fd);
	return 0;
}

static bool try_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool try_process_vm_readv(void)
{
	volatile int value = 42;
	int copy = 0;
	struct iovec local = { &copy, sizeof(copy) };
	struct iovec remote = { (void *)&value, sizeof(value) };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)sizeof(copy) &&
	       copy == 42;
}

/*
 * Calling it from anywhere but a probe's trampoline is refused; how it is refused
 * tells kernels apart. EPROTO: ten-byte nops. ENXIO: five-byte nops, which damage
 * the target (see runtime/probes.h) and are never used here. ENOSYS: none.
 */
static bool try_nop10(void)
{
#ifdef __x86_64__
	return syscall(SYS_UPROBE_X86_64) == -1 && errno == EPROTO;
#else
	return false;
#endif
}

int kernel_features__probe(struct kernel_features *out, struct hs_error *err)
{
	/* Whoever gains privileges by the start of this file has no say over it. */
	const char *without = secure_getenv("HEAPSONDE_WITHOUT");
	struct utsname uts;

	memset(out, 0, sizeof(*out));
	if (uname(&uts))
		return hs_error__set(err, -ENOSYS, "uname: %s", strerror(errno));
	snprintf(out->release, sizeof(out->release), "%s", uts.release);
	out->lockdown = lockdown();
	out->caps = effective_caps();
	out->btf = has_btf();
	try_bpf(out);
	out->perf_error = try_perf_uprobe();
	out->perf_uprobe = out->perf_error == 0;
	out->nop10 = try_nop10();
	out->pidfd_open = try_pidfd();
	out->process_vm_readv = try_process_vm_readv();
	return kernel_features__without(out, without ? without : "", err);
}

const char *kernel_lockdown__name(enum kernel_lockdown l)
{
	static const char *const names[] = { "unknown", "none", "integrity", "confidentiality" };

	return names[l <= LOCKDOWN_CONFIDENTIALITY ? l : LOCKDOWN_UNKNOWN];
}
