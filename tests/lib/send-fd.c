/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * send-fd [-n N] SOCKET [FD…]: a client of the daemon with no manners.
 *
 * Sends stdin to a Unix stream socket as it is, with the descriptors FD beside its
 * first byte, says "sent" on stderr, and copies what comes back to stdout until the
 * other side closes. With -n it does so on N connections one after the other, holds
 * them all, and copies from the last. Exit 0; 1 if it could not connect or send at
 * all. That the other side reads no further is not an error. Dies of SIGALRM when it
 * has waited for a minute.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FDS_MAX 253 /* the kernel's */

static char *read_all(size_t *n)
{
	size_t room = 1 << 16;
	char *bytes = malloc(room);
	ssize_t got;

	*n = 0;
	while (bytes && (got = read(STDIN_FILENO, bytes + *n, room - *n)) > 0) {
		*n += (size_t)got;
		if (*n == room) {
			char *more = realloc(bytes, room *= 2);

			if (!more)
				free(bytes);
			bytes = more;
		}
	}
	return bytes;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd >= 0 && !connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	perror(path);
	exit(1);
}

/* Until all is sent or nobody reads. */
static void send_all(int fd, const char *bytes, size_t n, const int *fds, size_t n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (char *)bytes, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n_fds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	while (iov.iov_len) {
		ssize_t sent = sendmsg(fd, &msg, 0);

		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
			return;
		if (sent < 0) {
			perror("sendmsg");
			exit(1);
		}
		iov.iov_base = (char *)iov.iov_base + sent;
		iov.iov_len -= (size_t)sent;
		msg.msg_controllen = 0;
	}
}

int main(int argc, char **argv)
{
	int n_connections = 1, opt, fd = -1, fds[FDS_MAX];
	char buffer[1 << 16];
	size_t n, n_fds = 0;
	ssize_t got;

	while ((opt = getopt(argc, argv, "n:")) != -1) {
		if (opt != 'n')
			return 2;
		n_connections = atoi(optarg);
	}
	if (optind >= argc || argc - optind - 1 > FDS_MAX) {
		fprintf(stderr, "usage: send-fd [-n N] SOCKET [FD...]\n");
		return 2;
	}
	for (int i = optind + 1; i < argc; i++)
		fds[n_fds++] = atoi(argv[i]);
	signal(SIGPIPE, SIG_IGN);
	alarm(60);
	char *bytes = read_all(&n);
	for (int i = 0; i < n_connections; i++) {
		fd = connect_to(argv[optind]);
		send_all(fd, bytes, n, fds, n_fds);
	}
	fprintf(stderr, "sent\n");
	while ((got = read(fd, buffer, sizeof(buffer))) > 0)
		if (write(STDOUT_FILENO, buffer, (size_t)got) != got)
			return 1;
	return 0;
}
