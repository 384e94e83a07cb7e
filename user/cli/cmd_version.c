/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `heapsonde version`: what is running, and what the kernel offers it.
 *
 * In:   user/attach/kernel.h.
 * Out:  text, or with --json one object, on stdout. Exit status 0 even where
 *       something needed is absent: that is an answer, too.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/abi.h"
#include "user/attach/kernel.h"
#include "user/cli/cli.h"

static const char *state_name(enum feature_state state)
{
	switch (state) {
	case FEATURE_YES:
		return "yes";
	case FEATURE_NO:
		return "no";
	case FEATURE_UNKNOWN:
		break;
	}
	return "unknown";
}

static void print_text(const struct kernel_features *f)
{
	struct kernel_feature_row row;
	struct hs_error why;

	printf("heapsonde %s (probes version %d)\n", HEAPSONDE_VERSION, SONDE_ABI_VERSION);
	printf("libbpf    %s\n", libbpf_version_string());
	printf("kernel    %s, lockdown: %s\n\n", f->release, kernel_lockdown__name(f->lockdown));
	for (size_t i = 0; kernel_features__row(f, i, &row); i++) {
		printf("  %-26s %s", row.title, state_name(row.state));
		if (row.state != FEATURE_YES)
			printf("%*s(%s)", 9 - (int)strlen(state_name(row.state)), "", row.note);
		putchar('\n');
	}
	if (kernel_features__require(f, &why))
		printf("\nattaching: %s\n", why.text);
	else
		printf("\nattaching: everything needed is there\n");
}

static int print_json(const struct kernel_features *f)
{
	struct kernel_feature_row row;
	struct hs_error why;
	json_t *features = json_object();
	json_t *o = json_pack("{s:s, s:i, s:s, s:s, s:s, s:o}", "version", HEAPSONDE_VERSION,
			      "probes_version", SONDE_ABI_VERSION, "libbpf",
			      libbpf_version_string(), "kernel", f->release, "lockdown",
			      kernel_lockdown__name(f->lockdown), "features", features);
	int ret = o ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && kernel_features__row(f, i, &row); i++)
		ret = json_object_set_new(features, row.key,
					  row.state == FEATURE_UNKNOWN
						  ? json_null()
						  : json_boolean(row.state == FEATURE_YES));
	if (!ret && kernel_features__require(f, &why))
		ret = json_object_set_new(o, "lacks", json_string(why.text));
	if (!ret)
		ret = json_dumpf(o, stdout, JSON_COMPACT);
	if (!ret)
		putchar('\n');
	json_decref(o);
	return ret;
}

int cmd_version(int argc, char **argv)
{
	struct kernel_features f;
	struct hs_error err;
	bool json = false;

	if (cli__parse_json_only(argc, argv,
				 "Print the version of heapsonde, and what the kernel offers.",
				 "One JSON object", &json))
		return CLI_EXIT_USAGE;
	if (kernel_features__probe(&f, &err))
		return cli__die(&err);
	if (!json)
		print_text(&f);
	else if (print_json(&f))
		return cli__finish(CLI_EXIT_ERROR);
	return cli__finish(0);
}
