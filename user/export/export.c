/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of exporters; see export.h. */
#include "user/export/export.h"

#include <string.h>

const struct exporter *const exporters[] = {
	&export_jsonl,      &export_ctf,  &export_pprof, &export_folded,
	&export_speedscope, &export_html, NULL,
};

const struct exporter *exporter__find(const char *name)
{
	for (const struct exporter *const *e = exporters; *e; e++)
		if (!strcmp((*e)->name, name))
			return *e;
	return NULL;
}

const struct exporter *exporter__for_name(const char *file_name)
{
	size_t length = file_name ? strlen(file_name) : 0;

	for (const struct exporter *const *e = exporters; length && *e; e++) {
		size_t n = strlen((*e)->suffix);

		if (length > n && !strcmp(file_name + length - n, (*e)->suffix))
			return *e;
	}
	return &export_jsonl;
}
