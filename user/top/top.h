/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The live view of a window: a sink that is fed as all others, and a page that is drawn once a
 * second and after each key. While it has the terminal, messages (log.h) are shown in the page; the
 * warnings and errors among them are repeated on stderr when it gives the terminal back.
 */
#ifndef FBT_TOP_TOP_H
#define FBT_TOP_TOP_H

#include <stdbool.h>
#include <stdint.h>
#include "model/window.h"
#include "output/sink.h"

struct top;

/* Whether there can be a view here. Call before anything is attached. 0, or -EINVAL, logged. */
int top_check(void);

/* NULL: -ENOMEM. */
struct top *top__new(void);

/* Gives the terminal back. */
void top__free(struct top *top);

/* The sink that feeds it; top is borrowed, and must outlive the pipeline. NULL: -ENOMEM. */
struct sink *top__sink(struct top *top);

/* Takes the terminal. 0 or -errno, logged. */
int top__open(struct top *top);
void top__close(struct top *top); /* may be called when it is closed */

/* What has happened since the last turn. */
struct top_news {
	bool keys;	/* there may be some */
	bool resized;	/* SIGWINCH */
	bool suspended; /* SIGTSTP */
	bool continued; /* SIGCONT */
};

enum top_wish { TOP_WISH_NONE, TOP_WISH_QUIT, TOP_WISH_DUMP };

/* Call each turn. window and cost are borrowed for the call; times are CLOCK_MONOTONIC. */
enum top_wish top__turn(struct top *top, const struct top_news *news, const struct window *window,
			const struct fbt_cost *cost, uint64_t now_ns);

/* The answer to a key: a line at the bottom for some seconds. */
void top__tell(struct top *top, uint64_t now_ns, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
