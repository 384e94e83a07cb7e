/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals, read from a descriptor in the loop instead of interrupting it.
 *
 * In:   SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT.
 * Out:  what they ask for.
 */
#ifndef HEAPSONDE_SIGNALS_H
#define HEAPSONDE_SIGNALS_H

#include <stdbool.h>

#include "user/common/error.h"

struct signals {
	int fd; /* to be polled; close(2) */
	bool wants_end;
	bool wants_resize;
	bool wants_stop; /* as Ctrl-Z does */
	bool continued;
};

/*
 * Block them and open s->fd; SIGPIPE becomes an error of write(2). is_full_screen: also
 * those about the terminal, which else do what they always do. Errors: those of
 * signalfd(2), with a text.
 */
int signals__open(struct signals *s, bool is_full_screen, struct hs_error *err);

/* Take in those that have come: sets members, and leaves it to the caller to reset them. */
void signals__read(struct signals *s);

#endif /* HEAPSONDE_SIGNALS_H */
