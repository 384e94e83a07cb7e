/* SPDX-License-Identifier: BSD-2-Clause */
/* See metrics_listen.h. */
#include "user/daemon/metrics_listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64
/* As a name of a host may be long. */
#define HOST_BYTES 256

static int not_an_address(const char *addr_port, struct hs_error *err)
{
	return hs_error__set(err, -EINVAL,
			     "not an address for metrics: %s (ADDR:PORT, [IPV6]:PORT or :PORT)",
			     addr_port);
}

static int is_port(const char *text)
{
	size_t len = strspn(text, "0123456789");

	return len > 0 && len <= 5 && !text[len] && atoi(text) <= 65535;
}

/* Take addr_port apart: host is "" for all addresses, *port points into addr_port. */
static int split(const char *addr_port, char host[HOST_BYTES], const char **port)
{
	const char *colon = strrchr(addr_port, ':'), *from = addr_port;
	size_t len;

	if (!colon || !is_port(colon + 1))
		return -EINVAL;
	*port = colon + 1;
	len = (size_t)(colon - from);
	if (from[0] == '[') {
		if (len < 3 || from[len - 1] != ']')
			return -EINVAL;
		from++;
		len -= 2;
	} else if (memchr(from, ':', len)) {
		return -EINVAL; /* IPv6 without brackets: which colon is the port's? */
	}
	if (len == 1 && *from == '*')
		len = 0;
	if (len >= HOST_BYTES)
		return -EINVAL;
	memcpy(host, from, len);
	host[len] = 0;
	return 0;
}

int metrics_listen__check(const char *addr_port)
{
	char host[HOST_BYTES];
	const char *port;

	return split(addr_port, host, &port);
}

static int listen_on(const struct addrinfo *a, int with_ipv4)
{
	int on = 1, off = !with_ipv4, saved;
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/* So that a restart need not wait for what the last one left. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, BACKLOG))
		return fd;
	saved = errno;
	close(fd);
	return -saved;
}

/* For all addresses: both families by one socket, or IPv4 where there is no IPv6. */
static int listen_everywhere(const struct addrinfo *list)
{
	static const int families[] = { AF_INET6, AF_INET };
	int fd = -EADDRNOTAVAIL;

	for (size_t i = 0; i < 2 && fd < 0 && fd != -EADDRINUSE; i++)
		for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
			if (a->ai_family == families[i])
				fd = listen_on(a, 1);
	return fd;
}

int metrics_listen(const char *addr_port, struct hs_error *err)
{
	const struct addrinfo hints = { .ai_flags = AI_PASSIVE,
					.ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	char host[HOST_BYTES];
	const char *port;
	int ret = split(addr_port, host, &port), fd;

	if (ret)
		return not_an_address(addr_port, err);
	ret = getaddrinfo(*host ? host : NULL, port, &hints, &list);
	if (ret)
		return hs_error__set(err, -EINVAL, "cannot serve metrics on %s: %s", addr_port,
				     gai_strerror(ret));
	fd = *host ? listen_on(list, 0) : listen_everywhere(list);
	freeaddrinfo(list);
	if (fd < 0)
		return hs_error__set(err, fd, "cannot serve metrics on %s: %s", addr_port,
				     strerror(-fd));
	return fd;
}

int metrics_listen__port(int fd)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &len))
		return -errno;
	if (a.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
	return ntohs(((struct sockaddr_in *)&a)->sin_port);
}
