/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the name of an output file means: %p, %t, %h and %% in it, and the format; see
 * output_file.h.
 *
 * In:   a name as -o has it; --format.
 * Out:  the name that is meant; the format.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "user/cli/cli.h"
#include "user/cli/output_file.h"

static void put_time(FILE *f)
{
	time_t now = time(NULL);
	char text[32];
	struct tm tm;

	if (gmtime_r(&now, &tm) && strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &tm))
		fputs(text, f);
}

static void put_host(FILE *f)
{
	char host[HOST_NAME_MAX + 1] = "";

	if (gethostname(host, sizeof(host) - 1))
		return;
	for (const char *c = host; *c; c++)
		/* A slash would be a folder. */
		putc(*c == '/' ? '_' : *c, f);
}

/* What stands for %letter. -EINVAL: nothing does. */
static int put_letter(FILE *f, char letter, pid_t pid)
{
	switch (letter) {
	case 'p':
		fprintf(f, "%d", (int)pid);
		return 0;
	case 't':
		put_time(f);
		return 0;
	case 'h':
		put_host(f);
		return 0;
	case '%':
		putc('%', f);
		return 0;
	default:
		return -EINVAL;
	}
}

int output_file__expand(const char *name, pid_t pid, char **out, struct hs_error *err)
{
	size_t size;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);
	int ret = f ? 0 : -ENOMEM;

	for (const char *c = name; !ret && *c; c++) {
		if (*c != '%')
			putc(*c, f);
		else
			ret = put_letter(f, *++c, pid);
		if (!*c)
			break;
	}
	if (f && fclose(f) && !ret)
		ret = -ENOMEM;
	if (!ret) {
		*out = text;
		return 0;
	}
	free(text);
	if (ret == -EINVAL)
		return hs_error__set(err, ret,
				     "a file name may have %%p (PID), %%t (time), %%h (host) and "
				     "%%%% (a percent sign), and no other %%: %s",
				     name);
	return hs_error__set(err, ret, "out of memory");
}

void output_file__argp_check(const struct argp_state *state, const char *name)
{
	struct hs_error err;
	char *expanded = NULL;

	if (output_file__expand(name, 1, &expanded, &err))
		cli__argp_error(state, "%s", err.text);
	free(expanded);
}

enum sink_format output_file__argp_format(const struct argp_state *state, const char *format,
					  const char *name)
{
	size_t length = name ? strlen(name) : 0;
	enum sink_format out = SINK_JSONL;

	if (format && sink_format__parse(format, &out))
		cli__argp_error(state, "the format is jsonl, hsd or raw, not %s", format);
	if (!format && length >= 4 && !strcmp(name + length - 4, ".hsd"))
		out = SINK_HSD;
	return out;
}
