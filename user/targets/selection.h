/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which processes come under trace: those of -p, their children with -f, or all with -a. */
#ifndef FBT_TRACE_SELECTION_H
#define FBT_TRACE_SELECTION_H

#include "targets/live.h"

/*
 * Adds the selected processes and searches them for step functions. 0, or -errno, logged. Only a
 * process that -p names can fail; with --flag it may be gone. -ENOENT: no function matched --step.
 */
int selection_find(const struct live *live);

/*
 * Forgets processes that have ended since selection_find, and searches the files that the others
 * have mapped since (with -a, only once they are under trace). Never fails: what cannot be examined
 * now fails when it is attached.
 */
void selection_refresh(const struct live *live);

/*
 * Probes the step functions that were found. 0 or -errno, logged; only what --step names can fail.
 */
int selection_attach(const struct live *live);

/*
 * Call once the kernel side follows threads. Takes the processes that were found, and new ones,
 * under trace. All are taken before any is described, because what they do before they are taken is
 * not seen. 0 or -errno, logged.
 */
int selection_take(const struct live *live);

/*
 * Traces a process that was found while the window is open, and probes the functions that it has. 0
 * or -errno; -ESRCH: it has ended.
 */
int selection_take_late(const struct live *live, struct traced *traced);

#endif
