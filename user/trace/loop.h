/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The event loop: waits for the next turn, for signals and for descriptors. */
#ifndef FBT_TRACE_LOOP_H
#define FBT_TRACE_LOOP_H

#include <stdint.h>

/* Bits of the value that loop__wait returns. */
enum loop_news {
	LOOP_END = 1,	 /* SIGINT, SIGTERM or SIGHUP: end */
	LOOP_MANUAL = 2, /* SIGUSR1: escalate a step */
	LOOP_INPUT = 4,	 /* a descriptor of loop__watch is readable */
	/* After loop__watch_terminal: */
	LOOP_RESIZED = 8,    /* SIGWINCH */
	LOOP_SUSPENDED = 16, /* SIGTSTP */
	LOOP_CONTINUED = 32, /* SIGCONT */
};

struct loop;

/*
 * From here on the signals of enum loop_news are returned by loop__wait, except a SIGHUP that is
 * ignored, as under nohup. There are no turns before loop__set_turn. 0 or -errno, logged.
 */
int loop__new(struct loop **loop);
void loop__free(struct loop *loop); /* the signals stay blocked */

/* loop__wait returns whenever this many ns have passed. 0 or -errno, logged. */
int loop__set_turn(struct loop *loop, uint64_t ns);

/* loop__wait returns while fd is readable, until loop__unwatch. 0 or -errno, logged. */
int loop__watch(struct loop *loop, int fd);
void loop__unwatch(struct loop *loop, int fd);

/*
 * Also returns the signals of a program that has the terminal for itself; SIGQUIT is LOOP_END then.
 * 0 or -errno, logged.
 */
int loop__watch_terminal(struct loop *loop);

/* Waits for the next turn. Returns what signals have asked for; also LOOP_END if the loop fails. */
unsigned int loop__wait(struct loop *loop);

/* Takes the signals that are pending, without waiting. Returns what they have asked for. */
unsigned int loop__take(struct loop *loop);

/*
 * From here on the signals have their default action. If a signal has asked for the end, this waits
 * 0.1 s for a second one and drops it, because timeout(1) sends each signal twice. If none has, the
 * first of each signal is ignored: its sender wants to end the window, not the writing of the
 * files. meanwhile, which may be NULL, is called every 10 ms while this waits.
 */
void loop__restore_signals(const struct loop *loop, void (*meanwhile)(void *ctx), void *ctx);

#endif
