/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of /proc/PID/maps; names of files in it are the target's to choose.
 *
 * In:   text.
 * Out:  user/symbolize/map_lines.h.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "user/symbolize/map_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct map_lines lines;

	if (map_lines__read(&lines, fuzz__file(0, data, size)))
		return 0;
	for (size_t i = 0; i < lines.n; i++) {
		CHECK(lines.lines[i].start < lines.lines[i].end);
		CHECK(lines.lines[i].ino);
		CHECK(!strchr(lines.lines[i].path, '\n'));
	}
	map_lines__free(&lines);
	map_lines__free(&lines);
	return 0;
}
