/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The system calls that the daemon has left; see sandbox.h and, for the reasons,
 * docs/daemon.md.
 *
 * In:   whether perf uprobes are needed.
 * Out:  a seccomp filter, loaded.
 *
 * Calls are allowed by name: one that a later libc makes first is refused with EPERM,
 * or with ENOSYS where it is known to fall back.
 */
#include "user/daemon/sandbox_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "user/attach/attach.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Whatever is not mentioned below fails with EPERM. */
static const int allowed[] = {
	/* memory, threads, time */
	SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex),
	SCMP_SYS(set_robust_list), SCMP_SYS(get_robust_list), SCMP_SYS(rseq),
	SCMP_SYS(set_tid_address), SCMP_SYS(membarrier), SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity), SCMP_SYS(getcpu), SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep),
	SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(getrandom),
	/* descriptors; those that write do so to what is open already */
	SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(write),
	SCMP_SYS(writev), SCMP_SYS(pwrite64), SCMP_SYS(pwritev), SCMP_SYS(lseek),
	SCMP_SYS(ftruncate), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(close),
	SCMP_SYS(close_range), SCMP_SYS(dup), SCMP_SYS(dup2), SCMP_SYS(dup3), SCMP_SYS(pipe2),
	SCMP_SYS(eventfd2), SCMP_SYS(memfd_create), /* libbpf reserves descriptors with it */
	/* looking at files */
	SCMP_SYS(stat), SCMP_SYS(fstat), SCMP_SYS(lstat), SCMP_SYS(newfstatat), SCMP_SYS(statx),
	SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64),
	SCMP_SYS(getcwd),
	/* waiting */
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(select), SCMP_SYS(pselect6),
	SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_pwait2), SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime),
	SCMP_SYS(timerfd_gettime), SCMP_SYS(signalfd4), SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigpending),
	SCMP_SYS(rt_sigtimedwait), SCMP_SYS(rt_sigsuspend), SCMP_SYS(pause), SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall), SCMP_SYS(wait4), SCMP_SYS(waitid),
	/* clients; listen, bind and connect are done or never needed */
	SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg),
	SCMP_SYS(recvmmsg), SCMP_SYS(sendto), SCMP_SYS(sendmsg), SCMP_SYS(sendmmsg),
	SCMP_SYS(shutdown), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),
	/* targets */
	SCMP_SYS(pidfd_open), SCMP_SYS(process_vm_readv),
	/* who and where we are */
	SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getppid), SCMP_SYS(getpgrp), SCMP_SYS(getpgid),
	SCMP_SYS(getsid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid),
	SCMP_SYS(getresuid), SCMP_SYS(getresgid), SCMP_SYS(getgroups), SCMP_SYS(capget),
	SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(getrusage), SCMP_SYS(times),
	SCMP_SYS(getrlimit),
	/* less still: sandbox__enter_worker */
	SCMP_SYS(seccomp),
	/* the end */
	SCMP_SYS(exit), SCMP_SYS(exit_group)
};

/* Nothing of ours ever does this: whoever tries has taken the process over. */
static const int fatal[] = {
	/* other programs, other processes, other files */
	SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(ptrace), SCMP_SYS(process_vm_writev),
	SCMP_SYS(pidfd_getfd), SCMP_SYS(open_by_handle_at), SCMP_SYS(mknod), SCMP_SYS(mknodat),
	/* other users */
	SCMP_SYS(setuid), SCMP_SYS(setgid), SCMP_SYS(setreuid), SCMP_SYS(setregid),
	SCMP_SYS(setresuid), SCMP_SYS(setresgid), SCMP_SYS(setfsuid), SCMP_SYS(setfsgid),
	SCMP_SYS(setgroups), SCMP_SYS(keyctl), SCMP_SYS(add_key), SCMP_SYS(request_key),
	/* other worlds */
	SCMP_SYS(setns), SCMP_SYS(unshare), SCMP_SYS(chroot), SCMP_SYS(pivot_root), SCMP_SYS(mount),
	SCMP_SYS(umount2), SCMP_SYS(move_mount), SCMP_SYS(mount_setattr), SCMP_SYS(open_tree),
	SCMP_SYS(fsopen), SCMP_SYS(fsconfig), SCMP_SYS(fsmount), SCMP_SYS(fspick),
	/* the machine */
	SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(delete_module),
	SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(reboot), SCMP_SYS(swapon),
	SCMP_SYS(swapoff), SCMP_SYS(acct), SCMP_SYS(quotactl), SCMP_SYS(settimeofday),
	SCMP_SYS(clock_settime), SCMP_SYS(adjtimex), SCMP_SYS(clock_adjtime), SCMP_SYS(sethostname),
	SCMP_SYS(setdomainname),
	/* what exploits like */
	SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(modify_ldt), SCMP_SYS(personality),
	SCMP_SYS(userfaultfd), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register)
};

/* Only what loads, attaches and reads; no program or map of others by its id. */
static const int bpf_commands[] = { BPF_MAP_CREATE,         BPF_MAP_LOOKUP_ELEM,
				    BPF_MAP_UPDATE_ELEM,    BPF_MAP_DELETE_ELEM,
				    BPF_MAP_GET_NEXT_KEY,   BPF_MAP_LOOKUP_AND_DELETE_ELEM,
				    BPF_MAP_LOOKUP_BATCH,   BPF_MAP_LOOKUP_AND_DELETE_BATCH,
				    BPF_MAP_UPDATE_BATCH,   BPF_MAP_DELETE_BATCH,
				    BPF_MAP_FREEZE,         BPF_PROG_LOAD,
				    BPF_PROG_BIND_MAP,      BPF_BTF_LOAD,
				    BPF_OBJ_GET_INFO_BY_FD, BPF_LINK_CREATE,
				    BPF_LINK_UPDATE,        BPF_LINK_DETACH };

/* No locks, leases, owners of signals. */
static const int fcntl_commands[] = { F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD,      F_SETFD,
				      F_GETFL, F_SETFL,         F_GETPIPE_SZ, F_SETPIPE_SZ };

/* Above all no TIOCSTI: a client may pass a terminal. */
static const unsigned long perf_ioctls[] = { PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE,
					     PERF_EVENT_IOC_SET_BPF, PERF_EVENT_IOC_ID };

static const int prctl_options[] = { PR_SET_NAME,        PR_GET_NAME,     PR_SET_PDEATHSIG,
				     PR_GET_DUMPABLE,    PR_CAPBSET_READ, PR_GET_SECUREBITS,
				     PR_GET_SECCOMP,     PR_SET_SECCOMP,  PR_GET_NO_NEW_PRIVS,
				     PR_SET_NO_NEW_PRIVS };

/* To write, to create, to shorten. Three as an access mode means both. */
static const unsigned long open_refused[] = { O_WRONLY, O_RDWR, O_CREAT, O_TRUNC,
					      O_TMPFILE & ~O_DIRECTORY };

/* What the supervisor ends a worker with that does not end by itself. */
static const int signals[] = { SIGTERM, SIGKILL };

#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

/* Rules are collected in a context that remembers the first failure. */
struct filter {
	scmp_filter_ctx ctx;
	int err;
};

static void rule(struct filter *f, uint32_t action, int call, unsigned int n,
		 const struct scmp_arg_cmp *args)
{
	if (!f->err)
		f->err = seccomp_rule_add_array(f->ctx, action, call, n, args);
}

static void rules(struct filter *f, uint32_t action, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++)
		rule(f, action, calls[i], 0, NULL);
}

/* Allow if the bits of mask in an argument are as in value. */
static void allow_if(struct filter *f, int call, unsigned int arg, uint64_t mask, uint64_t value)
{
	struct scmp_arg_cmp is = SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, mask, value);

	rule(f, SCMP_ACT_ALLOW, call, 1, &is);
}

/* Allow a call with one of these ints as an argument, whose upper half counts for nothing. */
static void allow_one_of(struct filter *f, int call, unsigned int arg, const int *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		allow_if(f, call, arg, UINT32_MAX, (uint32_t)values[i]);
}

static void add_opening(struct filter *f)
{
	static const struct {
		int call;
		unsigned int flags_arg;
	} calls[] = { { SCMP_SYS(open), 1 }, { SCMP_SYS(openat), 2 } };
	uint64_t all = 0;

	for (size_t i = 0; i < N_OF(open_refused); i++)
		all |= open_refused[i];
	for (size_t c = 0; c < N_OF(calls); c++) {
		allow_if(f, calls[c].call, calls[c].flags_arg, all, 0);
		for (size_t i = 0; i < N_OF(open_refused); i++) {
			struct scmp_arg_cmp has = SCMP_CMP64(calls[c].flags_arg, SCMP_CMP_MASKED_EQ,
							     open_refused[i], open_refused[i]);

			rule(f, SCMP_ACT_ERRNO(EACCES), calls[c].call, 1, &has);
		}
	}
	rule(f, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(creat), 0, NULL);
	/* Its flags lie in memory. */
	rule(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(openat2), 0, NULL);
}

static void add_processes(struct filter *f)
{
	struct scmp_arg_cmp own_limits[] = { SCMP_CMP64(0, SCMP_CMP_EQ, 0),
					     SCMP_CMP64(2, SCMP_CMP_EQ, 0) };

	allow_if(f, SCMP_SYS(clone), 0, NEW_NAMESPACES, 0);
	/* Its flags lie in memory; glibc goes back to clone. */
	rule(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0, NULL);
	allow_one_of(f, SCMP_SYS(pidfd_send_signal), 1, signals, N_OF(signals));
	allow_one_of(f, SCMP_SYS(prctl), 0, prctl_options, N_OF(prctl_options));
	rule(f, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, own_limits);
	/* Code comes from files that were mapped at the start, and from nowhere else. */
	allow_if(f, SCMP_SYS(mmap), 2, PROT_EXEC, 0);
	allow_if(f, SCMP_SYS(mprotect), 2, PROT_EXEC, 0);
}

static void add_descriptors(struct filter *f)
{
	/* sd_notify makes a datagram socket each time, and needs no connect. */
	struct scmp_arg_cmp notify[] = {
		SCMP_CMP64(0, SCMP_CMP_EQ, AF_UNIX),
		SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, 0xf, SOCK_DGRAM),
	};

	allow_one_of(f, SCMP_SYS(fcntl), 1, fcntl_commands, N_OF(fcntl_commands));
	rule(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, notify);
	allow_if(f, SCMP_SYS(socketpair), 0, UINT32_MAX, AF_UNIX);
}

static void add_bpf(struct filter *f, bool with_perf)
{
	allow_one_of(f, SCMP_SYS(bpf), 0, bpf_commands, N_OF(bpf_commands));
	if (!with_perf)
		return;
	rule(f, SCMP_ACT_ALLOW, SCMP_SYS(perf_event_open), 0, NULL);
	for (size_t i = 0; i < N_OF(perf_ioctls); i++)
		allow_if(f, SCMP_SYS(ioctl), 1, UINT32_MAX, perf_ioctls[i]);
}

/* Load the filter and free it. */
static int load(struct filter *f)
{
	if (!f->err)
		f->err = seccomp_attr_set(f->ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (!f->err) /* a tree, not a list: reading a target is one call after the other */
		f->err = seccomp_attr_set(f->ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!f->err)
		f->err = seccomp_load(f->ctx);
	seccomp_release(f->ctx);
	return f->err;
}

int sandbox_calls__forbid(bool with_perf)
{
	struct filter f = { .ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM)) };

	if (!f.ctx)
		return -ENOMEM;
	rules(&f, SCMP_ACT_KILL_PROCESS, fatal, N_OF(fatal));
	rules(&f, SCMP_ACT_ALLOW, allowed, N_OF(allowed));
	add_opening(&f);
	add_processes(&f);
	add_descriptors(&f);
	add_bpf(&f, with_perf);
	return load(&f);
}

int sandbox_calls__forbid_supervisors(void)
{
	static const int supervisors[] = {
		SCMP_SYS(accept),     SCMP_SYS(accept4),           SCMP_SYS(socket),
		SCMP_SYS(socketpair), SCMP_SYS(pidfd_send_signal),
	};
	/* Threads, and the children that a worker detaches with (user/attach/detach.c). */
	struct scmp_arg_cmp is_fork =
		SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD | HOLDER_CLONE_FLAGS, 0);
	struct filter f = { .ctx = seccomp_init(SCMP_ACT_ALLOW) };

	if (!f.ctx)
		return -ENOMEM;
	rules(&f, SCMP_ACT_ERRNO(EPERM), supervisors, N_OF(supervisors));
	rule(&f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, &is_fork);
	return load(&f);
}
