/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#define NCURSES_WIDECHAR 1
#include "top/screen.h"

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memfd.h"
#include "base/timed_write.h"
#include "top/keys.h"

/* How long a page, and at last what gives the terminal back, waits for a terminal to take it. */
#define PAGE_WAIT_NS (100 * NS_PER_MS)
#define END_WAIT_NS  NS_PER_S

/*
 * ncurses writes until all is written, however long that takes. So it writes into a file in memory,
 * in the place of standard output, and what the terminal does not take stays there.
 */
struct screen {
	SCREEN *curses;
	bool ascii;
	bool color;
	int terminal;	      /* standard output */
	int page;	      /* the file */
	off_t sent;	      /* of it, to the terminal */
	struct termios modes; /* before ncurses */
};

/* false: the terminal does not take the rest now. */
static bool send_page(struct screen *screen, uint64_t wait_ns)
{
	/* timed_write waits anew after each progress; at once is what takes less than 10 ms. */
	const uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + max_u64(wait_ns, 10 * NS_PER_MS);
	char piece[256];
	size_t written;
	ssize_t got;
	int err = 0;

	while (!err && (got = pread(screen->page, piece, sizeof(piece), screen->sent)) > 0) {
		err = timed_write(STDOUT_FILENO, piece, (size_t)got, wait_ns, &written);
		screen->sent += (off_t)written;
		if (!err && clock_ns(CLOCK_MONOTONIC) > end_ns)
			err = -ETIMEDOUT;
	}
	if (err == -ETIMEDOUT)
		return false;
	screen->sent = 0;
	return !ftruncate(screen->page, 0) && !lseek(screen->page, 0, SEEK_SET);
}

static void begin_page(const struct screen *screen)
{
	dup2(screen->page, STDOUT_FILENO);
}

static void end_page(struct screen *screen, uint64_t wait_ns)
{
	dup2(screen->terminal, STDOUT_FILENO);
	send_page(screen, wait_ns);
}

/* A locale that is wanted but not installed, as often over ssh, still says how bytes are shown. */
static bool is_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	const char *wanted = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !(wanted && *wanted); i++)
		wanted = getenv(names[i]);
	if (!setlocale(LC_CTYPE, "") && wanted &&
	    (strcasestr(wanted, "utf-8") || strcasestr(wanted, "utf8")))
		setlocale(LC_CTYPE, "C.UTF-8");
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static void set_colors(struct screen *screen)
{
	const char *no_color = getenv("NO_COLOR");

	screen->color = has_colors() && !(no_color && *no_color);
	if (!screen->color)
		return;
	start_color();
	use_default_colors();
	init_pair(TOP_GOOD, COLOR_GREEN, -1);
	init_pair(TOP_WARN, COLOR_YELLOW, -1);
	init_pair(TOP_BAD, COLOR_RED, -1);
	init_pair(TOP_HEAD, COLOR_CYAN, -1);
}

static const int own_signals[] = {SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
#define OWN_SIGNALS (sizeof(own_signals) / sizeof(*own_signals))

/* ncurses takes signals that are our event loop's. */
static SCREEN *take_terminal(void)
{
	struct sigaction kept[OWN_SIGNALS];
	SCREEN *curses;

	for (size_t i = 0; i < OWN_SIGNALS; i++)
		sigaction(own_signals[i], NULL, &kept[i]);
	curses = newterm(NULL, stdout, stdin);
	for (size_t i = 0; i < OWN_SIGNALS; i++)
		sigaction(own_signals[i], &kept[i], NULL);
	return curses;
}

static void free_screen(struct screen *screen)
{
	if (screen->page >= 0)
		close(screen->page);
	if (screen->terminal >= 0)
		close(screen->terminal);
	free(screen);
}

int screen__new(struct screen **result)
{
	struct screen *screen = calloc(1, sizeof(*screen));

	*result = NULL;
	if (!screen)
		return -ENOMEM;
	screen->ascii = !is_utf8();
	screen->page = memfd_make("top");
	screen->terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (screen->page >= 0 && screen->terminal >= 0 && !tcgetattr(STDOUT_FILENO, &screen->modes))
		screen->curses = take_terminal();
	if (!screen->curses) {
		log_err("top: this terminal cannot be used: trace without top");
		free_screen(screen);
		return -EINVAL;
	}
	set_escdelay(25);
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	set_colors(screen);
	*result = screen;
	return 0;
}

void screen__free(struct screen *screen)
{
	if (!screen)
		return;
	send_page(screen, END_WAIT_NS);
	/* The page goes, and what was there before comes back. */
	begin_page(screen);
	endwin();
	end_page(screen, END_WAIT_NS);
	/* endwin could not: it has not seen the terminal. */
	tcsetattr(STDOUT_FILENO, TCSANOW, &screen->modes);
	delscreen(screen->curses);
	free_screen(screen);
}

int screen__page(struct screen *screen, struct grid *grid)
{
	int rows, columns;

	getmaxyx(stdscr, rows, columns);
	return grid_init(grid, rows, columns, screen->ascii);
}

static attr_t attribute_of(const struct screen *screen, enum top_style style)
{
	static const attr_t attributes[TOP_STYLES] = {
		[TOP_BOLD] = A_BOLD, [TOP_DIM] = A_DIM,		 [TOP_BAD] = A_BOLD,
		[TOP_HEAD] = A_BOLD, [TOP_SELECTED] = A_REVERSE,
	};

	return style < TOP_STYLES ? attributes[style] : A_NORMAL;
}

static short pair_of(const struct screen *screen, enum top_style style)
{
	bool has_pair =
		style == TOP_GOOD || style == TOP_WARN || style == TOP_BAD || style == TOP_HEAD;

	return screen->color && has_pair ? (short)style : 0;
}

void screen__paint(struct screen *screen, const struct grid *grid)
{
	struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};

	/* A terminal that is stopped (Ctrl-S) must not stop the tracing. */
	if (!send_page(screen, 0) || poll(&output, 1, 0) != 1 || !(output.revents & POLLOUT))
		return;
	begin_page(screen);
	erase();
	for (int row = 0; row < grid->rows; row++) {
		for (int i = 0; i < grid->columns; i++) {
			const struct cell *cell = &grid->cells[row * grid->columns + i];
			wchar_t text[2] = {(wchar_t)cell->point, 0};
			cchar_t shown;

			setcchar(&shown, text, attribute_of(screen, cell->style),
				 pair_of(screen, cell->style), NULL);
			mvadd_wch(row, i, &shown);
		}
	}
	refresh();
	end_page(screen, PAGE_WAIT_NS);
}

bool screen__key(struct screen *screen, uint32_t *key)
{
	static const struct {
		wint_t code;
		enum top_key_code key;
	} codes[] = {
		{KEY_UP, TOP_KEY_UP},	      {KEY_DOWN, TOP_KEY_DOWN},
		{KEY_PPAGE, TOP_KEY_PAGE_UP}, {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
		{KEY_ENTER, TOP_KEY_ENTER},   {KEY_BACKSPACE, TOP_KEY_BACKSPACE},
	};
	wint_t code;
	int kind;

	/* get_wch draws what was cleared. */
	begin_page(screen);
	kind = get_wch(&code);
	end_page(screen, 0);
	if (kind == ERR)
		return false;
	*key = 0;
	for (size_t i = 0; kind == KEY_CODE_YES && i < sizeof(codes) / sizeof(*codes); i++) {
		if (codes[i].code == code)
			*key = codes[i].key;
	}
	if (kind != KEY_CODE_YES)
		*key = code == '\r' || code == '\n' ? (uint32_t)TOP_KEY_ENTER
		       : code == 27		    ? (uint32_t)TOP_KEY_ESCAPE
		       : code == 127 || code == 8   ? (uint32_t)TOP_KEY_BACKSPACE
						    : (uint32_t)code;
	return true;
}

bool screen__is_gone(const struct screen *screen)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&input, 1, 0) == 1 && input.revents & (POLLHUP | POLLERR | POLLNVAL);
}

void screen__resize(struct screen *screen)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
		return;
	resizeterm(size.ws_row, size.ws_col);
	clear();
}

void screen__redraw(struct screen *screen)
{
	clear();
}

void screen__suspend(struct screen *screen)
{
	struct sigaction stop = {.sa_handler = SIG_DFL}, kept;
	sigset_t signals, blocked;

	/* Whoever presses Ctrl-Z reads the terminal. */
	send_page(screen, END_WAIT_NS);
	endwin();
	sigemptyset(&signals);
	sigaddset(&signals, SIGTSTP);
	sigaction(SIGTSTP, &stop, &kept);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &signals, &blocked);
	/* Here the process stands still until SIGCONT. */
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	sigaction(SIGTSTP, &kept, NULL);
	screen__resize(screen);
	refresh();
}
