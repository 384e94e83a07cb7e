/* SPDX-License-Identifier: BSD-2-Clause */
/* See output_whole.h. */
#include "user/cli/output_whole.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "user/common/stream.h"

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* ---- what an interruption removes ---- */

static char unfinished[PATH_MAX];

/* The handler is in force once: the second one is the default, which ends the process. */
static void on_signal(int signal_number)
{
	unlink(unfinished);
	raise(signal_number);
}

/* One that is ignored, as under nohup, stays so. */
static void set_handlers(void (*handler)(int))
{
	struct sigaction now, action = { .sa_handler = handler, .sa_flags = (int)SA_RESETHAND };

	for (size_t i = 0; i < N_SIGNALS; i++)
		if (!sigaction(signals[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

static void guard(const char *path)
{
	if (!path || strlen(path) >= sizeof(unfinished))
		return;
	strcpy(unfinished, path);
	set_handlers(on_signal);
}

/*
 * Until the handlers stand, nothing may interrupt: what has been made by then would stay. Not where
 * to open may last, as it may on a named pipe. *old is what was blocked before.
 */
static void hold_signals(const char *path, sigset_t *old)
{
	struct stat st;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; path && i < N_SIGNALS; i++)
		if (stat(path, &st) || S_ISREG(st.st_mode))
			sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, old);
}

static void unguard(void)
{
	if (unfinished[0])
		set_handlers(SIG_DFL);
	unfinished[0] = '\0';
}

/* ---- opening and ending ---- */

static bool is_same_file(const char *path, const char *other)
{
	struct stat a, b;

	return !stat(path, &a) && !stat(other, &b) && S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

int output_whole__open(struct output_whole *o, const char *path, bool force, const char *input,
		       struct hs_error *err)
{
	sigset_t old;
	int ret;

	*o = (struct output_whole){ .file.fd = -1 };
	if (path && strcmp(input, "-") != 0 && is_same_file(path, input))
		return hs_error__set(err, -EINVAL,
				     "%s is the capture itself, which would be lost: give another "
				     "name after -o",
				     path);
	hold_signals(path, &old);
	ret = output_file__open(&o->file, path, OUTPUT_WHOLE | (force ? OUTPUT_FORCE : 0), err);
	if (!ret)
		guard(o->file.temporary);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return ret;
	o->stream = output_file__take_stream(&o->file, err);
	return o->stream ? 0 : -ENOMEM;
}

int output_whole__close(struct output_whole *o, int ret, struct hs_error *err)
{
	int code = stream__flush(o->stream);

	if (fclose(o->stream) && !code)
		code = -errno;
	o->stream = NULL;
	if (!ret && code)
		ret = hs_error__set(err, code, "cannot write the output: %s", strerror(-code));
	return ret;
}

int output_whole__end(struct output_whole *o, int ret, struct hs_error *err)
{
	if (!ret)
		ret = output_file__keep(&o->file, err);
	output_file__drop(&o->file);
	unguard();
	return ret;
}
