/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing compressed captures: flushing often costs little, nothing is held back for long,
 * and errors are told.
 */
#include "tests/unit/capture_make.h"

#include <fcntl.h>

#include "user/sinks/byte_writer.h"

static off_t size_of(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);

	assert_true(end >= 0);
	return end;
}

/* A session flushes every 50 ms; that must cost nothing. */
static void flushes_do_not_spoil_the_ratio(void **state)
{
	struct output plain = output__new(raw_sink__new), hsd = output__new(hsd_sink__new);
	struct output *outputs[] = { &plain, &hsd };
	uint64_t seed = 3;

	(void)state;
	for (uint64_t id = 1; id <= 20000; id++) {
		union record r;
		struct hs_event event;

		make__alloc(&r, id, 0);
		r.h.time_ns += id * 1000 + make__random(&seed) % 1000;
		event = make__event(&r);
		for (size_t i = 0; i < COUNT(outputs); i++) {
			struct sink *s = outputs[i]->sink;

			assert_int_equal(s->ops->event(s, &event, NULL), 0);
			assert_int_equal(s->ops->flush(s), 0);
		}
	}
	assert_true(size_of(hsd.fd) * 5 < size_of(plain.fd));
	output__free(&hsd);
	output__free(&plain);
}

/* Allocations in what a sink has written so far. */
static int count_allocs(int fd)
{
	size_t size = (size_t)size_of(fd);
	char *bytes = malloc(size + 1), *text;
	int n = 0;

	assert_non_null(bytes);
	assert_int_equal(pread(fd, bytes, size, 0), size);
	assert_int_equal(replay(bytes, size, &text), 0);
	for (const char *c = text; (c = strstr(c, "\"alloc_")); c++)
		n++;
	free(text);
	free(bytes);
	return n;
}

/* What is flushed half a second later is in the file, though nobody has closed it. */
static void holds_nothing_back_for_long(void **state)
{
	struct output o = output__new(hsd_sink__new);
	union record r;
	struct hs_event event;

	(void)state;
	/* At once, the first time. */
	assert_int_equal(o.sink->ops->flush(o.sink), 0);
	assert_true(size_of(o.fd) > 0);
	assert_int_equal(count_allocs(o.fd), 0);
	for (uint64_t id = 1; id <= 3; id++) {
		make__alloc(&r, id, 0);
		event = make__event(&r);
		assert_int_equal(o.sink->ops->event(o.sink, &event, NULL), 0);
		usleep((BYTE_WRITER_DELAY_MS + 50) * 1000);
		assert_int_equal(o.sink->ops->flush(o.sink), 0);
		assert_int_equal(count_allocs(o.fd), (int)id);
		assert_true(capture_is_cut); /* a frame is open */
	}
	output__free(&o);
}

/* A full disk: an error, and nothing that cannot be read. */
static void passes_errors_on(void **state)
{
	struct sink *s;
	union record r;
	struct hs_event event;
	int err = 0;

	(void)state;
	assert_int_equal(hsd_sink__new(&s, open("/dev/full", O_WRONLY | O_CLOEXEC)), 0);
	make__alloc(&r, 1, 0);
	event = make__event(&r);
	for (int i = 0; i < 1000000 && !err; i++) {
		event.alloc = &r.alloc;
		err = s->ops->event(s, &event, NULL);
		if (!err)
			err = s->ops->flush(s);
	}
	assert_int_equal(err, -ENOSPC);
	sink__free(s);
	s = NULL;
	assert_int_equal(hsd_sink__new(&s, -1), -EBADF);
	assert_null(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flushes_do_not_spoil_the_ratio),
		cmocka_unit_test(holds_nothing_back_for_long),
		cmocka_unit_test(passes_errors_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
