/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* From options to a loader, and what its probes cost here. */
#ifndef FBT_LOADING_H
#define FBT_LOADING_H

#include "loader.h"
#include "options.h"

/* As loader__open, with room for the threads there are now of what options select. */
int loading_open(struct loader **loader, const struct options *options);

/* Whether there still is that room; it reads /proc. */
bool loading_has_room(struct loader *loader, const struct options *options);

/*
 * Attaches the syscall probes and measures what they cost, with_steps also the probes of a step.
 * Leaves records in the rings. 0 or -errno, logged.
 */
int loading_attach_syscalls(struct loader *loader, bool with_steps, struct fbt_cost *cost);

/* The same measurement alone: nothing stays attached. */
int loading_measure(const struct options *options, struct fbt_cost *cost);

#endif
