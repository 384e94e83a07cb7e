/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The terminal: full screen, keys, and back to what it was, whatever happens.
 *
 * In:   a canvas.
 * Out:  keys as view.h has them.
 *
 * There is one terminal, so this has no object. After terminal__open it is restored by
 * terminal__close, by exit(3), and by a handler for the signals of a crash; SIGINT and
 * the like are to be blocked and read by who calls this (signals.h).
 */
#ifndef HEAPSONDE_TERMINAL_H
#define HEAPSONDE_TERMINAL_H

#include <stdbool.h>

#include "user/common/error.h"
#include "user/top/canvas.h"

/* Could there be a full screen? Standard output and TERM say so. */
bool terminal__is_there(void);

/*
 * Go to full screen. Colours unless NO_COLOR is set. Errors: -ENOTTY no terminal for the
 * keys, -ENOENT nothing is known of $TERM; -ENOMEM.
 */
int terminal__open(struct hs_error *err);

/* As it was before. Harmless if it is not open. Waits half a second for a terminal at most. */
void terminal__close(void);

/* Where keys come from, to be polled. */
int terminal__fd(void);

/* A key: a code point or one of enum view_key; -1: none has been pressed. */
int terminal__key(void);

/* Its size, as of now. */
void terminal__size(int *rows, int *cols);

/* Has it taken all that was shown? Only then there is a point in showing more. */
bool terminal__is_ready(void);

/* What to poll for POLLOUT before it is worth asking; -1: it has taken all. */
int terminal__pending_fd(void);

/*
 * Show a canvas of the terminal's size; is_whole: though it should be there already. Does
 * not wait: what the terminal does not take is sent by terminal__is_ready.
 */
void terminal__show(const struct canvas *c, bool is_whole);

/*
 * SIGTSTP has come: give the terminal back and stop, until somebody continues us. The
 * signal must be blocked.
 */
void terminal__suspend(void);

/* SIGCONT has come: the terminal may have been anything in between. */
void terminal__resume(void);

#endif /* HEAPSONDE_TERMINAL_H */
