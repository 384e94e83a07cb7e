/* SPDX-License-Identifier: BSD-2-Clause */
/* See terminal.h. */
#include "user/top/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define NCURSES_NOMACROS
#include <curses.h>
#include <term.h>

#include "user/common/colour.h"
#include "user/top/outlet.h"
#include "user/top/view.h"

/* How long an escape sequence may take to arrive, in ms; else it was the key Esc. */
#define ESCAPE_MS 50
/* How long a terminal may take until it is left to itself. */
#define LEAVE_MS 500

/* All that end a process by default, but for those that signals.h reads. */
static const int crash_signals[] = { SIGSEGV, SIGBUS,  SIGABRT, SIGFPE,  SIGILL,  SIGSYS, SIGTRAP,
				     SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU, SIGXFSZ };

/* Control sequences. */
struct controls {
	char bytes[256];
	volatile sig_atomic_t n;
};

static struct {
	FILE *in;  /* for the keys; stdin, or /dev/tty */
	FILE *out; /* that ncurses writes to: first the terminal, then the outlet */
	struct outlet outlet;
	SCREEN *screen;
	bool has_colours;
	struct termios before, during;
	/* To full screen and back. A signal handler needs the latter, made beforehand. */
	struct controls enter, leave;
	char handler_stack[16384];
} terminal = { .outlet = { .memory_fd = -1, .terminal_fd = -1 } };

/* ---- crashes ---- */

/* With functions only that a signal handler may call; and without waiting, if that can be. */
static void on_crash(int signal)
{
	const struct controls *leave = &terminal.leave;

	if (leave->n && write(terminal.outlet.terminal_fd, leave->bytes, (size_t)leave->n) >= 0)
		tcsetattr(STDOUT_FILENO, TCSANOW, &terminal.before);
	terminal.leave.n = 0;
	/* SA_RESETHAND: this time it kills. */
	raise(signal);
}

/* What tigetstr has found. Padding would need a clock; no terminal in use has any here. */
static bool is_control(const char *text)
{
	return text && text != (char *)-1 && !strstr(text, "$<");
}

static void add_control(struct controls *c, const char *name)
{
	const char *text = tigetstr(name);
	size_t n = (size_t)c->n;

	if (!is_control(text) || n + strlen(text) > sizeof(c->bytes))
		return;
	memcpy(c->bytes + n, text, strlen(text));
	c->n = (sig_atomic_t)(n + strlen(text));
}

static void prepare_controls(void)
{
	terminal.enter.n = terminal.leave.n = 0;
	add_control(&terminal.enter, "smcup");
	add_control(&terminal.enter, "smkx");
	add_control(&terminal.enter, "civis");
	add_control(&terminal.leave, "sgr0");
	add_control(&terminal.leave, "cnorm");
	add_control(&terminal.leave, "rmkx");
	add_control(&terminal.leave, "rmcup");
}

static void prepare_for_crashes(void)
{
	const stack_t stack = { .ss_sp = terminal.handler_stack,
				.ss_size = sizeof(terminal.handler_stack) };
	struct sigaction action = { .sa_handler = on_crash,
				    .sa_flags = (int)SA_RESETHAND | SA_ONSTACK };

	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof(crash_signals) / sizeof(crash_signals[0]); i++)
		sigaction(crash_signals[i], &action, NULL);
}

/* ---- opening and closing ---- */

bool terminal__is_there(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

static int open_input(struct hs_error *err)
{
	int fd;

	if (isatty(STDIN_FILENO)) {
		terminal.in = stdin;
		return 0;
	}
	fd = open("/dev/tty", O_RDONLY | O_CLOEXEC);
	terminal.in = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (terminal.in)
		return 0;
	if (fd >= 0)
		close(fd);
	return hs_error__set(err, -ENOTTY, "no terminal to read keys from; try --plain");
}

static void close_files(void)
{
	if (terminal.in && terminal.in != stdin)
		fclose(terminal.in);
	if (terminal.out)
		fclose(terminal.out);
	terminal.in = terminal.out = NULL;
	outlet__close(&terminal.outlet);
}

/* Where ncurses finds the terminal, and which is another file later. */
static int open_output(struct hs_error *err)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int ret = outlet__open(&terminal.outlet, STDOUT_FILENO);

	terminal.out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (terminal.out && !ret)
		return 0;
	if (!terminal.out && fd >= 0)
		close(fd);
	return hs_error__set(err, ret ? ret : -EMFILE, "no room for the screen: %s",
			     strerror(ret ? -ret : EMFILE));
}

static void prepare_colours(void)
{
	terminal.has_colours = colour__allowed() && has_colors() && start_color() == OK &&
			       use_default_colors() == OK;
	if (!terminal.has_colours)
		return;
	init_pair(LOOK_ALERT, COLOR_RED, -1);
	init_pair(LOOK_STRONG, COLOR_CYAN, -1);
	init_pair(LOOK_TITLE, COLOR_BLACK, COLOR_GREEN);
	init_pair(LOOK_SORTED, COLOR_BLACK, COLOR_CYAN);
	init_pair(LOOK_SELECTED, COLOR_BLACK, COLOR_WHITE);
}

/* Ctrl-S shall not hold us up while records pile up; Ctrl-C stays a signal. */
static void no_flow_control(void)
{
	if (tcgetattr(STDOUT_FILENO, &terminal.during))
		return;
	terminal.during.c_iflag &= ~(tcflag_t)(IXON | IXOFF);
	tcsetattr(STDOUT_FILENO, TCSANOW, &terminal.during);
	def_prog_mode();
}

/* The terminal's modes, which ncurses sets through the descriptor that it writes to. */
static void set_modes(void)
{
	cbreak();
	noecho();
	nonl();
	no_flow_control();
}

static int open_screen(struct hs_error *err)
{
	int ret = open_input(err);

	if (!ret && tcgetattr(STDOUT_FILENO, &terminal.before))
		ret = hs_error__set(err, -ENOTTY, "standard output is no terminal");
	if (!ret)
		ret = open_output(err);
	if (ret)
		return ret;
	terminal.screen = newterm(NULL, terminal.out, terminal.in);
	if (!terminal.screen)
		return hs_error__set(err, -ENOENT, "nothing is known of the terminal %s",
				     getenv("TERM"));
	return 0;
}

int terminal__open(struct hs_error *err)
{
	static bool is_registered;
	int ret = open_screen(err);

	if (ret) {
		close_files();
		return ret;
	}
	if (!is_registered)
		atexit(terminal__close);
	is_registered = true;
	prepare_controls();
	prepare_for_crashes();
	set_modes();
	/* From here on ncurses has a file in memory, so that it never waits. */
	dup3(terminal.outlet.memory_fd, fileno(terminal.out), O_CLOEXEC);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	prepare_colours();
	return 0;
}

static void send_control(const char *text)
{
	if (is_control(text))
		outlet__add(&terminal.outlet, text, strlen(text));
}

/* Away from full screen, the cursor on the last line where there is no other screen. */
static void leave(void)
{
	const char *move = tigetstr("cup");

	if (is_control(move))
		send_control(tparm(move, getmaxy(stdscr) - 1, 0));
	send_control(tigetstr("el"));
	outlet__add(&terminal.outlet, terminal.leave.bytes, (size_t)terminal.leave.n);
	outlet__send_within(&terminal.outlet, LEAVE_MS);
	tcsetattr(STDOUT_FILENO, TCSANOW, &terminal.before);
}

void terminal__close(void)
{
	if (!terminal.screen)
		return;
	leave();
	terminal.leave.n = 0;
	for (size_t i = 0; i < sizeof(crash_signals) / sizeof(crash_signals[0]); i++)
		signal(crash_signals[i], SIG_DFL);
	/* Into memory, for what it frees. */
	endwin();
	delscreen(terminal.screen);
	terminal.screen = NULL;
	close_files();
}

void terminal__suspend(void)
{
	sigset_t stop;

	leave();
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	/* Where nobody could continue us the kernel ignores it. */
	signal(SIGTSTP, SIG_DFL);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	terminal__resume();
}

void terminal__resume(void)
{
	tcsetattr(STDOUT_FILENO, TCSANOW, &terminal.during);
	outlet__add(&terminal.outlet, terminal.enter.bytes, (size_t)terminal.enter.n);
	clearok(curscr, TRUE);
}

/* ---- keys ---- */

int terminal__fd(void)
{
	return terminal.in ? fileno(terminal.in) : -1;
}

/* ---- showing ---- */

void terminal__size(int *rows, int *cols)
{
	struct winsize size;

	getmaxyx(stdscr, *rows, *cols);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		return;
	if (size.ws_row == *rows && size.ws_col == *cols)
		return;
	resizeterm(size.ws_row, size.ws_col);
	getmaxyx(stdscr, *rows, *cols);
}

bool terminal__is_ready(void)
{
	return outlet__send(&terminal.outlet);
}

int terminal__pending_fd(void)
{
	return terminal.outlet.n ? terminal.outlet.terminal_fd : -1;
}

static attr_t attributes_of(enum look look)
{
	switch (look) {
	case LOOK_STRONG:
	case LOOK_ALERT:
		return A_BOLD;
	case LOOK_TITLE:
	case LOOK_SELECTED:
		return terminal.has_colours ? A_NORMAL : A_REVERSE;
	case LOOK_SORTED:
		return terminal.has_colours ? A_BOLD : A_REVERSE | A_BOLD;
	default:
		return A_NORMAL;
	}
}

/* Set how what follows looks. */
static void look_like(enum look look)
{
	bool has_pair = terminal.has_colours && look != LOOK_PLAIN && look != LOOK_FAINT;

	wattr_set(stdscr, attributes_of(look), has_pair ? (short)look : 0, NULL);
}

void terminal__show(const struct canvas *c, bool is_whole)
{
	werase(stdscr);
	for (int y = 0; y < c->rows; y++)
		for (int x = 0; x < c->cols; x++) {
			const struct canvas_cell *cell =
				&c->cells[(size_t)y * (size_t)c->cols + (size_t)x];

			if (!cell->c)
				continue;
			look_like((enum look)cell->look);
			mvwaddnwstr(stdscr, y, x, &cell->c, 1);
		}
	if (is_whole || terminal.outlet.has_dropped)
		clearok(curscr, TRUE);
	terminal.outlet.has_dropped = false;
	wrefresh(stdscr);
	outlet__send(&terminal.outlet);
}
