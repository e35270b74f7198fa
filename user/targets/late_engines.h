/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Processes that become a Python engine while the window is open: those that begin, as a worker
 * that is restarted, and those that load an engine's modules. Gets the library into them, if
 * --python=inject asked for that, and has their steps traced. Nothing waits for the GIL.
 */
#ifndef FBT_TARGETS_LATE_ENGINES_H
#define FBT_TARGETS_LATE_ENGINES_H

#include "targets/live.h"

struct late_engines;

/*
 * live is borrowed. on_engine is told of each process that has steps which are traced from then on;
 * is_new: the process was not traced before. NULL: -ENOMEM.
 */
struct late_engines *late_engines__new(const struct live *live,
				       void (*on_engine)(void *ctx, uint32_t tgid, bool is_new),
				       void *ctx);

/* Waits for an injection that is under way. */
void late_engines__free(struct late_engines *late);

/* -f or -a has found a process, or a process has called execve. */
void late_engines__expect(struct late_engines *late, uint32_t tgid);

/* Call every few milliseconds while the window is open. */
void late_engines__turn(struct late_engines *late, uint64_t now_ns);

/* Whether an engine whose processes have all ended may get others: the process of -p lives. */
bool late_engines__awaits(const struct late_engines *late);

/*
 * The window ends: says which Python processes have begun since it opened, and were not looked into
 * because they lack the library.
 */
void late_engines__finish(struct late_engines *late);

#endif
