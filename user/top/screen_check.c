/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Apart from screen.c, because <term.h> has macros for many short words. */
#include "top/screen.h"

#include <curses.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

#include <term.h>

int screen_check(void)
{
	const char *name = getenv("TERM");
	int found;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		log_err("top needs a terminal: run it in one (over ssh with -t), or trace without "
			"top: -p PID prints a report");
		return -EINVAL;
	}
	if (!name || !*name || setupterm(name, STDOUT_FILENO, &found) != OK) {
		log_err("top: the terminal type TERM=%s is not known here: set TERM=xterm or "
			"TERM=vt100 (package ncurses-base or ncurses-term has the descriptions), "
			"or "
			"trace without top",
			name ? name : "");
		return -EINVAL;
	}
	found = cursor_address && clear_screen ? 0 : -EINVAL;
	if (found)
		log_err("top: a terminal of type TERM=%s cannot place the cursor: set TERM=xterm "
			"or "
			"TERM=vt100, or trace without top",
			name);
	del_curterm(cur_term);
	return found;
}
