/* SPDX-License-Identifier: BSD-2-Clause */
/* See output_file.h. */
#include "user/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CREATE (O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY)

static int open_error(const char *path, int code, struct hs_error *err)
{
	return hs_error__set(err, code, "cannot open %s: %s", path, strerror(-code));
}

/* A file beside f->path that can take its place. False: there can be none. */
static bool open_temporary(struct output_file *f, const struct stat *st)
{
	if (asprintf(&f->temporary, "%s.%d.new", f->path, (int)getpid()) < 0) {
		f->temporary = NULL;
		return false;
	}
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

int output_file__open(struct output_file *f, const char *path, struct hs_error *err)
{
	struct stat st;

	*f = (struct output_file){ .fd = -1 };
	f->fd = open(path, CREATE | O_EXCL, 0666);
	f->is_new = f->fd >= 0;
	if (!f->is_new && errno != EEXIST)
		return open_error(path, -errno, err);
	f->path = f->is_new ? strdup(path) : realpath(path, NULL);
	if (f->is_new)
		return f->path ? 0 : hs_error__set(err, -ENOMEM, "out of memory");
	/* It must be ours to write, even where it is going to be replaced. */
	if (f->path && !stat(f->path, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	    !access(f->path, W_OK) && open_temporary(f, &st))
		return 0;
	f->fd = open(path, CREATE | O_TRUNC, 0666);
	return f->fd < 0 ? open_error(path, -errno, err) : 0;
}

static void end(struct output_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	free(f->temporary);
	*f = (struct output_file){ .fd = -1 };
}

int output_file__keep(struct output_file *f, struct hs_error *err)
{
	int ret = 0;

	if (f->temporary && rename(f->temporary, f->path))
		ret = hs_error__set(err, -errno, "cannot replace %s: %s; the records are in %s",
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
