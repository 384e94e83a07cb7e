/* SPDX-License-Identifier: BSD-2-Clause */
/* See proc.h. */
#include "user/attach/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_COMMAND_BYTES 16384
/* A process can be in 65,536 groups, each with a number of up to 10 digits. */
#define MAX_STATUS_BYTES (1u << 20)

int proc__open(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int proc__ended(pid_t pid, struct hs_error *err)
{
	return hs_error__set(err, -ESRCH, "process %d has ended", (int)pid);
}

/* Read up to size - 1 bytes of the file and end them with a NUL. */
static ssize_t read_file(int proc_fd, const char *name, char *buf, size_t size)
{
	size_t len = 0;
	ssize_t n;
	int fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (len < size - 1) {
		n = read(fd, buf + len, size - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int saved = errno;

			close(fd);
			return -saved;
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	close(fd);
	buf[len] = 0;
	return (ssize_t)len;
}

/* The text after "\nkey:" in a status file, or NULL. */
static const char *field(const char *status, const char *key)
{
	size_t len = strlen(key);

	/* The first line is the name, which is escaped: no false start there. */
	for (const char *p = strchr(status, '\n'); p; p = strchr(p, '\n')) {
		p++;
		if (!strncmp(p, key, len) && p[len] == ':')
			return p + len + 1;
	}
	return NULL;
}

/* Four numbers after the key. */
static int read_ids(const char *status, const char *key, uint32_t ids[4])
{
	const char *text = field(status, key);

	return text && sscanf(text, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &ids[0],
			      &ids[1], &ids[2], &ids[3]) == 4
		       ? 0
		       : -EIO;
}

static int read_caps(const char *status, const char *key, uint64_t *caps)
{
	const char *text = field(status, key);

	return text && sscanf(text, "%" SCNx64, caps) == 1 ? 0 : -EIO;
}

/* "NSpid: 812 7 1": the PID in each namespace, from that of /proc to its own. */
static int read_inner_pid(const char *status, pid_t *pid)
{
	const char *text = field(status, "NSpid");
	int n = 0;
	char *end;

	*pid = 0;
	for (; text; text = end) {
		long number = strtol(text, &end, 10);

		/* strtol would skip the end of the line. */
		if (end == text || memchr(text, '\n', (size_t)(end - text)))
			break;
		*pid = (pid_t)number;
		n++;
	}
	return n;
}

static int parse_status(const char *text, struct proc_status *out)
{
	const char *state = field(text, "State"), *tgid = field(text, "Tgid");
	uint64_t permitted, effective;

	if (!state || !tgid || sscanf(state, " %c", &out->state) != 1 ||
	    read_ids(text, "Uid", out->uids) || read_ids(text, "Gid", out->gids) ||
	    read_caps(text, "CapPrm", &permitted) || read_caps(text, "CapEff", &effective))
		return -EIO;
	out->tgid = (pid_t)strtol(tgid, NULL, 10);
	out->pid_levels = read_inner_pid(text, &out->inner_pid);
	out->uid = out->uids[1];
	out->capabilities = permitted | effective;
	out->has_memory = field(text, "VmSize") != NULL;
	return 0;
}

int proc__read_status(int proc_fd, struct proc_status *out)
{
	char *text = malloc(MAX_STATUS_BYTES);
	ssize_t n;
	int ret;

	if (!text)
		return -ENOMEM;
	n = read_file(proc_fd, "status", text, MAX_STATUS_BYTES);
	ret = n < 0 ? (int)n : parse_status(text, out);
	free(text);
	return ret;
}

/* PF_KTHREAD in the kernel's linux/sched.h. */
#define FLAG_KERNEL_THREAD 0x00200000u

bool proc__is_kernel_thread(int proc_fd)
{
	const char *name_end;
	unsigned int flags;
	char text[1024];

	if (read_file(proc_fd, "stat", text, sizeof(text)) < 0)
		return false;
	/* The name may hold anything, so count from its end: state, ppid, pgrp, session, tty,
	 * tpgid, flags. */
	name_end = strrchr(text, ')');
	return name_end && sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & FLAG_KERNEL_THREAD;
}

int proc__check_mounted(struct hs_error *err)
{
	char *text = malloc(MAX_STATUS_BYTES);
	pid_t pid;
	ssize_t n;
	int levels = -1;

	if (!text)
		return hs_error__set(err, -ENOMEM, "out of memory");
	n = read_file(AT_FDCWD, "/proc/self/status", text, MAX_STATUS_BYTES);
	if (n >= 0)
		levels = read_inner_pid(text, &pid);
	free(text);
	if (n < 0 && n != -ENOENT)
		return hs_error__set(err, (int)n, "cannot read /proc/self/status: %s",
				     strerror((int)-n));
	if (levels < 0)
		return hs_error__set(err, -ENODEV,
				     "/proc is not there, or not that of this PID namespace: run "
				     "`mount -t proc proc /proc`");
	/* More than one: it is of an outer namespace. None: this kernel has no namespaces. */
	if (levels > 1)
		return hs_error__set(err, -ENODEV,
				     "/proc is that of another PID namespace than heapsonde's: "
				     "run `mount -t proc proc /proc` (unshare --mount-proc)");
	return 0;
}

/* Length of the UTF-8 character at s, or 0 if it is none, or a control character. */
static size_t printable_char(const unsigned char *s, size_t len)
{
	uint32_t c;
	size_t n;

	if (s[0] < 0x80)
		return s[0] >= ' ' && s[0] != 0x7f;
	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		n = 2;
		c = s[0] & 0x1f;
	} else if ((s[0] & 0xf0) == 0xe0) {
		n = 3;
		c = s[0] & 0x0f;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		n = 4;
		c = s[0] & 0x07;
	} else {
		return 0;
	}
	if (n > len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	/* C1 controls, overlong forms, surrogates, beyond Unicode. */
	if (c < 0xa0 || (n == 3 && c < 0x800) || (n == 4 && c < 0x10000) ||
	    (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
		return 0;
	return n;
}

static void clean(char *text, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t n = printable_char((unsigned char *)text + i, len - i);

		if (n == 0) {
			text[i] = '?';
			n = 1;
		}
		i += n;
	}
}

int proc__read_command(int proc_fd, char **out)
{
	char *text = malloc(MAX_COMMAND_BYTES), comm[64];
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = read_file(proc_fd, "cmdline", text, MAX_COMMAND_BYTES);
	if (n < 0)
		goto fail;
	while (n > 0 && (text[n - 1] == 0 || text[n - 1] == ' '))
		n--;
	for (ssize_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	if (n == 0) {
		n = read_file(proc_fd, "comm", comm, sizeof(comm));
		if (n < 0)
			goto fail;
		comm[strcspn(comm, "\n")] = 0;
		n = snprintf(text, MAX_COMMAND_BYTES, "[%s]", comm);
	}
	text[n] = 0;
	clean(text, (size_t)n);
	*out = text;
	return 0;
fail:
	free(text);
	return (int)n;
}

int proc__read_exe(int proc_fd, char **out)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(proc_fd, "exe", target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = 0;
	clean(target, (size_t)n);
	*out = strdup(target);
	return *out ? 0 : -ENOMEM;
}

int proc__read_auxv(int proc_fd, uint64_t type, uint64_t *value)
{
	uint64_t pairs[128];
	ssize_t n = read_file(proc_fd, "auxv", (char *)pairs, sizeof(pairs));

	if (n < 0)
		return (int)n;
	for (size_t i = 0; i + 1 < (size_t)n / sizeof(pairs[0]); i += 2) {
		if (pairs[i] == type) {
			*value = pairs[i + 1];
			return 0;
		}
		if (pairs[i] == 0) /* AT_NULL ends the vector */
			break;
	}
	return -ENOENT;
}

int proc__status(pid_t pid, struct proc_status *out)
{
	int fd = proc__open(pid), ret;

	if (fd < 0)
		return fd;
	ret = proc__read_status(fd, out);
	close(fd);
	return ret;
}

int proc__command(pid_t pid, char **out)
{
	int fd = proc__open(pid), ret;

	if (fd < 0)
		return fd;
	ret = proc__read_command(fd, out);
	close(fd);
	return ret;
}

int proc__exe(pid_t pid, char **out)
{
	int fd = proc__open(pid), ret;

	if (fd < 0)
		return fd;
	ret = proc__read_exe(fd, out);
	close(fd);
	return ret;
}
