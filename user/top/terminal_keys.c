/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys as view.h has them, from those of ncurses; see terminal.h. */
#define NCURSES_NOMACROS
#include <curses.h>

#include "user/top/terminal.h"
#include "user/top/view.h"

static int special_key(wint_t key)
{
	switch (key) {
	case KEY_UP:
		return VIEW_KEY_UP;
	case KEY_DOWN:
		return VIEW_KEY_DOWN;
	case KEY_PPAGE:
		return VIEW_KEY_PAGE_UP;
	case KEY_NPAGE:
		return VIEW_KEY_PAGE_DOWN;
	case KEY_HOME:
		return VIEW_KEY_HOME;
	case KEY_END:
		return VIEW_KEY_END;
	case KEY_ENTER:
		return VIEW_KEY_ENTER;
	case KEY_BACKSPACE:
	case KEY_DC:
		return VIEW_KEY_BACKSPACE;
	case KEY_BTAB:
		return VIEW_KEY_BACKTAB;
	default:
		return -1;
	}
}

int terminal__key(void)
{
	wint_t key;

	for (;;) {
		int kind = wget_wch(stdscr, &key), special;

		if (kind == ERR)
			return -1;
		if (kind == KEY_CODE_YES) {
			special = special_key(key);
			if (special >= 0)
				return special;
			continue;
		}
		switch (key) {
		case 0x1b:
			return VIEW_KEY_ESCAPE;
		case '\r':
		case '\n':
			return VIEW_KEY_ENTER;
		case 0x7f:
		case '\b':
			return VIEW_KEY_BACKSPACE;
		default:
			return (int)key;
		}
	}
}
