/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * SIGINT, SIGTERM and SIGHUP during a wait at the end of a window, which they are to end, and not
 * the tool.
 */
#ifndef FBT_BASE_END_SIGNALS_H
#define FBT_BASE_END_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Blocks those that are not ignored. before: for end_signals_release. */
void end_signals_hold(sigset_t *before);

/* Whether one of them is pending, which stays so. */
bool end_signals_came(void);

/*
 * The signals that were not blocked before are so no more, and those of them that came are dropped.
 * Others stay pending, for the event loop.
 */
void end_signals_release(const sigset_t *before);

#endif
