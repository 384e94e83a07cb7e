/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From records to a trace for memtrace, and back to text with tests/lib/read-ctf.c.
 *
 * In:   records, in the order in which a capture would have them.
 * Out:  the text of the trace.
 */
#ifndef TEST_CTF_MAKE_H
#define TEST_CTF_MAKE_H

#include "tests/unit/records_make.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define main read_ctf_main
#include "tests/lib/read-ctf.c"
#undef main

#include "user/export/export.h"
#include "user/track/pipeline.h"

/* ---- from records to a trace ---- */

#define WALL 1000000 /* µs between the two clocks */

struct lane {
	int fd;
	struct sink *sink;
	struct symbolizer *symbolizer;
	struct pipeline pipeline;
};

static inline void lane__json(struct lane *l, const char *text)
{
	json_t *object = json_loads(text, 0, NULL);

	assert_non_null(object);
	assert_int_equal(pipeline__json(&l->pipeline, object), 0);
	json_decref(object);
}

static inline struct lane *lane__new(int version)
{
	struct export_options options = { .ctf_version = version, .input = "-" };
	struct lane *l = calloc(1, sizeof(*l));
	FILE *f;

	assert_non_null(l);
	l->fd = memfd_create("heapsonde-test", MFD_CLOEXEC);
	f = fdopen(dup(l->fd), "w");
	assert_non_null(f);
	assert_int_equal(export_ctf.open(&l->sink, f, &options), 0);
	assert_int_equal(symbolizer__new_empty(&l->symbolizer), 0);
	assert_int_equal(pipeline__init(&l->pipeline, l->symbolizer, l->sink, 0, false), 0);
	lane__json(l, "{\"type\":\"header\",\"pid\":7,\"exe\":\"/x\",\"command\":null,"
		      "\"time\":0,\"wall_offset\":1000000000}");
	lane__json(l, "{\"type\":\"profile\",\"rate\":0.25}");
	return l;
}

static inline void lane__free(struct lane *l)
{
	pipeline__deinit(&l->pipeline);
	sink__free(l->sink);
	symbolizer__free(l->symbolizer);
	close(l->fd);
	free(l);
}

static inline void tell(struct lane *l, const union record *r)
{
	struct hs_event event = make__event(r);

	assert_int_equal(pipeline__event(&l->pipeline, &event), 0);
}

static inline void alloc_at(struct lane *l, uint64_t id, uint64_t hash, uint64_t time_us,
			    uint32_t domain)
{
	static union record r;

	make__alloc(&r, id, hash);
	r.h.time_ns = time_us * 1000;
	r.h.domain = domain;
	tell(l, &r);
}

static inline void block_at(struct lane *l, enum hs_record_type type, uint64_t id, uint64_t time_us)
{
	static union record r;

	make__block(&r, type, id);
	r.h.time_ns = time_us * 1000;
	tell(l, &r);
}

static inline void stack_of(struct lane *l, uint64_t hash, const uint64_t *frames, uint32_t depth)
{
	static union record r;

	make__stack(&r, hash, frames, depth);
	tell(l, &r);
}

/* What read-ctf prints of the trace so far, in a process of its own as it exits at the first
 * thing that is wrong. The result is the caller's. */
static inline char *text_of(struct lane *l)
{
	int out = memfd_create("heapsonde-test", MFD_CLOEXEC), status;
	char path[64], *argv[] = { "read-ctf", path, NULL }, *text;
	off_t size;
	pid_t pid;

	assert_int_equal(l->sink->ops->flush(l->sink), 0);
	fflush(stdout);
	fflush(stderr);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", l->fd);
		dup2(out, STDOUT_FILENO);
		_exit(read_ctf_main(2, argv) || fflush(stdout));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	size = lseek(out, 0, SEEK_END);
	text = calloc(1, (size_t)size + 1);
	assert_non_null(text);
	assert_int_equal(pread(out, text, (size_t)size, 0), size);
	close(out);
	return text;
}

#define EMPTY "\t[empty stack]@<unknown>:0;\n"
#define LOST "\t[stack lost]@<unknown>:0;\n"
#define TRACE(version) "trace\t" #version "\t0.25\t7\t1000000\t/x\t\n"

static inline void expect(struct lane *l, const char *expected)
{
	char *text = text_of(l);

	assert_string_equal(text, expected);
	free(text);
	lane__free(l);
}

#endif /* TEST_CTF_MAKE_H */
