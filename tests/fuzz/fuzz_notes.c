/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The executable of a target: its probe notes, its symbols, what it is.
 *
 * In:   an ELF file, or anything else.
 * Out:  user/attach/exe.h and notes.h, held to what they promise.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "user/attach/exe.h"
#include "user/attach/notes.h"

/* Those that are there lie in the file's addresses, which a signed offset can say. */
static void check_site(int fd, const struct probe_site *site)
{
	CHECK(!site->offset == !site->sem_offset);
	CHECK(site->offset <= INT64_MAX && site->sem_offset <= INT64_MAX);
	notes__site_has_nop10(fd, site->offset);
}

static void check_set(int fd, const struct probe_set *set)
{
	for (size_t i = 0; i < SONDE_TIERS; i++)
		check_site(fd, &set->alloc[i]);
	for (size_t i = 0; i < SONDE_STACK_CLASSES; i++)
		check_site(fd, &set->stack[i]);
	check_site(fd, &set->minor_end);
	check_site(fd, &set->exit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = fuzz__file(0, data, size), ret;
	struct exe_info info;
	struct probe_set set;
	struct hs_error err;

	err.text[0] = '\0';
	ret = exe__inspect(fd, &info, &err);
	CHECK(ret <= 0);
	CHECK(!ret || err.text[0]);
	if (!ret && info.kind == TARGET_PROBED) {
		CHECK(info.probes.registry_vaddr);
		check_set(fd, &info.probes);
		notes__missing(&info.probes);
	}
	err.text[0] = '\0';
	ret = notes__read(fd, &set, &err);
	CHECK(ret <= 0);
	CHECK(!ret || err.text[0]);
	CHECK(!strchr(err.text, '\n'));
	return 0;
}
