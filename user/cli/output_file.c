/* SPDX-License-Identifier: BSD-2-Clause */
/* See output_file.h. */
#include "user/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/cli/cli.h"

#define CREATE (O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY)

static int open_error(const char *path, int code, struct hs_error *err)
{
	return hs_error__set(err, code, "cannot open %s: %s", path, strerror(-code));
}

/* ---- what is no file ---- */

/* The descriptor that a path stands for, or -1. */
static int descriptor_of(const char *path)
{
	int fd;

	if (!path || !strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	if (!strcmp(path, "/dev/fd/0"))
		return STDIN_FILENO;
	if (!strncmp(path, "/dev/fd/", 8) && !cli__parse_positive(path + 8, INT32_MAX, &fd))
		return fd;
	return -1;
}

/* As it is: opened by its name it would be emptied, and begin at its beginning. */
static int duplicate(struct output_file *f, const char *path, int fd, struct hs_error *err)
{
	int flags = fcntl(fd, F_GETFL), code;

	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	code = f->fd < 0 ? -errno : (flags & O_ACCMODE) == O_RDONLY ? -EBADF : 0;
	return code ? open_error(path ? path : "standard output", code, err) : 0;
}

/* ---- files ---- */

/* A name beside f->path. */
static int name_temporary(struct output_file *f)
{
	if (asprintf(&f->temporary, "%s.%d.new", f->path, (int)getpid()) >= 0)
		return 0;
	f->temporary = NULL;
	return -ENOMEM;
}

/* A file beside f->path that can take its place. False: there can be none. */
static bool open_temporary(struct output_file *f, const struct stat *st)
{
	if (name_temporary(f))
		return false;
	f->fd = open(f->temporary, CREATE | O_EXCL, 0600);
	/* As sudo's it would belong to root. Whoever may not give it away need not. */
	if (f->fd >= 0 && (st->st_uid == geteuid() || !fchown(f->fd, st->st_uid, st->st_gid)) &&
	    !fchmod(f->fd, st->st_mode & 07777))
		return true;
	if (f->fd >= 0) {
		close(f->fd);
		unlink(f->temporary);
	}
	f->fd = -1;
	free(f->temporary);
	f->temporary = NULL;
	return false;
}

/* There is none of this name. Errors: -EEXIST (by now there is), as output_file__open. */
static int open_new(struct output_file *f, const char *path, struct hs_error *err)
{
	int ret;

	f->path = strdup(path);
	ret = f->path ? 0 : -ENOMEM;
	if (!ret && f->flags & OUTPUT_WHOLE)
		ret = name_temporary(f);
	if (ret)
		return hs_error__set(err, ret, "out of memory");
	f->fd = open(f->temporary ? f->temporary : path, CREATE | O_EXCL, 0666);
	if (f->fd < 0) {
		ret = -errno;
		free(f->temporary);
		f->temporary = NULL;
		return open_error(path, ret, err);
	}
	f->is_new = true;
	return 0;
}

/*
 * A FIFO is opened once somebody reads it, which may take for ever. Signals end us meanwhile as
 * they would anybody: nothing has been attached or written yet.
 */
static int open_fifo(const char *path)
{
	sigset_t ending, before;
	int fd, code;

	cli__ending_signals(&ending);
	pthread_sigmask(SIG_UNBLOCK, &ending, &before);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	code = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = code;
	return fd;
}

static int open_existing(struct output_file *f, const char *path, const struct stat *st,
			 struct hs_error *err)
{
	if (S_ISREG(st->st_mode) && !(f->flags & OUTPUT_FORCE))
		return hs_error__set(err, -EEXIST, "%s exists; --force replaces it", path);
	f->path = realpath(path, NULL);
	/* It must be ours to write, even where it is going to be replaced. */
	if (f->path && S_ISREG(st->st_mode) && st->st_nlink == 1 && !access(f->path, W_OK) &&
	    open_temporary(f, st))
		return 0;
	f->fd = S_ISFIFO(st->st_mode) ? open_fifo(path) : open(path, CREATE | O_TRUNC, 0666);
	return f->fd < 0 ? open_error(path, -errno, err) : 0;
}

int output_file__open(struct output_file *f, const char *path, unsigned int flags,
		      struct hs_error *err)
{
	int fd = descriptor_of(path), ret;
	struct stat st;

	*f = (struct output_file){ .fd = -1, .flags = flags };
	if (fd >= 0)
		return duplicate(f, path, fd, err);
	if (!stat(path, &st))
		return open_existing(f, path, &st, err);
	/* A symbolic link to nowhere is followed. */
	if (!lstat(path, &st)) {
		f->fd = open(path, CREATE | O_TRUNC, 0666);
		return f->fd < 0 ? open_error(path, -errno, err) : 0;
	}
	ret = open_new(f, path, err);
	if (ret == -EEXIST)
		hs_error__set(err, ret, "%s exists; --force replaces it", path);
	return ret;
}

int output_file__take(struct output_file *f)
{
	int fd = f->fd;

	f->fd = -1;
	return fd;
}

FILE *output_file__take_stream(struct output_file *f, struct hs_error *err)
{
	FILE *stream = fdopen(f->fd, "w");

	if (!stream) {
		hs_error__set(err, -errno, "cannot write: %s", strerror(errno));
		return NULL;
	}
	f->fd = -1;
	return stream;
}

static void end(struct output_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	free(f->temporary);
	*f = (struct output_file){ .fd = -1 };
}

/* Not over a file that has come to be since. */
static int rename_new(const struct output_file *f)
{
	int ret = renameat2(AT_FDCWD, f->temporary, AT_FDCWD, f->path, RENAME_NOREPLACE);

	if (ret && (errno == EINVAL || errno == ENOSYS))
		ret = rename(f->temporary, f->path); /* no such call on this file system */
	return ret;
}

int output_file__keep(struct output_file *f, struct hs_error *err)
{
	bool is_careful = f->is_new && !(f->flags & OUTPUT_FORCE);
	int ret = 0;

	if (f->temporary && (is_careful ? rename_new(f) : rename(f->temporary, f->path)))
		ret = hs_error__set(err, -errno, "cannot make %s: %s; what was written is in %s",
				    f->path, strerror(errno), f->temporary);
	end(f);
	return ret;
}

void output_file__drop(struct output_file *f)
{
	if (f->temporary)
		unlink(f->temporary);
	else if (f->is_new && f->path)
		unlink(f->path);
	end(f);
}
