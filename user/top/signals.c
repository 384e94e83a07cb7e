/* SPDX-License-Identifier: BSD-2-Clause */
/* See signals.h. */
#include "user/top/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

int signals__open(struct signals *s, bool is_full_screen, struct hs_error *err)
{
	sigset_t set;

	memset(s, 0, sizeof(*s));
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (is_full_screen) {
		sigaddset(&set, SIGWINCH);
		sigaddset(&set, SIGTSTP);
		sigaddset(&set, SIGCONT);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	s->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return s->fd < 0 ? hs_error__set(err, -errno, "no signalfd: %s", strerror(errno)) : 0;
}

void signals__read(struct signals *s)
{
	struct signalfd_siginfo info;

	while (read(s->fd, &info, sizeof(info)) == sizeof(info))
		switch (info.ssi_signo) {
		case SIGWINCH:
			s->wants_resize = true;
			break;
		case SIGTSTP:
			s->wants_stop = true;
			break;
		case SIGCONT:
			s->continued = true;
			break;
		default:
			s->wants_end = true;
		}
}
