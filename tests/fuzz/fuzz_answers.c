/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a daemon answers, as the commands read and show it; whoever listens on the path that
 * --socket names may say anything.
 *
 * In:   pieces (fuzz__piece): what is written at a time.
 * Out:  user/client/client.h, user/cli/status.h. What is shown has no control characters.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "user/cli/status.h"
#include "user/client/client.h"

static void check_text(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		CHECK((*p >= ' ' && *p != 0x7f) || *p == '\n');
}

/* With stdout in our hands. */
static void show_detail(const json_t *profile)
{
	FILE *saved = stdout;
	char *text;
	size_t n;

	stdout = open_memstream(&text, &n);
	CHECK(stdout);
	status_detail__print(profile);
	CHECK(!fclose(stdout));
	stdout = saved;
	CHECK(strlen(text) == n);
	check_text(text);
	free(text);
}

static void show(const json_t *answer)
{
	const json_t *profiles = json_object_get(answer, "profiles");
	char text[40];

	for (size_t i = 0; i < json_array_size(profiles); i++) {
		const json_t *p = json_array_get(profiles, i);

		status__lost(p);
		status__rate(p, text, sizeof(text));
		show_detail(p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = { data, size };
	struct client c = { .path = "socket" };
	int fds[2], ret = 0;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	wire_message__init(&c.message);
	c.fd = fds[0];
	while (b.left) {
		struct fuzz_bytes piece = fuzz__piece(&b);

		if (send(fds[1], piece.at, piece.left, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	}
	shutdown(fds[1], SHUT_WR);
	while (ret >= 0) {
		struct hs_error err = { "" };
		json_t *answer = NULL;

		ret = client__receive(&c, &answer, &err);
		CHECK((ret == 1) == (answer != NULL));
		CHECK(ret >= 0 || err.text[0]);
		check_text(err.text);
		if (ret == 1)
			show(answer);
		json_decref(answer);
	}
	client__close(&c);
	close(fds[1]);
	return 0;
}
