/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipeline by stages: replay CAPTURE STAGE
 *
 *   decode   the capture is read and each record checked
 *   stacks   and each allocation's stack found
 *   heap     and the sampled heap kept, with its timeline
 *   raw      stacks, and a capture written to /dev/null, as `record --format raw` does
 *   hsd      the same, compressed
 *   jsonl    stacks, and JSON lines written to /dev/null
 *
 * In:   a capture, plain, so that unpacking is not measured.
 * Out:  "RECORDS CPU_S" on stdout: CPU time in seconds, of this process. Exit status 1 if the
 *       capture cannot be read, 2 for wrong arguments.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "user/collect/capture.h"
#include "user/collect/replay.h"

static int no_json(void *ctx, json_t *object)
{
	(void)ctx;
	(void)object;
	return 0;
}

static int count(void *ctx, const struct hs_event *event)
{
	uint64_t *n = ctx;

	(void)event;
	++*n;
	return 0;
}

static int decode(const char *path, uint64_t *n_records, struct hs_error *err)
{
	struct capture_reader reader = { .json = no_json, .event = count, .ctx = n_records };
	FILE *f = fopen(path, "re");
	int ret;

	if (!f)
		return hs_error__set(err, -1, "cannot open %s", path);
	ret = capture__read(f, &reader, err);
	fclose(f);
	return ret;
}

static int replay(const char *path, const char *stage, uint64_t *n_records, struct hs_error *err)
{
	static const struct heap_options options = { .want_timeline = true };
	struct replay r = { .path = path };
	enum sink_format format;
	int ret = 0;

	if (!strcmp(stage, "heap"))
		r.heap_options = &options;
	else if (!sink_format__parse(stage, &format))
		ret = sink__new(&r.sink, open("/dev/null", O_WRONLY | O_CLOEXEC), format);
	if (ret)
		return hs_error__set(err, ret, "cannot write to /dev/null");
	ret = replay__run(&r, err);
	*n_records = r.n_events;
	sink__free(r.sink);
	replay__deinit(&r);
	return ret;
}

int main(int argc, char **argv)
{
	static const char *const stages[] = { "decode", "stacks", "heap", "raw", "hsd", "jsonl" };
	uint64_t n_records = 0;
	struct hs_error err;
	size_t i = 0;
	int ret;

	while (argc == 3 && i < 6 && strcmp(argv[2], stages[i]))
		i++;
	if (argc != 3 || i == 6) {
		fputs("usage: replay CAPTURE decode|stacks|heap|raw|hsd|jsonl\n", stderr);
		return 2;
	}
	ret = i ? replay(argv[1], argv[2], &n_records, &err) : decode(argv[1], &n_records, &err);
	if (ret) {
		fprintf(stderr, "replay: %s\n", err.text);
		return 1;
	}
	printf("%llu %.3f\n", (unsigned long long)n_records,
	       (double)clock() / (double)CLOCKS_PER_SEC);
	return 0;
}
