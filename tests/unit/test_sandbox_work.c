/* SPDX-License-Identifier: BSD-2-Clause */
/* What still works within the daemon's sandbox. */
#include "tests/unit/sandbox_child.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

/* ---- what works ---- */

static void *thread(void *arg)
{
	return (char *)arg + 1;
}

static void starts_threads(void)
{
	pthread_t t;
	void *result = NULL;

	CHECK(!pthread_create(&t, NULL, thread, (void *)failed_line));
	CHECK(!pthread_join(t, &result));
	CHECK(result == (char *)failed_line + 1);
}

/* arg: a file that was opened for writing before. */
static void does_its_work(const void *arg)
{
	int out = *(const int *)arg, fd, epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e = { .events = EPOLLIN };
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };
	sigset_t set;
	char *text;

	starts_threads();
	CHECK(epoll >= 0);
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	CHECK(fd >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e));
	CHECK(!timerfd_settime(fd, 0, &soon, NULL));
	CHECK(epoll_wait(epoll, &e, 1, 10000) == 1);
	CHECK(eventfd(0, EFD_CLOEXEC) >= 0);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK(signalfd(-1, &set, SFD_CLOEXEC) >= 0);
	CHECK(syscall(SYS_pidfd_open, getpid(), 0) >= 0);
	CHECK(!prctl(PR_SET_NAME, "worker"));
	CHECK(write(out, "0123456789", 10) == 10);
	CHECK(!ftruncate(out, 5) && lseek(out, 0, SEEK_END) == 5);
	CHECK(dprintf(out, "%s", "more") == 4);
	text = malloc(64 << 20);
	CHECK(text);
	memset(text, 1, 64 << 20);
	free(text);
}

static void supervises(const void *arg)
{
	char text[2] = "";
	int fds[2], pidfd, status = 0;
	pid_t pid;

	(void)arg;
	CHECK(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0);
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		_exit(write(fds[1], "x", 1) != 1 || pause());
	}
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	CHECK(pidfd >= 0);
	CHECK(read(fds[0], text, 1) == 1 && *text == 'x');
	CHECK_FAILS(kill(pid, SIGKILL), EPERM);
	CHECK_FAILS(syscall(SYS_pidfd_send_signal, pidfd, SIGSTOP, NULL, 0), EPERM);
	CHECK(!syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0));
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

/* What sandbox__enter_worker takes away. */
static void does_not_supervise(const void *arg)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);

	(void)arg;
	CHECK(pidfd >= 0);
	CHECK_FAILS(fork(), EPERM);
	CHECK_FAILS(syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0), EPERM);
	CHECK_FAILS(socket(AF_UNIX, SOCK_DGRAM, 0), EPERM);
	CHECK_FAILS(socketpair(AF_UNIX, SOCK_STREAM, 0, (int[2]){ 0 }), EPERM);
	CHECK_FAILS(accept(0, NULL, NULL), EPERM);
}

static void work(void **state)
{
	char path[128];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/old", folder);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	passes(SUPERVISOR, does_its_work, &fd);
	passes(WORKER, does_its_work, &fd);
	close(fd);
	passes(SUPERVISOR, supervises, NULL);
	passes(WORKER, does_not_supervise, NULL);
}

/* ---- targets ---- */

static int secret = 4711;

static void reads_a_target(const void *arg)
{
	pid_t pid = *(const pid_t *)arg;
	int copy = 0, fd;
	struct iovec local = { &copy, sizeof(copy) }, remote = { &secret, sizeof(secret) };
	char path[128];

	CHECK(process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(copy) && copy == 4711);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	copy = 0;
	CHECK(fd >= 0);
	CHECK(pread(fd, &copy, sizeof(copy), (off_t)(uintptr_t)&secret) == sizeof(copy));
	CHECK(copy == 4711);
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	CHECK(open(path, O_RDONLY | O_CLOEXEC) >= 0);
	/* An executable that only its owner may read. */
	snprintf(path, sizeof(path), "%s/private/exe", folder);
	CHECK(open(path, O_RDONLY | O_CLOEXEC) >= 0);
}

static void somebody_elses_target(void **state)
{
	int ready[2];
	pid_t pid;
	char c;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		secret = 4711;
		if (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	passes(WORKER, reads_a_target, &pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

/* ---- BPF ---- */

#define INSN(code_, dst, src, off_, imm_)                                                          \
	((struct bpf_insn){ .code = (code_),                                                       \
			    .dst_reg = (dst),                                                      \
			    .src_reg = (src),                                                      \
			    .off = (off_),                                                         \
			    .imm = (imm_) })

__attribute__((noinline)) static void probed(void)
{
	__asm__ volatile("");
}

/* Where a function is in its file. */
static unsigned long file_offset(const void *code)
{
	unsigned long at = (unsigned long)code, start, end, offset, found = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && at >= start &&
		    at < end)
			found = at - start + offset;
	if (f)
		fclose(f);
	return found;
}

/* A program that counts in element 0 of an array. */
static int load_counter(int map)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_VALUE, 0, map),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, 1),
		INSN(BPF_STX | BPF_DW | BPF_ATOMIC, BPF_REG_1, BPF_REG_2, 0, BPF_ADD),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_UPROBE_MULTI);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "hs_test", "Dual BSD/GPL", insns, N_OF(insns),
			     &opts);
}

static void attaches(const void *arg)
{
	unsigned long offset = file_offset(probed);
	LIBBPF_OPTS(bpf_link_create_opts, opts, .uprobe_multi.path = "/proc/self/exe",
		    .uprobe_multi.offsets = &offset, .uprobe_multi.cnt = 1,
		    .uprobe_multi.pid = (__u32)getpid());
	uint32_t zero = 0;
	uint64_t hits = 0;
	int map, prog, link;
	void *ring;

	(void)arg;
	map = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "hs_test", 0, 0, 4096, NULL);
	CHECK(map >= 0);
	ring = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	CHECK(ring != MAP_FAILED);
	map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "hs_test", 4, 8, 1, NULL);
	CHECK(map >= 0);
	prog = load_counter(map);
	CHECK(prog >= 0);
	link = bpf_link_create(prog, -1, BPF_TRACE_UPROBE_MULTI, &opts);
	CHECK(link >= 0);
	probed();
	probed();
	CHECK(!bpf_map_lookup_elem(map, &zero, &hits) && hits == 2);
	CHECK(!close(link));
	probed();
	CHECK(!bpf_map_lookup_elem(map, &zero, &hits) && hits == 2);
}

static void bpf_works(void **state)
{
	(void)state;
	if (!kernel.bpf || !kernel.uprobe_multi_by_pid)
		skip();
	passes(WORKER, attaches, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work),
		cmocka_unit_test(somebody_elses_target),
		cmocka_unit_test(bpf_works),
	};

	return cmocka_run_group_tests(tests, set_up, clean_up);
}
