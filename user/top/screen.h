/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The terminal, by ncurses: the only file that knows it. */
#ifndef FBT_TOP_SCREEN_H
#define FBT_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include "top/grid.h"

struct screen;

/* Whether there can be a screen. Call before anything is attached. 0, or -EINVAL, logged. */
int screen_check(void);

/* Takes the terminal. 0 or -errno, logged. */
int screen__new(struct screen **screen);

/* Gives the terminal back as it was. */
void screen__free(struct screen *screen);

/* A blank page of the terminal's size. 0 or -ENOMEM. */
int screen__page(struct screen *screen, struct grid *grid);

/*
 * Shows a page. Does nothing while the terminal takes no output, and waits a moment for one that
 * takes it slowly: it gets the rest of the page before the next one.
 */
void screen__paint(struct screen *screen, const struct grid *grid);

/* A character, or enum top_key_code. false: no key was pressed. */
bool screen__key(struct screen *screen, uint32_t *key);

/* The terminal is gone: nobody can press a key any more. */
bool screen__is_gone(const struct screen *screen);

/* The terminal has another size (SIGWINCH). */
void screen__resize(struct screen *screen);

/* Gives the terminal back, stops this process (SIGTSTP), and takes the terminal when it goes on. */
void screen__suspend(struct screen *screen);

/* What another program may have drawn over is drawn anew. */
void screen__redraw(struct screen *screen);

#endif
