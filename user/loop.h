/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The one place where the tool waits: for its next turn, for signals, for news of a descriptor. */
#ifndef FBT_LOOP_H
#define FBT_LOOP_H

#include <stdint.h>

/* Bits of what loop__wait returns. */
enum loop_news {
	LOOP_END = 1,	 /* SIGINT, SIGTERM or SIGHUP: end */
	LOOP_MANUAL = 2, /* SIGUSR1: escalate a step */
};

struct loop;

/*
 * From here on those signals come through loop__wait; SIGHUP not if it is ignored, as nohup does.
 * No turn comes by itself before loop__set_turn. 0 or -errno, logged.
 */
int loop__new(struct loop **loop);
void loop__free(struct loop *loop); /* the signals stay as they are */

/* loop__wait returns after this many ns, and then again each time they have passed. 0 or -errno,
 * logged. */
int loop__set_turn(struct loop *loop, uint64_t ns);

/* loop__wait returns while fd is readable, until loop__unwatch. 0 or -errno, logged. */
int loop__watch(struct loop *loop, int fd);
void loop__unwatch(struct loop *loop, int fd);

/* Waits for the next turn: what signals asked for meanwhile. */
unsigned int loop__wait(struct loop *loop);

/*
 * From here on those signals do at once what they do by default. Where one has asked for the end,
 * the same within 0.1 s is passed over, which this waits for: timeout(1) sends each twice. Where
 * none has, the first of each does nothing: whoever sends it means the window, not what is being
 * written.
 */
void loop__restore_signals(const struct loop *loop);

#endif
