/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `heapsonde list`: which processes can be attached to, and which run OCaml but
 * lack something.
 *
 * In:   /proc, by user/attach/target.h.
 * Out:  two tables, or with --json one object a line, on stdout; on stderr how
 *       many processes could not be looked at.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "user/attach/exe.h"
#include "user/attach/proc.h"
#include "user/attach/target.h"
#include "user/cli/cli.h"
#include "user/common/say.h"

struct row {
	pid_t pid;
	pid_t inner_pid; /* in its own PID namespace; 0: the same, or unknown */
	uid_t uid;
	char user[33];
	const char *kind;  /* as in the JSON output */
	const char *lacks; /* NULL: attachable */
	int domains;       /* -1: unknown */
	char ocaml[sizeof(((struct sonde_registry *)0)->ocaml_version)];
	char *command;
	char *exe;
	char *error; /* of damaged probes: the whole text; or NULL */
};

struct listing {
	struct row *rows;
	size_t len, capacity;
	unsigned unseen; /* processes that we may not look at */
};

static const char lacks_probes[] = "probes: relink with -runtime-variant _sonde";
static const char lacks_native[] = "native code: build it with ocamlopt";
static const char lacks_usable[] = "usable probes: renew the variant and relink";

/* ---- collecting --------------------------------------------------------------- */

static struct row *add_row(struct listing *l, pid_t pid)
{
	struct row *r;

	if (l->len == l->capacity) {
		size_t capacity = l->capacity ? 2 * l->capacity : 16;
		struct row *rows = reallocarray(l->rows, capacity, sizeof(*rows));

		if (!rows)
			return NULL;
		l->rows = rows;
		l->capacity = capacity;
	}
	r = &l->rows[l->len++];
	memset(r, 0, sizeof(*r));
	r->pid = pid;
	r->domains = -1;
	return r;
}

static void set_user(struct row *r, uid_t uid)
{
	r->uid = uid;
	cli__format_user(uid, r->user, sizeof(r->user));
}

static void set_inner_pid(struct row *r, pid_t inner_pid)
{
	r->inner_pid = inner_pid != r->pid ? inner_pid : 0;
}

static int add_target(struct listing *l, struct target *t)
{
	struct sonde_domain_info *domains;
	struct row *r = add_row(l, t->pid);

	if (!r)
		return -ENOMEM;
	set_user(r, t->uid);
	set_inner_pid(r, t->inner_pid);
	r->command = t->command;
	r->exe = t->exe;
	t->command = t->exe = NULL; /* the row's now */
	switch (t->kind) {
	case TARGET_PROBED:
		r->kind = "probed";
		snprintf(r->ocaml, sizeof(r->ocaml), "%s", t->registry.ocaml_version);
		r->domains = target__domains(t, &domains);
		if (r->domains >= 0)
			free(domains);
		break;
	case TARGET_NATIVE:
		r->kind = "native";
		r->lacks = lacks_probes;
		break;
	case TARGET_BYTECODE:
	case TARGET_NOT_OCAML: /* was filtered out before */
		r->kind = "bytecode";
		r->lacks = lacks_native;
		break;
	}
	return 0;
}

/* An OCaml program whose probes are of no use; struct target does not exist for it. */
static int add_damaged(struct listing *l, pid_t pid, const struct hs_error *why)
{
	struct proc_status status;
	char *command, *exe;
	struct row *r;

	if (proc__status(pid, &status) || proc__command(pid, &command))
		return 0; /* has ended meanwhile */
	if (proc__exe(pid, &exe)) {
		free(command);
		return 0;
	}
	r = add_row(l, pid);
	if (!r) {
		free(command);
		free(exe);
		return -ENOMEM;
	}
	set_user(r, status.uid);
	set_inner_pid(r, status.inner_pid);
	r->kind = "damaged";
	r->lacks = lacks_usable;
	r->command = command;
	r->exe = exe;
	r->error = strdup(why->text);
	return r->error ? 0 : -ENOMEM;
}

static int look_at(struct listing *l, pid_t pid, struct exe_cache *cache, struct hs_error *err)
{
	struct target *t;
	int ret = target__open_cached(&t, pid, cache, err);

	switch (ret) {
	case 0:
		if (t->kind != TARGET_NOT_OCAML)
			ret = add_target(l, t);
		target__free(t);
		break;
	case -ESRCH:
		return 0;
	case -EPROTO:
		ret = add_damaged(l, pid, err);
		break;
	case -EACCES:
	case -EPERM:
	case -ENOEXEC:
		l->unseen++;
		return 0;
	default:
		return ret;
	}
	return ret ? hs_error__set(err, ret, "out of memory") : 0;
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = ((const struct row *)a)->pid, y = ((const struct row *)b)->pid;

	return (x > y) - (x < y);
}

static int collect(struct listing *l, struct hs_error *err)
{
	struct exe_cache *cache = NULL;
	const struct dirent *entry;
	DIR *dir;
	int ret;

	ret = proc__check_mounted(err);
	if (ret)
		return ret;
	dir = opendir("/proc");
	if (!dir)
		return hs_error__set(err, -errno, "cannot read /proc: %s", strerror(errno));
	ret = exe_cache__new(&cache);
	if (ret)
		hs_error__set(err, ret, "out of memory");
	while (!ret && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			ret = look_at(l, (pid_t)atoi(entry->d_name), cache, err);
	exe_cache__free(cache);
	closedir(dir);
	if (!ret && l->len)
		qsort(l->rows, l->len, sizeof(l->rows[0]), by_pid);
	return ret;
}

static void free_listing(struct listing *l)
{
	for (size_t i = 0; i < l->len; i++) {
		free(l->rows[i].command);
		free(l->rows[i].exe);
		free(l->rows[i].error);
	}
	free(l->rows);
}

/* ---- printing ----------------------------------------------------------------- */

/* A line of a table. A column that is empty in every line is left out. */
#define COLUMNS 5
struct line {
	char cell[COLUMNS][48];
	const char *command;
};

static const char heading_ok[COLUMNS][8] = { "PID", "NSPID", "USER", "DOMAINS", "OCAML" };
static const char heading_lacking[COLUMNS][8] = { "PID", "NSPID", "USER", "", "LACKS" };
static const bool is_number[COLUMNS] = { true, true, false, true, false };

/* Row r, or with r NULL the heading. inner: some row of the table has an inner PID. */
static struct line make_line(const struct row *r, bool lacking, bool inner)
{
	struct line line = { .command = r ? r->command : "COMMAND" };

	if (!r) {
		for (size_t c = 0; c < COLUMNS; c++)
			if (c != 1 || inner)
				snprintf(line.cell[c], sizeof(line.cell[c]), "%s",
					 (lacking ? heading_lacking : heading_ok)[c]);
		return line;
	}
	snprintf(line.cell[0], sizeof(line.cell[0]), "%d", (int)r->pid);
	if (r->inner_pid)
		snprintf(line.cell[1], sizeof(line.cell[1]), "%d", (int)r->inner_pid);
	snprintf(line.cell[2], sizeof(line.cell[2]), "%s", r->user);
	if (!lacking)
		snprintf(line.cell[3], sizeof(line.cell[3]), r->domains < 0 ? "-" : "%d",
			 r->domains);
	snprintf(line.cell[4], sizeof(line.cell[4]), "%s", lacking ? r->lacks : r->ocaml);
	return line;
}

static void print_line(const struct line *line, const size_t *width)
{
	int used = 0;

	for (size_t c = 0; c < COLUMNS; c++) {
		if (!width[c])
			continue;
		printf(is_number[c] ? "%*s  " : "%-*s  ", (int)width[c], line->cell[c]);
		used += (int)width[c] + 2;
	}
	cli__print_last_column(line->command, used);
}

/* The rows that lack something, or those that do not. Returns how many. */
static size_t print_table(const struct listing *l, bool lacking)
{
	size_t width[COLUMNS] = { 0 }, rows = 0;
	bool inner = false;

	for (size_t i = 0; i < l->len; i++)
		inner |= (l->rows[i].lacks != NULL) == lacking && l->rows[i].inner_pid;
	/* Twice over the same lines, the heading first: to measure and to print. */
	for (int print = 0; print <= 1; print++) {
		for (size_t i = 0; i <= l->len; i++) {
			const struct row *r = i ? &l->rows[i - 1] : NULL;
			struct line line;

			if (r && (r->lacks != NULL) != lacking)
				continue;
			line = make_line(r, lacking, inner);
			if (print && rows)
				print_line(&line, width);
			if (print)
				continue;
			rows += r != NULL;
			for (size_t c = 0; c < COLUMNS; c++)
				if (strlen(line.cell[c]) > width[c])
					width[c] = strlen(line.cell[c]);
		}
	}
	return rows;
}

static void print_tables(const struct listing *l)
{
	bool relink = false;
	size_t attachable;

	if (!l->len) {
		printf("no OCaml processes found\n");
		return;
	}
	attachable = print_table(l, false);
	if (!attachable)
		printf("no process can be attached to\n");
	if (attachable < l->len)
		printf("\nOCaml, but not attachable:\n");
	print_table(l, true);
	for (size_t i = 0; i < l->len; i++)
		relink |= l->rows[i].lacks == lacks_probes || l->rows[i].lacks == lacks_usable;
	if (relink)
		printf("\nTo relink: heapsonde-variant --install, then build the program with "
		       "OCAMLPARAM='_,runtime-variant=_sonde'\n");
}

static int print_json(const struct row *r)
{
	json_t *o = json_pack("{s:i, s:I, s:s, s:s, s:b, s:s, s:s}", "pid", (int)r->pid, "uid",
			      (json_int_t)r->uid, "user", r->user, "kind", r->kind, "attachable",
			      r->lacks == NULL, "command", r->command, "exe", r->exe);
	int ret = o ? 0 : -ENOMEM;

	if (!ret && r->inner_pid)
		ret = json_object_set_new(o, "ns_pid", json_integer(r->inner_pid));
	if (!ret && r->domains >= 0)
		ret = json_object_set_new(o, "domains", json_integer(r->domains));
	if (!ret && r->ocaml[0])
		ret = json_object_set_new(o, "ocaml", json_string(r->ocaml));
	if (!ret && r->lacks)
		ret = json_object_set_new(o, "lacks", json_string(r->lacks));
	if (!ret && r->error)
		ret = json_object_set_new(o, "error", json_string(r->error));
	if (!ret)
		ret = json_dumpf(o, stdout, JSON_COMPACT);
	if (!ret)
		putchar('\n');
	json_decref(o);
	return ret ? -EIO : 0;
}

/* ---- the command -------------------------------------------------------------- */

int cmd_list(int argc, char **argv)
{
	bool json = false;
	struct listing l = { 0 };
	struct hs_error err;
	int ret;

	if (cli__parse_json_only(argc, argv, "List the OCaml processes that can be attached to.",
				 "One JSON object a line", &json))
		return CLI_EXIT_USAGE;
	ret = collect(&l, &err);
	if (ret) {
		free_listing(&l);
		return cli__die(&err);
	}
	if (!json)
		print_tables(&l);
	for (size_t i = 0; json && !ret && i < l.len; i++)
		ret = print_json(&l.rows[i]);
	ret = cli__finish(ret ? CLI_EXIT_ERROR : 0);
	if (l.unseen)
		say__note("%u process%s could not be looked at%s", l.unseen,
			  l.unseen == 1 ? "" : "es", geteuid() ? " (run as root to see all)" : "");
	free_listing(&l);
	return ret;
}
