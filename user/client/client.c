/* SPDX-License-Identifier: BSD-2-Clause */
/* See client.h. */
#include "user/client/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "user/attach/proc.h"
#include "user/common/say.h"

const char *client__path(const char *option)
{
	const char *env = getenv("HEAPSONDE_SOCKET");

	if (option)
		return option;
	return env && *env ? env : WIRE_SOCKET_DEFAULT;
}

bool client__is_there(const char *option)
{
	struct client c;
	bool there = !client__connect(&c, option, NULL);

	client__close(&c);
	return there;
}

static int connect_error(const char *path, int code, struct hs_error *err)
{
	if (code == ENOENT || code == ECONNREFUSED)
		return hs_error__set(err, -code,
				     "no daemon listens on %s: start it with `sudo heapsonde "
				     "daemon`",
				     path);
	return hs_error__set(err, -code, "cannot connect to the daemon on %s: %s", path,
			     strerror(code));
}

int client__connect(struct client *c, const char *option, struct hs_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	c->fd = -1;
	wire_message__init(&c->message);
	c->path = client__path(option);
	if (strlen(c->path) >= sizeof(address.sun_path))
		return hs_error__set(err, -ENAMETOOLONG,
				     "the socket's path is too long (%zu bytes at most): %s",
				     sizeof(address.sun_path) - 1, c->path);
	strcpy(address.sun_path, c->path);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return hs_error__set(err, -errno, "socket: %s", strerror(errno));
	if (connect(c->fd, (struct sockaddr *)&address, sizeof(address))) {
		int code = errno;

		client__close(c);
		return connect_error(c->path, code, err);
	}
	say__detail("connected to the daemon at %s", c->path);
	return 0;
}

/*
 * Do PIDs mean the same to the daemon? Its own is 0 for us where it is outside of our PID
 * namespace. Where it is deeper /proc tells; if it does not, we let the daemon decide.
 */
static int check_namespace(const struct client *c, struct hs_error *err)
{
	struct proc_status status = { 0 };
	struct ucred daemon;
	socklen_t len = sizeof(daemon);

	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &daemon, &len))
		return 0;
	if (daemon.pid > 0 && (proc__check_mounted(err) || proc__status(daemon.pid, &status) ||
			       status.pid_levels <= 1))
		return 0;
	return hs_error__set(err, -EXDEV,
			     "the daemon on %s is in another PID namespace, where PIDs mean other "
			     "processes: run this command there",
			     c->path);
}

int client__send(struct client *c, const json_t *request, int passed_fd, struct hs_error *err)
{
	/* The newline is sent too. */
	size_t size = json_dumpb(request, NULL, 0, JSON_COMPACT) + 1;
	int ret = json_object_get(request, "pid") ? check_namespace(c, err) : 0;

	if (ret)
		return ret;
	if (size > WIRE_REQUEST_MAX_BYTES)
		return hs_error__set(err, -EMSGSIZE,
				     "the request is too long for the daemon (%zu bytes, and %d at "
				     "most)",
				     size, WIRE_REQUEST_MAX_BYTES);
	ret = wire__send_line(c->fd, request, &passed_fd, passed_fd >= 0);
	if (ret)
		return hs_error__set(err, ret, "cannot send the request to the daemon: %s",
				     strerror(-ret));
	return 0;
}

/* ---- answers ---- */

/* JSON is UTF-8, in which the second 32 control characters (C1) begin with C2. has_lines: line
 * ends may stay. */
static int clean_string(json_t *string, bool has_lines)
{
	size_t n = json_string_length(string);
	char *text = malloc(n + 1);
	int ret;

	if (!text)
		return -1;
	memcpy(text, json_string_value(string), n);
	text[n] = 0;
	for (char *p = text; *p; p++) {
		if (*p == '\n' && has_lines)
			continue;
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
		else if ((unsigned char)*p == 0xc2 && (unsigned char)p[1] < 0xa0)
			p[0] = p[1] = '?';
	}
	ret = json_string_setn(string, text, n);
	free(text);
	return ret;
}

/* No member of ours has such a name. */
static bool is_clean_name(const char *name)
{
	for (; *name; name++)
		if (*name < ' ' || *name > '~')
			return false;
	return true;
}

/*
 * Who listens may be anybody, and what he says is shown on terminals: take the control
 * characters out. 0, or -1 without memory. As deep as WIRE_DEPTH_MAX allows.
 */
static int clean_value(json_t *value, bool has_lines)
{
	const char *name;
	json_t *item;
	size_t i;
	void *next;
	int ret = 0;

	if (json_is_string(value))
		return clean_string(value, has_lines);
	json_array_foreach(value, i, item) if (!ret) ret = clean_value(item, false);
	json_object_foreach_safe(value, next, name, item)
	{
		if (!is_clean_name(name))
			json_object_del(value, name);
		else if (!ret)
			/* The table of sites at the end of a recording. */
			ret = clean_value(item, !strcmp(name, "top"));
	}
	return ret;
}

/* What a line means: 1, or the error that it tells. Takes object over. */
static int take_answer(const struct client *c, json_t *object, json_t **answer,
		       struct hs_error *err)
{
	const char *text = json_string_value(json_object_get(object, "error"));
	int ret = wire__code(object);

	if (!ret) {
		*answer = object;
		return 1;
	}
	if (text && *text)
		hs_error__set(err, ret, "%s", text);
	else
		hs_error__set(err, ret, "what listens on %s is no heapsonde daemon", c->path);
	json_decref(object);
	return ret;
}

static int receive_error(const struct client *c, int code, struct hs_error *err)
{
	switch (code) {
	case -ECONNRESET:
	case -EPIPE:
		return hs_error__set(err, -ECONNRESET,
				     "the daemon on %s has closed the connection%s", c->path,
				     c->message.n_bytes ? " in the middle of an answer" : "");
	case -EBADMSG:
		return hs_error__set(err, -EPROTO, "what listens on %s is no heapsonde daemon",
				     c->path);
	case -ENOMEM:
		return hs_error__set(err, code, "out of memory");
	default:
		return hs_error__set(err, code, "cannot read the daemon's answer: %s",
				     strerror(-code));
	}
}

int client__receive(struct client *c, json_t **answer, struct hs_error *err)
{
	json_t *object;
	int ret = wire__receive_line(c->fd, &c->message, CLIENT_ANSWER_MAX_BYTES, &object);

	if (ret < 0)
		return receive_error(c, ret, err);
	if (!ret)
		return 0;
	wire_message__deinit(&c->message);
	if (clean_value(object, false)) {
		json_decref(object);
		return receive_error(c, -ENOMEM, err);
	}
	return take_answer(c, object, answer, err);
}

int client__ask(struct client *c, const json_t *request, int passed_fd, json_t **answer,
		struct hs_error *err)
{
	int sent = client__send(c, request, passed_fd, err), ret;

	if (sent && sent != -EPIPE && sent != -ECONNRESET)
		return sent;
	do
		ret = client__receive(c, answer, err);
	while (!ret);
	return ret < 0 ? ret : 0;
}

int client__request(const char *option, const json_t *request, json_t **answer,
		    struct hs_error *err)
{
	struct client c;
	int ret = client__connect(&c, option, err);

	if (!ret)
		ret = client__ask(&c, request, -1, answer, err);
	client__close(&c);
	return ret;
}

void client__shutdown(struct client *c)
{
	shutdown(c->fd, SHUT_WR);
}

void client__close(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	wire_message__deinit(&c->message);
}
