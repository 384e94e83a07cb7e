/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a target: registry, domains, counters, frame tables, debug information.
 *
 * In:   16 bytes of layout, mappings (a piece), slots (a piece), the file that is mapped
 *       (a piece), and the memory from address 0 on; pieces as fuzz__piece has them.
 * Out:  user/attach/registry.h and user/symbolize/symbolize.h.
 *
 * The target is this process, but for its memory and its maps, which are files made of the
 * input; the mapped file is found as one of this process's descriptors.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "user/attach/registry.h"
#include "user/symbolize/frametable.h"
#include "user/symbolize/symbolize.h"
#include "user/symbolize/text.h"

#define MAPPINGS_MAX 8
#define SLOTS_MAX 64

enum { MEMORY, MAPS, IMAGE };

/* Lines of /proc/PID/maps, all of the same file. Returns the descriptor. */
static int make_maps(struct fuzz_bytes b, int image)
{
	char text[MAPPINGS_MAX * 128] = "";
	struct stat st;
	size_t n = 0;

	CHECK(!fstat(image, &st));
	for (int i = 0; i < MAPPINGS_MAX && b.left; i++) {
		uint64_t start = fuzz__number(&b, 3), bytes = fuzz__number(&b, 2);
		uint64_t offset = fuzz__number(&b, 2);
		bool is_exec = fuzz__number(&b, 1) & 1;

		n += (size_t)snprintf(
			text + n, sizeof(text) - n,
			"%" PRIx64 "-%" PRIx64 " r-%cp %08" PRIx64 " %x:%x %" PRIu64 " %s\n", start,
			start + bytes, is_exec ? 'x' : '-', offset, major(st.st_dev),
			minor(st.st_dev), (uint64_t)st.st_ino, fuzz__path(IMAGE));
	}
	/* What has no file is passed over; without a line the process would have ended. */
	snprintf(text + n, sizeof(text) - n, "f000000-f001000 rw-p 00000000 00:00 0 [heap]\n");
	return fuzz__file(MAPS, text, strlen(text));
}

static bool is_clean(const char *text)
{
	for (const char *p = text; p && *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return !text || strlen(text) <= 3 * TEXT_MAX; /* U+FFFD for each byte, at worst */
}

static void resolve(const struct target *t, struct fuzz_bytes slots)
{
	const struct hs_location *first, *again;
	struct symbolizer *s;
	struct hs_error err;

	if (symbolizer__new(&s, t, &err))
		return;
	for (int i = 0; i < SLOTS_MAX && slots.left; i++) {
		uint64_t slot = fuzz__number(&slots, 3);
		int n = symbolizer__resolve(s, slot, &first);

		CHECK(n >= 1 && n <= FRAMETABLE_MAX_INLINED);
		for (int j = 0; j < n; j++)
			CHECK(is_clean(first[j].function) && is_clean(first[j].file));
		CHECK(!first[n - 1].is_inlined);
		CHECK(symbolizer__resolve(s, slot, &again) == n);
	}
	symbolizer__free(s);
}

/* As `list` and --domain do. */
static void read_domains(const struct target *t)
{
	struct sonde_domain_info *domains;
	struct sonde_gc gc;
	int n = target__domains(t, &domains);

	CHECK(n <= 65536);
	for (int i = 0; i < n; i++)
		target__counts(t, &domains[i], &gc);
	free(domains);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes b = { data, size }, layout, maps, slots, image;
	struct sonde_registry in_file = { 0 };
	struct target t = { .pid = getpid(), .pidfd = -1, .exe_fd = -1 };
	struct hs_error err;

	layout.at = b.at;
	layout.left = b.left < 16 ? b.left : 16;
	b.at += layout.left;
	b.left -= layout.left;
	maps = fuzz__piece(&b);
	slots = fuzz__piece(&b);
	image = fuzz__piece(&b);
	t.mem_fd = fuzz__file(MEMORY, b.at, b.left);
	t.maps_fd = make_maps(maps, fuzz__file(IMAGE, image.at, image.left));
	t.proc_fd = open("/proc/self", O_PATH | O_CLOEXEC);
	CHECK(t.proc_fd >= 0);

	t.load_bias = fuzz__number(&layout, 2);
	t.probes.registry_vaddr = fuzz__number(&layout, 2);
	registry__read(&t, &in_file, &err);
	read_domains(&t);
	/* The registry that decides how frames are read is mostly a good one. */
	t.registry.fd_retaddr_bytes = (uint16_t)fuzz__number(&layout, 2);
	t.registry.fd_frame_data = (uint16_t)fuzz__number(&layout, 2);
	t.registry.fd_num_live = (uint16_t)fuzz__number(&layout, 2);
	t.registry.fd_live_ofs = (uint16_t)fuzz__number(&layout, 2);
	resolve(&t, slots);
	close(t.proc_fd);
	return 0;
}
