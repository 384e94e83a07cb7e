/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making the daemon's socket; see listen.h.
 *
 * A lock on PATH.lock, which only root can open, tells whether another daemon lives:
 * with it held a socket that is there is a dead one's and may be replaced, and two
 * daemons that begin at once do not take each other's away. Besides, whoever answers
 * at path without the lock (a socket unit of systemd) is left alone.
 */
#include "user/daemon/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define SOCKET_UMASK 0111
#define FOLDER_MODE 0755
#define FOLDER_UMASK 0022

_Static_assert(sizeof(((struct listener *)0)->path) == sizeof(((struct sockaddr_un *)0)->sun_path),
	       "a path of a socket");

static int failed(struct hs_error *err, const char *what, const char *path)
{
	int code = -errno;

	return hs_error__set(err, code, "cannot %s %s: %s", what, path, strerror(-code));
}

static int in_use(struct hs_error *err, const char *path)
{
	return hs_error__set(err, -EADDRINUSE, "another daemon listens on %s", path);
}

/* ---- socket activation ---- */

static int take_from_systemd(struct listener *l, int n, struct hs_error *err)
{
	int fd = SD_LISTEN_FDS_START;

	if (n != 1 || sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) <= 0)
		return hs_error__set(err, -EINVAL,
				     "systemd must hand over one listening Unix stream socket "
				     "(ListenStream=), not %d of another kind",
				     n);
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		return failed(err, "use", "systemd's socket");
	l->fd = fd;
	return 0;
}

/* ---- our own ---- */

static int make_folder(const char *path, struct hs_error *err)
{
	char folder[sizeof(((struct listener *)0)->path)];
	mode_t before;
	char *slash;
	int ret;

	strcpy(folder, path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return 0;
	*slash = 0;
	before = umask(FOLDER_UMASK);
	ret = mkdir(folder, FOLDER_MODE);
	umask(before);
	if (ret && errno != EEXIST)
		return failed(err, "make the folder", folder);
	return 0;
}

static int take_lock(struct listener *l, struct hs_error *err)
{
	char path[sizeof(l->path) + sizeof(".lock")];

	snprintf(path, sizeof(path), "%s.lock", l->path);
	l->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->lock_fd < 0)
		return failed(err, "open", path);
	if (!flock(l->lock_fd, LOCK_EX | LOCK_NB))
		return 0;
	return errno == EWOULDBLOCK ? in_use(err, l->path) : failed(err, "lock", path);
}

static bool somebody_listens(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool answer;

	if (fd < 0)
		return false;
	/* EAGAIN: it listens, and is very busy. */
	answer = !connect(fd, (const struct sockaddr *)address, sizeof(*address)) ||
		 errno == EAGAIN || errno == EINPROGRESS;
	close(fd);
	return answer;
}

static int remove_stale(const struct sockaddr_un *address, struct hs_error *err)
{
	const char *path = address->sun_path;
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : failed(err, "look at", path);
	if (!S_ISSOCK(st.st_mode))
		return hs_error__set(err, -EEXIST, "%s is there, and is not a socket", path);
	if (somebody_listens(address))
		return in_use(err, path);
	if (unlink(path) && errno != ENOENT)
		return failed(err, "replace", path);
	return 0;
}

static int bind_and_listen(struct listener *l, const struct sockaddr_un *address,
			   struct hs_error *err)
{
	mode_t before;
	int ret;

	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return failed(err, "open a socket for", l->path);
	before = umask(SOCKET_UMASK);
	ret = bind(l->fd, (const struct sockaddr *)address, sizeof(*address));
	umask(before);
	if (ret || listen(l->fd, SOMAXCONN))
		return failed(err, "listen on", l->path);
	return 0;
}

static int open_own(struct listener *l, const char *path, struct hs_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int ret;

	if (!*path || strlen(path) >= sizeof(address.sun_path))
		return hs_error__set(err, -ENAMETOOLONG,
				     "the path of a socket has 1 to %zu bytes: %s",
				     sizeof(address.sun_path) - 1, path);
	strcpy(address.sun_path, path);
	strcpy(l->path, path);
	ret = make_folder(path, err);
	if (!ret)
		ret = take_lock(l, err);
	if (!ret)
		ret = remove_stale(&address, err);
	if (!ret)
		ret = bind_and_listen(l, &address, err);
	return ret;
}

int listener__open(struct listener *l, const char *path, struct hs_error *err)
{
	int n = sd_listen_fds(1), ret;

	memset(l, 0, sizeof(*l));
	l->fd = l->lock_fd = -1;
	ret = n > 0 ? take_from_systemd(l, n, err) : open_own(l, path, err);
	if (ret)
		listener__close(l);
	return ret;
}

void listener__close(struct listener *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->lock_fd >= 0)
		close(l->lock_fd);
	l->fd = l->lock_fd = -1;
}
