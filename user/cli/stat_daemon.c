/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `heapsonde stat` through the daemon; see stat.h.
 *
 * In:   a profile that only counts and lives as long as our connection; what `status`
 *       says of it, asked for anew for each line.
 * Out:  the same lines as without a daemon.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/cli/cli.h"
#include "user/client/start_request.h"
#include "user/cli/stat.h"
#include "user/cli/status.h"
#include "user/client/client.h"
#include "user/common/clock.h"

struct known_domain {
	uint32_t domain;
	bool is_terminated;
	struct hs_counts counts;
};

struct stat_client {
	struct client client; /* that the profile is bound to */
	int profile;
	int signal_fd;
	struct known_domain *known;
	size_t n_known;
	int n_lines;
	json_t *closing; /* the last line, when the profile has ended */
};

static struct hs_counts counts_of(const json_t *domain, const char *prefix)
{
	struct hs_counts c = { 0 };
	const struct {
		const char *name;
		__u64 *count;
	} members[] = {
		{ "minor_words", &c.minor_words },
		{ "promoted_words", &c.promoted_words },
		{ "major_words", &c.major_words },
		{ "minor_collections", &c.minor_collections },
		{ "major_collections", &c.major_collections },
	};
	char name[64];

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", prefix, members[i].name);
		*members[i].count = (__u64)status__integer(domain, name);
	}
	return c;
}

/* What we know of a domain; as of its first event if it is new. NULL: out of memory. */
static struct known_domain *known(struct stat_client *s, const json_t *domain)
{
	uint32_t id = (uint32_t)status__integer(domain, "domain");
	struct known_domain *grown, *k;

	for (size_t i = 0; i < s->n_known; i++)
		if (s->known[i].domain == id)
			return &s->known[i];
	grown = reallocarray(s->known, s->n_known + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	s->known = grown;
	k = &grown[s->n_known++];
	*k = (struct known_domain){ .domain = id, .counts = counts_of(domain, "base_") };
	return k;
}

static int print_domain(struct stat_client *s, const json_t *domain)
{
	struct hs_counts now = counts_of(domain, ""), base = counts_of(domain, "base_");
	struct known_domain *k = known(s, domain);
	struct stat_line line;

	if (!k)
		return -ENOMEM;
	line.domain = k->domain;
	line.is_terminated = !strcmp(status__string(domain, "state"), "terminated");
	if (line.is_terminated && k->is_terminated)
		return 0;
	/* It was known before its first event: count from there. */
	if (k->counts.minor_collections < base.minor_collections)
		k->counts = base;
	line.added = stat__difference(&now, &k->counts);
	stat_columns__print(&line, &s->n_lines);
	k->counts = now;
	k->is_terminated = line.is_terminated;
	return 0;
}

/*
 * Ask how the domains are. The profile may have ended just now, which the daemon knows
 * before we do: then what it says at the end is on its way (closing).
 */
static int ask(struct stat_client *s, const struct stat_options *o, json_t **answer,
	       struct hs_error *err)
{
	int ret = status__ask(o->socket, s->profile, answer, err);

	if (ret != -EALREADY && ret != -ENOENT)
		return ret;
	*answer = NULL;
	do
		ret = client__receive(&s->client, &s->closing, err);
	while (!ret);
	return ret < 0 ? ret : 0;
}

static int print_interval(struct stat_client *s, const struct stat_options *o, struct hs_error *err)
{
	const json_t *domains;
	json_t *answer = NULL;
	int ret = s->closing ? 0 : ask(s, o, &answer, err);

	if (ret)
		return ret;
	domains = s->closing ? s->closing : json_array_get(json_object_get(answer, "profiles"), 0);
	domains = json_object_get(domains, "domains");
	for (size_t i = 0; !ret && i < json_array_size(domains); i++)
		ret = print_domain(s, json_array_get(domains, i));
	json_decref(answer);
	if (ret)
		return hs_error__set(err, ret, "out of memory");
	return stat_columns__flush(err);
}

static int begin(struct stat_client *s, const struct stat_options *o, struct hs_error *err)
{
	const struct start_request request = { .pid = o->pid, .is_bound = true };
	json_t *json, *answer = NULL;
	int ret = client__connect(&s->client, o->socket, err);

	if (ret)
		return ret;
	json = start_request__json(&request);
	ret = json ? client__ask(&s->client, json, -1, &answer, err)
		   : hs_error__set(err, -ENOMEM, "out of memory");
	json_decref(json);
	if (ret)
		return ret;
	s->profile = (int)status__integer(answer, "profile");
	json_decref(answer);
	s->signal_fd = cli__open_signals(err);
	return s->signal_fd < 0 ? s->signal_fd : 0;
}

/* Sleep until the next line: 1 go on, 0 a signal or the target's end; or an error. */
static int wait_until(struct stat_client *s, uint64_t until_ns, struct hs_error *err)
{
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = s->signal_fd, .events = POLLIN },
			{ .fd = s->client.fd, .events = POLLIN },
		};
		uint64_t now = clock__now_ns(), rest = until_ns > now ? until_ns - now : 0;
		int ret;

		if (!rest)
			return 1;
		poll(fds, 2, rest > 1000000000u ? 1000 : (int)(rest / 1000000) + 1);
		if (fds[0].revents)
			return 0;
		if (!fds[1].revents)
			continue;
		ret = client__receive(&s->client, &s->closing, err);
		if (ret)
			return ret < 0 ? ret : 0;
	}
}

static int run(struct stat_client *s, const struct stat_options *o, struct hs_error *err)
{
	uint64_t until = clock__now_ns();
	int go_on = 1;

	for (int i = 0; go_on && !s->closing && (!o->count || i < o->count); i++) {
		int ret;

		until += (uint64_t)(o->interval_s * 1e9);
		go_on = wait_until(s, until, err);
		ret = go_on < 0 ? go_on : print_interval(s, o, err);
		if (ret)
			return ret;
	}
	return 0;
}

int stat_daemon__run(const struct stat_options *o)
{
	struct stat_client s = { .client.fd = -1, .signal_fd = -1 };
	struct hs_error err;
	int status = 0;

	if (begin(&s, o, &err) || run(&s, o, &err))
		status = cli__die(&err);
	client__close(&s.client);
	if (s.signal_fd >= 0)
		close(s.signal_fd);
	json_decref(s.closing);
	free(s.known);
	return status;
}
